"""Writes docs/rotary-axes.md: the tables of models are drawn from the family tables.

usage: draw_axes.py [--check]

--check writes nothing and fails if the page is stale.
"""
import json
import sys

from page_blocks import ROOT, filled, table, write

FAMILIES = ROOT / "sextant/rope_config/families"
PAGE = ROOT / "docs/rotary-axes.md"


def vision():
    return json.loads((FAMILIES / "vision.json").read_text(encoding="utf-8"))


def types_of(row):
    return ", ".join(f"`{kind}`" for kinds in row["models"].values() for kind in kinds)


def forms():
    """A row for each form: order and pairing, and the parts that have it."""
    found = {}
    for row in vision()["rotating"]:
        first = f"from {row['first_index']}" if row.get("first_index") else "from 0"
        key = (row["form"], ", ".join(row["axes"]), f'"{row["order"]}"', row["pairing"],
               "in [-1, 1]" if row.get("normalised") else first)
        found.setdefault(key, []).append(types_of(row))
    rows = [[*key, ", ".join(kinds)] for key, kinds in sorted(found.items())]
    return table(["form", "axes", "`axes` of rope", "pairing", "coordinates", "parts"], rows)


def more():
    """Windows, tables and tokens that the parts of a row have besides."""
    names = {"first_token": "first token", "last_token": "last token", "adds": "added",
             "where": "where"}
    rows = [[types_of(row), "; ".join(
        [f"{words}: {row[key]}" for key, words in names.items() if key in row]
        + (["windows"] if "window" in row else []))]
            for row in vision()["rotating"]]
    return table(["parts", "besides the rotation"], [row for row in rows if row[1]])


def unrotated():
    rows = [[words, ", ".join(f"`{kind}`" for kinds in folders.values() for kind in kinds)]
            for words, folders in vision()["unrotated"].items()]
    return table(["positions", "parts"], rows)


def mrope():
    """The language models whose code has sections of pairs by default."""
    families = json.loads((FAMILIES / "transformers.json").read_text(encoding="utf-8"))["families"]
    found = {}
    for row in families:
        defaults = row.get("defaults", {})
        if "mrope_section" not in defaults:
            continue
        order = "plane-first" if "mrope_plane_first" in defaults else \
            "interleaved" if "mrope_interleaved" in defaults else "blocks"
        sections = ", ".join(map(str, defaults["mrope_section"]))
        found.setdefault((f'"{order}"', sections), []).extend(f"`{kind}`" for kind in row["types"])
    return table(["`axes` of rope", "`mrope_section` of the code", "language models"],
                 [[*key, ", ".join(kinds)] for key, kinds in sorted(found.items())])


DRAWN = {"forms": forms, "more": more, "unrotated": unrotated, "mrope": mrope}


def main() -> int:
    page = filled(PAGE.read_text(encoding="utf-8"), "axes", lambda name: DRAWN[name]())
    return write({PAGE: page}, "--check" in sys.argv[1:], "scripts/draw_axes.py")


if __name__ == "__main__":
    sys.exit(main())
