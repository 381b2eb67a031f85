#!/usr/bin/env python3
"""Fills the drawn blocks of pages of docs with what `sextant report` prints, and their figures.

    scripts/draw_pages.py [--check]           rewrites them; with --check it writes nothing, and
                                              fails if one is stale
    scripts/draw_pages.py --keep FOLDER FILE  keeps the results of a finished survey for pages,
                                              without the details of arms

With --program PATH another sextant than build/release/bin/sextant. A block is the lines between
`<!-- sextant report ARGUMENTS -->` and `<!-- /sextant -->`; its command runs in docs.
"""
import argparse
import datetime
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

import page_blocks
from page_blocks import ROOT

DOCS = ROOT / "docs"
BLOCK = re.compile(r"(<!-- sextant (report .*?) -->\n).*?(<!-- /sextant -->)", re.DOTALL)
DETAILS = ("loss_at", "train_loss", "attention", "pictures", "message", "sliding_blocks", "right")


def linked(line):
    """The line of a table whose first cell names a method, with a link to the method's page."""
    found = re.match(r"\| (`([\w-]+)[^`]*`)", line)
    if not found:
        return line
    page, stretches = DOCS / f"methods/{found[2]}.md", DOCS / "methods/stretches.md"
    if not page.exists():
        page = stretches if f"`{found[2]}`" in stretches.read_text(encoding="utf-8") else None
    if page is None:
        return line
    return f"| [{found[1]}]({page.relative_to(DOCS)}){line[found.end():]}"


def drawn(program, folder):
    """{path: content} of the pages that have blocks, and of the figures of these; None for a figure
    beside them that no block draws."""
    def block(found):
        words = []
        for word in shlex.split(found[2]):
            words += sorted(str(path.relative_to(folder)) for path in folder.glob(word)
                            ) if "*" in word else [word]
        done = subprocess.run([program, *words, "--markdown"], cwd=folder, capture_output=True,
                              text=True)
        if done.returncode:
            sys.exit(f"sextant {found[2]}: {done.stderr.strip()}")
        return found[1] + "\n".join(map(linked, done.stdout.split("\n"))) + found[3]

    (folder / "data").symlink_to(DOCS / "data")
    pages = {path: path.read_text(encoding="utf-8") for path in sorted(DOCS.glob("*.md"))}
    files = {path: BLOCK.sub(block, text) for path, text in pages.items() if BLOCK.search(text)}
    for path in sorted(folder.glob("figures/**/*.svg")):
        files[DOCS / path.relative_to(folder)] = path.read_text(encoding="utf-8")
    for beside in {path.parent for path in files if path.suffix == ".svg"}:
        for path in beside.glob("*.svg"):
            files.setdefault(path, None)
    return files


def without_details(value):
    if isinstance(value, list):
        return [without_details(each) for each in value]
    if isinstance(value, dict):
        return {key: without_details(each) for key, each in value.items() if key not in DETAILS}
    return round(value, 6) if isinstance(value, float) else value


def keep(folder, file):
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    newest = max(path.stat().st_mtime for path in folder.glob("arms/*/result.json"))
    day = datetime.datetime.fromtimestamp(newest, datetime.timezone.utc).date()
    kept = {"command": (folder / "command.txt").read_text(encoding="utf-8"), "date": str(day),
            **{key: results[key] for key in ("sextant", "settings", "text", "reference")}}
    lines = [f' "{key}": {json.dumps(value)}' for key, value in kept.items()]
    for key in ("arms", "summary", "verdicts", "claims"):
        rows = ",\n  ".join(json.dumps(without_details(row)) for row in results[key])
        lines.append(f' "{key}": [\n  {rows}\n ]')
    file.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--keep", nargs=2, type=pathlib.Path, metavar=("FOLDER", "FILE"))
    parser.add_argument("--program", default=str(ROOT / "build/release/bin/sextant"))
    given = parser.parse_args()
    if given.keep:
        keep(*given.keep)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        files = drawn(given.program, pathlib.Path(folder))
    return page_blocks.write(files, given.check, "scripts/draw_pages.py")


if __name__ == "__main__":
    sys.exit(main())
