"""``python -m sextant.doctor.examine MODEL FILE``: runs a model, compares its layers with the
configuration, and writes the differences as JSON, which ``sextant doctor --examined FILE`` reports.

A model that cannot be examined is no error: the JSON then has the reason under "unjudged".
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import importlib.util
import inspect
import json
import os
import sys
import warnings
from typing import Any, Callable

from .._printable import print_error
from .._write_file import write_file
from . import subject
from .reading import Reading, ReadingError, read
from .report import Unjudged
from .subject import SubjectError

Examined = dict[str, Any]  # sextant/cli/doctor/report.cc describes it


def _start(name: str, against: str) -> Examined:
    return {"subject": name, "against": against, "versions": [], "config": "", "length": 0,
            "longest": 0, "layers": [], "findings": [], "unjudged": [], "notes": [], "facts": []}


def _versions() -> dict[str, str]:
    import torch
    import transformers
    return {"transformers": transformers.__version__, "torch": torch.__version__}


def _of_language_model(layers: list[Any], model: Any, config: Any) -> list[Any]:
    """The layers without those of a tower for images or sound."""
    modules = dict(model.named_modules())
    return [layer for layer in layers
            if getattr(getattr(modules.get(layer.name), "config", None), "model_type", None)
            in (config.model_type, None)] or layers


def _examine(examined: Examined, model: Any, reader: Callable[[int], Reading], live: bool
             ) -> Examined:
    """Adds the differences between a model and a reading. reader(length): the reading for a
    sequence of so many tokens. live: the configuration may have changed since the model was
    built."""
    from .causes import Context
    from .compare import compare_layers
    from .compare_own import OwnComparison, causal_of
    from .facts import Facts
    from .own_runs import own_runs
    from .probe import ProbeError, positions_for, probe
    config, versions, facts = subject.text_config(model.config), _versions(), Facts()
    longest = getattr(config, "max_position_embeddings", None)
    longest = longest if isinstance(longest, int) else 0
    scales: dict[str, Any] = {}

    def run(context: Context, positions: tuple[int, ...] | None) -> list[Any]:
        layers = _of_language_model(probe(model, context.reading, positions), model, config)
        findings, unjudged = compare_layers(
            [dataclasses.replace(layer, scale=_scale(layer.scale, scales.get(layer.name)))
             for layer in layers], context, facts)
        if positions is None:
            examined["findings"] += _of_counting(findings, examined["findings"])
            return layers
        examined["findings"] += findings
        examined["unjudged"] += unjudged
        return layers
    refused = subject.two_stacks(model)
    if refused:
        examined["unjudged"].append(Unjudged((), "model", refused))
        return examined
    what, positions = "model", positions_for(longest)
    length = positions[-1] + 1
    examined.update(versions=list(versions.items()), longest=longest, length=length)
    try:
        reading = reader(length)
        examined["config"] = reading.config
        if not any(group.rotates for group in reading.groups):
            names = [group.instead for group in reading.groups[:1]] or ["none"]
            examined["notes"].append(f"the configuration has no rotary positions ({names[0]})")
        context = Context(reading, model, versions, live)
        try:
            causal = causal_of(model, config)
            own = own_runs(model, [w for g in reading.groups for w in (g.window, g.chunk) if w],
                           causal is not False)
            context.length = own.length
            compared = OwnComparison(own, causal, context, facts)
            scales.update({c.name: c.law.scales for c in own.bare
                           if c.law and c.law.scales is not None})
            examined["findings"] += compared.findings
        except ProbeError as error:
            for fact in ("mask", "padding", "cache", "key heads", "norms", "softcap"):
                facts.miss(fact, None, str(error))
        layers = run(context, positions)
        if "position_ids" in inspect.signature(model.forward).parameters:
            try:
                run(context, None)
            except ProbeError as error:
                facts.miss("positions", None, f"without position_ids: {error}")
        examined["layers"] = [sorted({
            layer.index for layer in layers if layer.index is not None
            and reading.group_of(layer.index, layer.kind) is group}) for group in reading.groups]
        # Dynamic stretches change frequencies beyond the trained length.
        trained, length = _lengths(reader(0)) if reading.depends_on_length else (0, 0)
        if length > trained:
            what = f"a length of {length}"
            run(dataclasses.replace(context, reading=reader(length)),
                (*positions_for(trained), (trained + length) // 2, length - 1))
    except (ReadingError, ProbeError) as error:
        examined["unjudged"].append(Unjudged((), what, str(error)))
    examined["facts"] = facts.entries(examined["findings"])
    return examined


def _scale(passed: float | None, measured: Any) -> float | None:
    """The scale that the attention function is given, unless its results show another in a head.
    Results of 16 bits show it to a hundredth."""
    if measured is None:
        return passed
    off = abs(measured / (passed or measured.mean()) - 1)
    return passed if passed and off.max() < 1e-2 else float(measured[off.argmax()])


def _of_counting(findings: list[Any], others: list[Any]) -> list[Any]:
    """The findings of a run that counts its positions itself, in layers that have none where they
    are given."""
    fields = ("positions", "direction", "frequencies", "precision")
    known = {f.layers for f in others if f.field in fields}
    return [dataclasses.replace(f, field="positions", expected="0, 1, 2, ... without position_ids")
            for f in findings if f.field in fields and f.layers not in known]


def _lengths(reading: Reading) -> tuple[int, int]:
    """The trained length, and a longer one for which the stretch is; zeros if not known."""
    trained = max((g.trained_length or 0 for g in reading.groups), default=0)
    target = max((g.target_length or 0 for g in reading.groups), default=0)
    return trained, target if target > trained else 2 * trained


def examined_model(model: Any) -> str:
    """Examines a live model of transformers against its own configuration. A model that
    ``sextant.transformers.stretch`` has changed is examined as it is without."""
    config = subject.text_config(model.config)
    changed: Any = contextlib.nullcontext("")
    if any("_sextant_method" in vars(module) for module in model.modules()):
        from sextant.transformers.positions import own_positions
        changed = own_positions(model)
    examined = _start(type(model).__name__, "model.config")
    with changed as stretch, subject.quiet():
        _examine(examined, model, lambda length: subject.read_config(config, length), live=True)
    if stretch:
        examined["notes"].append(f"stretched by sextant.transformers ({stretch}); examined are the "
                                 "model's own positions, as after restore(model)")
    return json.dumps(examined, default=dataclasses.asdict)


def examined_folder(name: str, weights: bool = False, trust_remote_code: bool = False) -> str:
    """Examines the model of a folder, or of a name in Hugging Face's cache: config.json as explain
    reads it, against the model that the installed transformers builds from it. weights: load
    them, and examine the whole model."""
    examined = _start(name, "config.json")
    try:
        folder = subject.resolve(name)
        for package in ("numpy", "torch", "transformers"):
            if importlib.util.find_spec(package) is None:
                raise SubjectError(f"expected torch and transformers, but this Python "
                                   f"({sys.executable}) has no {package}; SEXTANT_PYTHON names "
                                   "another")
        path = str(folder / "config.json")
        examined.update(subject=str(folder), versions=list(_versions().items()))
        read(path)
        with subject.quiet():
            config = subject.load_config(folder, trust_remote_code)
            if weights:
                model = subject.load(folder, trust_remote_code)
            else:
                inner = subject.text_config(config)
                small = subject.shrunk(inner)
                subject.check_same_meaning(inner, small)
                model = subject.build(small, trust_remote_code)
            _examine(examined, model, lambda length: read(path, length), live=False)
    except (ReadingError, SubjectError) as error:
        examined["unjudged"].append(Unjudged((), "model", str(error)))
    return json.dumps(examined, default=dataclasses.asdict)


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line and returns the exit status."""
    options = argparse.ArgumentParser(prog="python -m sextant.doctor.examine")
    options.add_argument("model")
    options.add_argument("file")
    options.add_argument("--weights", action="store_true")
    options.add_argument("--trust-remote-code", action="store_true")
    given = options.parse_args(arguments)
    warnings.simplefilter("ignore")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    try:
        text = examined_folder(given.model, given.weights, given.trust_remote_code)
        write_file(given.file, text)
    except Exception as error:  # pylint: disable=broad-except
        print_error(f"a defect of doctor: {type(error).__name__}: {error}", "sextant doctor")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
