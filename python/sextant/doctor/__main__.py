"""``python -m sextant.doctor``: the command line of doctor. Exit status: 0 sound, 1 findings, 2 the
model cannot be judged or the command line is wrong."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import warnings

from .._printable import print_error
from .._write_file import write_file
from .page import page_of
from .reading import ReadingError, command
from .report import UNJUDGED, EXIT_STATUS, Report, Unjudged
from .subject import SubjectError, resolve
from .table import text_of


def _options() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(
        prog="sextant doctor",
        description="Is position right in the model that runs? Compares every attention layer with "
        "what the configuration means.",
        epilog="Exit status: 0 sound, 1 findings, 2 cannot be judged.")
    options.add_argument("subjects", nargs="+", metavar="MODEL",
                         help="a folder with config.json, or the name of a model in Hugging Face's "
                         "cache; a GGUF file; two files: what changed from the first to the second")
    options.add_argument("--weights", action="store_true",
                         help="load the weights and examine the whole model; otherwise a small "
                         "model is built from the configuration")
    options.add_argument("--trust-remote-code", action="store_true",
                         help="run the code that the folder has beside its configuration")
    options.add_argument("--json", action="store_true", help="the report for programs")
    options.add_argument("--html", metavar="FILE", help="also write the report as a page")
    return options


def _is_gguf(path: pathlib.Path) -> bool:
    if path.suffix.lower() == ".gguf" or not path.is_file():
        return path.suffix.lower() == ".gguf"
    try:
        with open(path, "rb") as file:
            return file.read(4) == b"GGUF"
    except OSError:
        return False


def _is_of_the_command(subjects: list[str]) -> bool:
    """Whether no Python is needed: a GGUF file, a folder with one and no config.json, or two
    files."""
    path = pathlib.Path(subjects[0])
    if path.is_dir() and not (path / "config.json").exists():
        return len(subjects) == 2 or any(path.glob("*.gguf"))
    return len(subjects) == 2 or (not path.is_dir() and _is_gguf(path))


def _run_command(given: argparse.Namespace) -> int:
    for option, value in (("--weights", given.weights),
                          ("--trust-remote-code", given.trust_remote_code)):
        if value:
            raise ReadingError(f"{option}: expected the folder of a model of transformers, but got "
                               f"{' and '.join(given.subjects)}, which no code is run for")
    line = [command(), "doctor", *given.subjects]
    line += ["--json"] if given.json else []
    line += ["--html", given.html] if given.html else []
    return subprocess.run(line, check=False).returncode


def _quiet() -> None:
    warnings.simplefilter("ignore")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")


def _examine(given: argparse.Namespace) -> Report:
    name = given.subjects[0]
    try:
        folder = resolve(name)
        for package in ("numpy", "torch", "transformers"):
            if importlib.util.find_spec(package) is None:
                raise SubjectError(f"expected torch and transformers, but this Python "
                                   f"({sys.executable}) has no {package}; SEXTANT_PYTHON names "
                                   "another")
        from . import live
        return live.examine_folder(folder, given.weights, given.trust_remote_code)
    except (SubjectError, ReadingError) as error:
        return Report(name, "config.json", unjudged=[Unjudged((), "model", str(error))])


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line and returns the exit status."""
    options = _options()
    given = options.parse_args(arguments)
    if len(given.subjects) > 2:
        options.error(f"expected one or two of MODEL, but got {len(given.subjects)}")
    try:
        if given.html and not pathlib.Path(given.html).absolute().parent.is_dir():
            raise ReadingError(f"--html: expected a file in a folder that exists, but got "
                               f"{given.html}")
        if _is_of_the_command(given.subjects):
            return _run_command(given)
        _quiet()
        report = _examine(given)
        if given.html:
            write_file(given.html, page_of(report))
    except (ReadingError, OSError) as error:
        print_error(error, "sextant doctor")
        return EXIT_STATUS[UNJUDGED]
    except Exception as error:  # pylint: disable=broad-except
        print_error(f"a defect of doctor: {type(error).__name__}: {error}", "sextant doctor")
        return EXIT_STATUS[UNJUDGED]
    if given.json:
        print(json.dumps(report.to_json(), indent=1))
    else:
        print(text_of(report), end="")
    return report.exit_status


if __name__ == "__main__":
    sys.exit(main())
