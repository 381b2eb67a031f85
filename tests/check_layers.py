#!/usr/bin/env python3
"""Checks that each folder of sextant/ includes only headers of the layers below it, that no two
headers define a type of one name, and that files are written and lines printed in one place each.

    tests/check_layers.py           prints file:line for each line that breaks a rule
    tests/check_layers.py --write   draws the layers into docs/internals/index.md, which the check
                                    compares

With the layers, an engine can use the core without libtorch, and the command starts without loading
it. A folder that is not named here follows the rule of the nearest folder above it.
"""
import collections
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "scripts"))

import page_blocks  # noqa: E402  (needs the path above)

# From the lowest layer to the highest: what each has, and the layers and headers that it may see.
# Layers see only layers before them.
LAYERS = {
    "base": ("errors, executors, strided views, SIMD", ""),
    "position": ("spectra, phases, buckets, frames", "base"),
    "attention": ("the equation, plans, backends", "base position"),
    "attention/cpu/tile": ("tiles of scores and softmax",
                           "base position " + " ".join(
                               f"attention/cpu/{name}.h"
                               for name in ("arena", "phases", "row_map", "sizes"))),
    "attention/cpu/score": ("scores of the tiles",
                            "base position attention/cpu/tile attention/cpu/panels.h "
                            "attention/cpu/visibility.h attention/dropout_words.h"),
    "files": ("JSON, gzip, files written whole or not", "base"),
    "cache": ("keys and values in pages", "base position attention files"),
    "dense": ("products, norms, AdamW", "base"),
    "chart": ("charts, heat maps, HTML reports", "base files"),
    "rope_config": ("readers and writers of rotary settings", "base position files"),
    "c": ("the C API", "base position attention cache"),
    "c/config": ("the C API of configurations", "base position attention cache rope_config c"),
    "torch": ("operators with autograd, methods/",
              "base position attention cache files rope_config"),
    "models": ("checkpoints, whole transformers",
               "base position attention cache files dense rope_config torch"),
    # The laboratory without libtorch sees only the options of a model.
    "lab/data": ("text and small tasks", "base files"),
    "lab/plan": ("settings, arms, manifests",
                 "base files rope_config models/decoder/decoder_options.h lab/data"),
    "lab/result": ("results, means, candidates", "base files rope_config lab/data lab/plan"),
    "lab/run": ("workers, schedules, trainings", "base files lab/data lab/plan lab/result"),
    "lab/report": ("tables, charts, claims, pages",
                   "base files chart lab/data lab/plan lab/result lab/run"),
    "lab/survey": ("a survey: arms, then the report",
                   "base files chart lab/data lab/plan lab/result lab/run lab/report"),
    "lab/torch": ("the plug-in with libtorch",
                  "base position attention cache files dense rope_config torch models lab/data "
                  "lab/plan lab/result lab/run"),
    "cli": ("the command",
            "base position attention files chart rope_config lab/data lab/plan lab/result lab/run "
            "lab/report lab/survey"),
}
MAY_SEE = {name: set(seen.split()) for name, (_, seen) in LAYERS.items()}
PAGE = page_blocks.ROOT / "docs/internals/index.md"
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
         "lab/run/print.h", {"lab/run/print.cc", "chart/raster.cc"}),
    ],
    "python/sextant": [
        (re.compile(r"\.write_(text|bytes)\(|open\([^()]*, *[\"'][wx]"), "write_file()",
         {"_write_file.py"}),
    ],
}
INCLUDE = re.compile(r'\s*#\s*include\s*[<"]([^>"]+)[>"]')
NAMESPACE = re.compile(r"namespace(?: ([\w:]+))? \{")
# A definition that is no member: at the beginning of a line, with a brace or a base class.
DEFINITION = re.compile(r"(?:struct|class|union|enum(?: class)?) (?:SEXTANT_\w+ )?(\w+)(?: final)?"
                        r" *(?:\{|:[^:;]*$|: [^;]*\{)")


def inside(path, folders):
    """Whether `path` is one of `folders` or lies in one."""
    return any(path == folder or path.startswith(folder + "/") for folder in folders)


def layer_of(folder):
    """The layer of a folder, or None."""
    return max((name for name in LAYERS if inside(folder, {name})), key=len, default=None)


def complaint(folder, header):
    """The reason why a file in `folder` may not include `header`, or None if it may."""
    for owned, owners in ONLY_FOR.items():
        if header.startswith(owned + "/") and not inside(folder, owners):
            return f"{folder} may not include {owned}/..., only {', '.join(sorted(owners))}"
    if not header.startswith("sextant/"):
        return None  # the standard library or a system header
    other = header.removeprefix("sextant/")
    layer = layer_of(folder)
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


def types(text):
    """The qualified names of the types that a header defines in namespaces."""
    spaces = []
    for line in text.splitlines():
        if opened := NAMESPACE.match(line):
            spaces.append(opened[1] or "")
        elif line.startswith("}  // namespace"):
            spaces.pop()
        elif (defined := DEFINITION.match(line)) and all(spaces):
            yield "::".join([*spaces, defined[1]])


def homonyms(headers):
    """Types that two headers define, by their qualified names: one of them is linked for both."""
    definitions = collections.defaultdict(list)
    for name, text in headers.items():
        for each in sorted(set(types(text))):
            definitions[each].append(name)
    return [f"{names[1]}: {each} is a type of {names[0]}, too"
            for each, names in definitions.items() if len(names) > 1]


def picture():
    """The layers as a matrix: x where the row's folder may include the column's, o for one header
    of it."""
    letters = dict(zip(LAYERS, "abcdefghijklmnopqrstuvwxyz"))
    width = max(map(len, LAYERS))
    lines = ["```", " " * (width + 3) + " ".join(letters.values())]
    for name, (content, _) in LAYERS.items():
        seen = {layer_of(other): "x" if other in LAYERS else "o" for other in MAY_SEE[name]}
        marks = {**seen, name: "\\"}
        cells = " ".join(marks.get(other, " ") for other in LAYERS)
        lines.append(f"{letters[name]} {name:<{width}} {cells}   {content}".rstrip())
    return "\n".join([*lines, "```"]) + "\n"


def main():
    write = sys.argv[1:] == ["--write"]
    if sys.argv[1:] and not write:
        sys.exit(__doc__)
    page = page_blocks.filled(PAGE.read_text(encoding="utf-8"), "layers", lambda _: picture())
    wrong = page_blocks.write({PAGE: page}, not write, "tests/check_layers.py --write")
    root = page_blocks.ROOT
    files = [
        f for f in sorted((root / "sextant").rglob("*")) if re.search(r"\.(h|cc)(\.in)?$", f.name)
    ]
    headers = {}
    for file in files:
        name = file.relative_to(root).as_posix()
        text = file.read_text()
        if file.suffix == ".h":
            headers[name] = text
        folder = file.parent.relative_to(root / "sextant").as_posix()
        if folder == ".":
            continue  # sextant/version.h belongs to all
        if layer_of(folder) is None:
            sys.exit(f"{name}: the folder is no layer; name it in {__file__}")
        for number, line in enumerate(text.splitlines(), 1):
            found = INCLUDE.match(line)
            why = complaint(folder, found[1]) if found else None
            if why:
                wrong += 1
                print(f"{name}:{number}: {found[1]}: {why}")
    for line in [*homonyms(headers), *calls(root)]:
        wrong += 1
        print(line)
    if not files:
        sys.exit(f"no sources under {root}/sextant")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
