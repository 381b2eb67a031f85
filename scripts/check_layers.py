#!/usr/bin/env python3
"""Each folder of sextant/ includes only what its layer may see. Prints file:line for what it may not.

The layers are those of HACKING.md. That they hold is what lets an engine take the core without libtorch,
and lets the command start without loading it.
"""
import pathlib
import re
import sys

MAY_SEE = {
    "position": set(),
    "attention": {"position"},
    "files": {"position", "attention"},
    "dense": {"attention"},
    "chart": {"files"},
    "rope_config": {"position", "files"},
    "torch": {"position", "attention", "files", "rope_config"},
    "models": {"position", "attention", "dense", "files", "rope_config", "torch"},
    "lab": {"position", "attention", "dense", "files", "chart", "rope_config", "torch", "models"},
    "cli": {"position", "attention", "files", "chart", "rope_config", "lab"},
}
# Libraries that only these layers may include, by the first part of the path.
OWNERS = {
    "torch": {"torch", "models", "lab"},
    "ATen": {"torch", "models", "lab"},
    "c10": {"torch", "models", "lab"},
    "hwy": {"attention", "dense"},
    "nlohmann": {"chart", "rope_config", "torch", "models", "lab", "cli"},
    "CLI": {"cli"},
    "fmt": {"chart", "rope_config", "torch", "models", "lab", "cli"},
}
INCLUDE = re.compile(r'\s*#\s*include\s*[<"]([^>"]+)[>"]')


def complaint(layer, folder, header):
    """Why a file of `layer`, lying in `folder`, may not include `header`; or None."""
    first, *rest = header.split("/")
    if first in OWNERS and rest and layer not in OWNERS[first]:
        return f"{layer} may not include <{first}/...>, only {', '.join(sorted(OWNERS[first]))}"
    if first != "sextant" or len(rest) < 2:
        return None  # the standard library, a system header, or sextant/error.h
    other = rest[0]
    if other != layer and other not in MAY_SEE[layer]:
        return f"{layer} may not see {other}, only {', '.join(sorted(MAY_SEE[layer])) or 'itself'}"
    inside = rest[:-1]  # a backend's own headers are its own
    if inside[:1] == ["attention"] and len(inside) > 1 and folder[: len(inside)] != inside:
        return f"{'/'.join(inside)} is a backend: its headers are its own"
    return None


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    files = [f for f in sorted((root / "sextant").rglob("*")) if re.search(r"\.(h|cc)(\.in)?$", f.name)]
    wrong = 0
    for file in files:
        folder = file.relative_to(root / "sextant").parts[:-1]
        if not folder:
            continue  # sextant/error.h belongs to all
        if folder[0] not in MAY_SEE:
            sys.exit(f"{file.relative_to(root)}: the folder is no layer; name it in {__file__}")
        for number, line in enumerate(file.read_text().splitlines(), 1):
            found = INCLUDE.match(line)
            why = complaint(folder[0], list(folder), found[1]) if found else None
            if why:
                wrong += 1
                print(f"{file.relative_to(root)}:{number}: {found[1]}: {why}")
    if not files:
        sys.exit(f"no sources under {root}/sextant")
    sys.exit(1 if wrong else 0)


main()
