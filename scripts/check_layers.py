#!/usr/bin/env python3
"""Checks that each folder of sextant/ includes only headers of the layers below it, and that files
are written and lines printed in one place each.

Prints file:line for each line that breaks a rule. The layers are those of HACKING.md. With
them, an engine can use the core without libtorch, and the command starts without loading it. A
folder that is not named here follows the rule of the nearest folder above it.
"""
import pathlib
import re
import sys

CORE = {"base", "position", "attention", "cache"}
TILE_SEES = {"arena", "phases", "row_map", "sizes"}
MAY_SEE = {
    "base": set(),
    "position": {"base"},
    "attention": {"base", "position"},
    "attention/cpu/tile": {"base", "position", *(f"attention/cpu/{name}.h" for name in TILE_SEES)},
    "attention/cpu/score": {
        "base", "position", "attention/cpu/tile", "attention/cpu/panels.h",
        "attention/cpu/visibility.h", "attention/dropout_words.h"
    },
    "files": {"base"},
    "cache": {"base", "position", "attention", "files"},
    "c": {*CORE},
    "c/config": {*CORE, "c", "rope_config"},
    "dense": {"base"},
    "chart": {"base", "files"},
    "rope_config": {"base", "position", "files"},
    "torch": {*CORE, "files", "rope_config"},
    "models": {*CORE, "dense", "files", "rope_config", "torch"},
    # The folders of the laboratory without libtorch may include only the options of a model.
    "lab": {
        "base", "position", "files", "chart", "rope_config", "models/decoder/decoder_options.h"
    },
    "lab/torch": {*CORE, "dense", "files", "rope_config", "torch", "models", "lab"},
    "cli": {"base", "position", "attention", "files", "chart", "rope_config", "lab"},
}
# Folders and libraries whose headers only these folders may include.
ONLY_FOR = {
    "torch": {"torch", "models", "lab/torch"},
    "ATen": {"torch", "models", "lab/torch"},
    "c10": {"torch", "models", "lab/torch"},
    "hwy": {"base/simd", "attention", "dense"},
    "nlohmann": {"files", "chart", "rope_config", "c/config", "torch", "models", "lab", "cli"},
    "CLI": {"cli"},
    "fmt": {"chart", "rope_config", "torch", "models", "lab", "cli"},
    # The headers of a backend, of the laboratory's plug-in and of the bindings are private to them.
    "sextant/attention/cpu": {"attention/cpu"},
    "sextant/attention/reference": {"attention/reference"},
    "sextant/lab/torch": {"lab/torch"},
    "sextant/torch/bindings": {"torch/bindings"},
}
# Calls that only these files may have: others would lose a file when a write fails, or pass control
# characters of a foreign text on to a terminal.
ONLY_IN = {
    "sextant": [
        (re.compile(r"\b(fopen|freopen)\(|\bofstream\b|std::fstream\b|O_TRUNC|fs::copy|"
                    r"filesystem::copy|\bmkstemp\("),
         "write_file()", {"files/write_file.cc", "lab/run/arm_lock.cc"}),
        (re.compile(r"fmt::print|\b(printf|fprintf|puts|fputs|fwrite|putchar)\(|"
                    r"std::(cout|cerr|clog)"),
         "lab/run/print.h", {"lab/run/print.cc", "lab/run/progress.cc", "chart/raster.cc"}),
    ],
    "python/sextant": [
        (re.compile(r"\.write_(text|bytes)\(|open\([^()]*, *[\"'][wx]"), "write_file()",
         {"_write_file.py"}),
    ],
}
INCLUDE = re.compile(r'\s*#\s*include\s*[<"]([^>"]+)[>"]')


def inside(path, folders):
    """Whether `path` is one of `folders` or lies in one."""
    return any(path == folder or path.startswith(folder + "/") for folder in folders)


def complaint(folder, header):
    """The reason why a file in `folder` may not include `header`, or None if it may."""
    for owned, owners in ONLY_FOR.items():
        if header.startswith(owned + "/") and not inside(folder, owners):
            return f"{folder} may not include {owned}/..., only {', '.join(sorted(owners))}"
    if not header.startswith("sextant/"):
        return None  # the standard library or a system header
    other = header.removeprefix("sextant/")
    layer = max((name for name in MAY_SEE if inside(folder, {name})), key=len)
    if "/" not in other or inside(other, {layer, *MAY_SEE[layer]}):
        return None
    return f"{layer} may not see {other}, only {', '.join(sorted(MAY_SEE[layer])) or 'itself'}"


def calls(root):
    """The lines that write or print elsewhere than in the one place for it."""
    for top, rules in ONLY_IN.items():
        for file in sorted((root / top).rglob("*")):
            if file.suffix not in (".h", ".cc", ".py"):
                continue
            for number, line in enumerate(file.read_text().splitlines(), 1):
                code = line.split("//")[0]
                for pattern, way, files in rules:
                    if pattern.search(code) and str(file.relative_to(root / top)) not in files:
                        yield f"{file.relative_to(root)}:{number}: {line.strip()}: use {way}"


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    files = [
        f for f in sorted((root / "sextant").rglob("*")) if re.search(r"\.(h|cc)(\.in)?$", f.name)
    ]
    wrong = 0
    for file in files:
        folder = file.parent.relative_to(root / "sextant").as_posix()
        if folder == ".":
            continue  # sextant/version.h belongs to all
        if folder.split("/")[0] not in MAY_SEE:
            sys.exit(f"{file.relative_to(root)}: the folder is no layer; name it in {__file__}")
        for number, line in enumerate(file.read_text().splitlines(), 1):
            found = INCLUDE.match(line)
            why = complaint(folder, found[1]) if found else None
            if why:
                wrong += 1
                print(f"{file.relative_to(root)}:{number}: {found[1]}: {why}")
    for line in calls(root):
        wrong += 1
        print(line)
    if not files:
        sys.exit(f"no sources under {root}/sextant")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
