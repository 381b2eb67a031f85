"""Writes docs/engines.md from sextant/rope_config/engines/engines.json.

usage: draw_engines.py [--check]

--check writes nothing and fails if the page is stale.
"""
import json
import sys

from page_blocks import ROOT, table, write

TABLE = ROOT / "sextant/rope_config/engines/engines.json"
PAGE = ROOT / "docs/engines.md"

HEAD = """# Which engine reads this how

Engines read the same fields differently, and change what they do with them. Each row was read in
the source named there, in the version named there; other versions may differ.
The page is drawn from `sextant/rope_config/engines/engines.json` by `scripts/draw_engines.py`.
[explain](explain.md) quotes these rows in its warnings.
"""


def section(engine: str, facts: list[dict[str, str]]) -> str:
    rows = [[fact[key].replace("|", "\\|") for key in ("key", "does", "versions", "source", "date")]
            for fact in facts]
    head = ["setting", "what it does", "versions", "source", "read"]
    return f"\n## {engine}\n\n" + table(head, rows)


def page() -> str:
    facts = json.loads(TABLE.read_text(encoding="utf-8"))["facts"]
    engines = list(dict.fromkeys(fact["engine"] for fact in facts))
    return HEAD + "".join(section(engine, [f for f in facts if f["engine"] == engine])
                          for engine in engines)


def main() -> int:
    return write({PAGE: page()}, "--check" in sys.argv[1:], "scripts/draw_engines.py")


if __name__ == "__main__":
    sys.exit(main())
