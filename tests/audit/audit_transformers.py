#!/usr/bin/env python3
"""Compares `sextant explain` with the code of transformers, folder by folder.

    audit_transformers.py --sextant BINARY [--models NAME ...] [--vision] [--resume] [--update]
                          [--page]
    audit_transformers.py --self-test

For each folder of transformers.models with a rotary class, and each such class of a language model:

  defaults   the class is built from its default configuration; its frequencies and attention
             factor are compared with the answer of explain for the same configuration, as it is
             saved, alone and inside a composite one
  run        a small model runs 11 tokens: which layers rotate, which channels, in which pairs, the
             scale of the scores as its attention function applies it, the window
  missing    the file lacks the base, the rotated part or head_dim: explain must use the defaults of
             the code
  scalings   linear, dynamic, YaRN, Llama 3's and LongRoPE
  switches   fields that switch rotations on and off, at each of their values
  released   the configurations of released models in tests/rope_config/released
  registry   every other model_type: explain must answer that it does not rotate
  vision     each vision tower of families/vision.json runs on a grid that is not square, and its
             queries are compared with explain's axes, channels, frequencies and coordinates; the
             axes of M-RoPE's pairs with the rotary class. --vision does this alone

The result is a state for each folder, which is compared with tests/audit/transformers-VERSION.txt.
The exit status is 1 if one differs. --update writes that list, --page the page of the
documentation. Results are kept in build/audit; --resume reuses results of the same command and
code. `./check --audit` runs the whole audit in an environment of scripts/torch_env.sh.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import pathlib
import sys
import warnings

from audit import page, states
from audit.explain import Sextant
from audit.findings import AGREES, NO_TEXT, RANKS, FolderResult
from audit.folder import audit_folder
from audit.models import rotary_folders
from audit.mrope import audit_mrope, mrope_folders
from audit.registry import NAME as REGISTRY, audit_registry
from audit.runner import run_all
from audit.self_test import self_test
from audit.vision import TABLE, audit_vision, vision_folders

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def key_of(binary: str, version: str) -> str:
    """A digest of all inputs that a result depends on: versions, command, scripts and data."""
    digest = hashlib.sha256(version.encode())
    files = sorted((ROOT / "tests/audit/audit").glob("*.py"))
    files += sorted((ROOT / "tests/rope_config/released").glob("*.json"))
    for path in [pathlib.Path(binary), ROOT / "tests/audit/models.json", TABLE, *files]:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def prepare() -> str:
    """Loads the modules that every process needs, before the processes fork. Returns the version
    of transformers."""
    warnings.simplefilter("ignore")
    os.environ["TRANSFORMERS_VERBOSITY"] = "error"
    os.environ["HF_HUB_OFFLINE"] = "1"
    import torch
    import transformers
    # pylint: disable-next=unused-import
    from transformers import PreTrainedConfig, PreTrainedModel  # noqa: F401
    torch.set_num_threads(1)
    return transformers.__version__


def say_states(results: list[FolderResult]) -> None:
    counts = {state: sum(r.state() == state for r in results) for state in RANKS}
    print(", ".join(f"{count} {state}" for state, count in counts.items() if count))
    for result in results:
        if result.state() not in (AGREES, NO_TEXT):
            print(states.line_of(result.folder, (result.state(), result.why())))


def judge(results: list[FolderResult], known_file: pathlib.Path, update: bool) -> int:
    """Compares the states with the known ones, or rewrites these. Returns the exit status."""
    now, known = states.found(results), states.read(known_file)
    if update:
        states.write(known_file, {**known, **now})
        return 0
    lines = states.differences(known, now)
    if lines:
        print(f"States differ from {known_file.relative_to(ROOT)}:")
        print("\n".join(lines))
    return 1 if lines else 0


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--sextant", default=str(ROOT / "build/release/bin/sextant"))
    options.add_argument("--models", nargs="*", help="folders; all if none is named")
    options.add_argument("--out", type=pathlib.Path, default=ROOT / "build/audit")
    options.add_argument("--processes", type=int, default=2)
    options.add_argument("--vision", action="store_true", help="only vision towers and M-RoPE")
    options.add_argument("--resume", action="store_true")
    options.add_argument("--update", action="store_true")
    options.add_argument("--page", action="store_true")
    options.add_argument("--self-test", action="store_true")
    given = options.parse_args()
    version = prepare()
    sextant = Sextant(given.sextant)
    if given.self_test:
        lines = self_test(sextant)
        print("\n".join(lines) or "The audit finds every planted error.")
        return 1 if lines else 0

    def audit(name: str) -> FolderResult:
        if name.startswith("vision "):
            return audit_vision(name, sextant)
        if name.startswith("mrope "):
            return audit_mrope(name, sextant)
        return audit_registry(sextant) if name == REGISTRY else audit_folder(name, sextant)
    towers = [*vision_folders(), *mrope_folders()]
    names = given.models or (towers if given.vision else
                             [REGISTRY, *rotary_folders(), *towers])
    results = run_all(names, audit, given.out, key_of(given.sextant, version), given.processes,
                      given.resume)
    say_states(results)
    short = ".".join(version.split(".")[:2])
    if given.page:
        path = ROOT / f"docs/audit/transformers-{short}.md"
        write = page.write_vision if given.vision else page.write
        write(path, results, given.sextant, version)
    return judge(results, ROOT / f"tests/audit/transformers-{short}.txt", given.update)


if __name__ == "__main__":
    sys.exit(main())
