#!/usr/bin/env python3
"""Runs every feature of a call of attention, and writes docs/python.md's table of what works.

usage: draw_features.py [--check]

The features are the functions of call.py (arguments) and torch_features.py (torch). Each returns
the pairs (got, expected) that must agree, or raises the error of a refusal. Its docstring is the
feature's line in the table; its group and its least torch are arguments of `feature`. A feature
works if its pairs agree, and is refused if it raises RuntimeError; the table has the error's
sentence. Writing needs torch 2.6 or later; --check writes nothing, leaves out features that need a
later torch than there is, and fails if a line differs. It needs a built library (python/sextant
finds it).
"""
import argparse
import difflib
import pathlib
import sys

import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "python")]

import page_blocks  # noqa: E402  (this and the next need the path above)
import call  # noqa: E402, F401
import torch_features  # noqa: E402, F401
from common import FEATURES  # noqa: E402

PAGE = ROOT / "docs/python.md"
TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-5}
VERSION = tuple(int(part) for part in torch.__version__.split(".")[:2])
LONGEST = 150  # of a sentence


def first_sentence(error):
    """The error without the stack of C++ that torch appends."""
    text = str(error).split("\nException raised from")[0].split("\n")[0].replace("|", "\\|")
    return text if len(text) <= LONGEST else text[:LONGEST].rsplit(" ", 1)[0] + " ..."


def outcome(function):
    """"works", or "refused: SENTENCE". Raises AssertionError if a result is wrong."""
    torch.manual_seed(0)
    try:
        pairs = function()
    except RuntimeError as error:
        return f"refused: {first_sentence(error)}"
    if not pairs:
        raise AssertionError(f"{function.__name__}: expected an error, but got a result")
    for got, expected in pairs:
        close = TOLERANCE.get(got.dtype, 1e-5)
        if function.__name__ == "types":  # 16-bit results, compared in float64
            close = 0.03
        torch.testing.assert_close(got, expected, rtol=0, atol=close, check_dtype=False)
    return "works"


def table(old):
    """The lines of the table; those of features that need a later torch are taken from `old`."""
    lines, group = [], None
    for name, line, least, function in FEATURES:
        if name != group:
            group = name
            lines += ["", f"| {group} | outcome |", "| --- | --- |"]
        if VERSION >= least:
            lines.append(f"| {line}{since(least)} | {outcome(function)} |")
        else:
            kept = [x for x in old if x.startswith(f"| {line}{since(least)} | ")]
            lines += kept or [f"| {line} | not run |"]
    return "\n".join(lines[1:])


def since(least):
    return "" if least == (1, 13) else f" (torch {least[0]}.{least[1]})"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="fail if the table is out of date")
    check = parser.parse_args().check
    if not check and VERSION < (2, 6):
        sys.exit(f"expected torch 2.6 or later for all features, but got {torch.__version__}")
    page = PAGE.read_text(encoding="utf-8")
    new = page_blocks.filled(page, "features", lambda _: f"\n{table(page.splitlines())}\n\n")
    sys.stdout.writelines(line + "\n" for line in difflib.unified_diff(
        page.splitlines(), new.splitlines(), n=0, lineterm=""))
    script = "tests/features/draw_features.py with torch 2.6 or later"
    return page_blocks.write({PAGE: new}, check, script)


if __name__ == "__main__":
    sys.exit(main())
