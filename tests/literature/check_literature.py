#!/usr/bin/env python3
"""Checks statements of docs/literature.md against the library: check_literature.py [NAME ...]

Without a name it runs all checks; --list lists them. --numbers compares every number of the pages
with its data, as draw_literature.py does, and --keep writes the numbers of checks that the pages
quote to docs/data/literature/checks.json; a check that finds another one does not hold. A check
computes a statement twice, once as the paper or the notes print it, in float64 on small random
data, and once by the library, and prints the largest difference. The exit status is 1 if a
statement does not hold.
"""
import inspect
import json
import math
import pathlib
import sys

if __name__ == "__main__" and sys.argv[1:] == ["--numbers"]:  # needs Python 3.11, and no torch
    import draw_literature
    sys.exit(draw_literature.compare_numbers())
try:
    import torch

    from common import Failed  # first: it finds the package sextant
    import absolute
    import relative
    import rotary
except ModuleNotFoundError as error:
    sys.exit(f"check_literature.py: {error}: expected a Python with torch, that of the build, and "
             "NumPy")

KEPT = pathlib.Path(__file__).resolve().parents[2] / "docs/data/literature/checks.json"


def checks():
    return {name.replace("_", "-"): function
            for module in (absolute, relative, rotary)
            for name, function in inspect.getmembers(module, inspect.isfunction)
            if getattr(function, "is_check", False)}


def run(name, check):
    torch.manual_seed(0)
    try:
        found = check()
    except Failed as error:
        print(f"{name}: does not hold: {error}")
        return False
    print(f"{name}: {check.__doc__.strip().splitlines()[0]}")
    for text, value in found:
        shown = value if isinstance(value, str) else f"{value:.3g}"
        print(f"  {text}: {shown}")
        if not isinstance(value, str) and not math.isfinite(value):
            return False
    kept, found = json.loads(KEPT.read_text("utf-8")).get(name, {}), dict(found)
    stale = [text for text in kept if not math.isclose(kept[text], found[text], rel_tol=1e-3)]
    for text in stale:
        print(f"  {text}: the pages quote {kept[text]:g}; run check_literature.py --keep")
    return not stale


def keep(quoted):
    """Writes the numbers that the pages quote, by their keys."""
    kept = {}
    for source, name, words in quoted:
        if source == "check":
            torch.manual_seed(0)
            kept.setdefault(name, {})[words] = float(f"{dict(checks()[name]())[words]:.6g}")
    KEPT.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", "utf-8")


def main(arguments):
    known = checks()
    if arguments == ["--list"]:
        for name, check in known.items():
            print(f"{name:<22} {check.__doc__.strip().splitlines()[0]}")
        return 0
    if arguments == ["--keep"]:
        import draw_literature  # needs Python 3.11
        return keep(draw_literature.quoted_numbers())
    unknown = [name for name in arguments if name not in known]
    if unknown:
        expected = f"expected one of {', '.join(known)}"
        print(f"check_literature.py: name: {expected}, but got {unknown[0]}", file=sys.stderr)
        return 2
    torch.set_num_threads(1)
    return 0 if all([run(name, known[name]) for name in arguments or known]) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
