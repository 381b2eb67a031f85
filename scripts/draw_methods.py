#!/usr/bin/env python3
"""Writes the lists of methods from their pages, docs/methods/NAME.md.

    scripts/draw_methods.py                       rewrites the lists that differ
    scripts/draw_methods.py --check               writes nothing, and fails if a list differs
    scripts/draw_methods.py --pictures [COMMAND]  also draws the pictures of the pages with the
                                                  command sextant, by default build/release's

The lists are the tables of docs/methods/index.md and index.zh.md, the pages of mkdocs.yml's `nav`,
and the number of methods in README.md and docs/index.md. A page ends with its row of the tables:

    <!-- index
    group: bias                     (the NAME of `<!-- methods:NAME -->` in index.md)
    order: 20                       (within the group; without it, last, by name)
    line: linear in distance
    past: holds its loss            (past the trained length)
    line zh: ...
    past zh: ...
    -->

A page without Chinese has its English line in the Chinese table. A comment behind a picture has the
command that draws it, and the name of the figure: `<!-- sextant plot alibi: distance -->`.
"""
import argparse
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

from page_blocks import ROOT, filled, table, write

DOCS = ROOT / "docs"
INDEX = DOCS / "methods/index.md"
FIELDS = {"group", "order", "line", "past", "line zh", "past zh", "link", "link zh"}
HEADS = {"": ("method", "in a line", "past the trained length"),
         " zh": ("方法", "一句话", "超过训练长度")}
PICTURE = re.compile(r"\]\(\.\./images/methods/([\w-]+\.svg)\)\n"
                     r"<!-- sextant plot (.*?):\s([\w-]+) -->", re.S)


def titles():
    """{group: its heading in the index}"""
    text = INDEX.read_text(encoding="utf-8")
    found = re.findall(r"^## (.*)\n\n<!-- methods:([\w-]+) -->", text, re.M)
    return {group: title for title, group in found}


def rows():
    """{group: [row]} of all pages; a row has the fields of its page, and `name`."""
    groups = {group: [] for group in titles()}
    for path in sorted((DOCS / "methods").glob("*.md")):
        if path.stem.startswith("index"):
            continue
        found = re.search(r"^<!-- index\n(.*?)^-->$", path.read_text(encoding="utf-8"), re.M | re.S)
        lines = re.sub(r"\n +", " ", found[1]).splitlines() if found else []
        row = {"name": path.stem, **dict(line.split(": ", 1) for line in lines)}
        if not {"group", "line", "past"} <= row.keys() <= FIELDS | {"name"}:
            raise SystemExit(f"{path}: expected a comment `<!-- index` with group, line and past "
                             f"(and any of {', '.join(sorted(FIELDS))}), but got {row}")
        if row["group"] not in groups:
            raise SystemExit(f"{path}: group: expected one of {', '.join(groups)}, but got "
                             f"{row['group']}")
        groups[row["group"]].append(row)
    for each in groups.values():
        each.sort(key=lambda row: (int(row.get("order", 10**9)), row["name"]))
    return groups


def index(page, groups, language):
    def cells(row):
        link = row.get(f"link{language}", f"[{row['name']}]({row['name']}.md)")
        return link, *(row.get(field + language, row[field]) for field in ("line", "past"))

    return filled(page, "methods",
                  lambda group: table(HEADS[language], [cells(row) for row in groups[group]]))


def nav(page, groups):
    """mkdocs.yml with the pages of each group; links to other words are elsewhere in its nav."""
    lines = [line for group, title in titles().items() for line in (
        f"      - {title}:",
        *(f"          - {row['name']}: methods/{row['name']}.md" for row in groups[group]
          if "link" not in row))]
    return replaced(r"(?<=# methods\n).*?(?= +# /methods)", "\n".join(lines) + "\n", page)


def replaced(pattern, text, page):
    page, count = re.subn(pattern, lambda _: text, page, flags=re.S)
    if count != 1:
        raise SystemExit(f"draw_methods: expected one place like {pattern}, but got {count}")
    return page


def files():
    groups = rows()
    methods = sum("link" not in row for each in groups.values() for row in each)
    drawn = {
        INDEX: lambda page: index(page, groups, ""),
        DOCS / "methods/index.zh.md": lambda page: index(page, groups, " zh"),
        ROOT / "mkdocs.yml": lambda page: nav(page, groups),
        **{path: lambda page: replaced(r"\d+(?= methods as one fused)", str(methods), page)
           for path in (ROOT / "README.md", DOCS / "index.md")},
    }
    return {path: draw(path.read_text(encoding="utf-8")) for path, draw in drawn.items()}


def draw_pictures(command):
    for page in sorted((DOCS / "methods").glob("*.md")):
        for picture, words, figure in PICTURE.findall(page.read_text(encoding="utf-8")):
            method, *options = shlex.split(words)
            with tempfile.TemporaryDirectory() as folder:
                subprocess.run([command, "plot", method, *options, "--as", "svg", "--out",
                                folder], check=True, stdout=subprocess.DEVNULL)
                # Other figures' names may end alike: distance, explained-distance.
                drawn = min(pathlib.Path(folder).glob(f"{method}*-{figure}.svg"),
                            key=lambda path: len(path.name))
                shutil.copy(drawn, DOCS / "images/methods" / picture)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="fail if a list is out of date")
    parser.add_argument("--pictures", metavar="COMMAND", nargs="?",
                        const=str(ROOT / "build/release/bin/sextant"), help="draw the pictures")
    options = parser.parse_args()
    if options.pictures:
        draw_pictures(options.pictures)
    return write(files(), options.check, "scripts/draw_methods.py")


if __name__ == "__main__":
    sys.exit(main())
