"""Writes docs/engines.md from sextant/rope_config/engines/engines.json.

usage: draw_engines.py [--check]

--check writes nothing and fails if the page is stale.
"""
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLE = ROOT / "sextant/rope_config/engines/engines.json"
PAGE = ROOT / "docs/engines.md"

HEAD = """# Which engine reads this how

Engines read the same fields differently, and change what they do with them. Each row was read in
the source named there, in the version named there; other versions may differ.
The page is drawn from `sextant/rope_config/engines/engines.json` by `scripts/draw_engines.py`.
[explain](explain.md) quotes these rows in its warnings.
"""


def section(engine: str, facts: list[dict[str, str]]) -> str:
    lines = [f"\n## {engine}\n", "| setting | what it does | versions | source | read |",
             "| --- | --- | --- | --- | --- |"]
    for fact in facts:
        cells = [fact[key] for key in ("key", "does", "versions", "source", "date")]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def page() -> str:
    facts = json.loads(TABLE.read_text(encoding="utf-8"))["facts"]
    engines = list(dict.fromkeys(fact["engine"] for fact in facts))
    return HEAD + "".join(section(engine, [f for f in facts if f["engine"] == engine])
                          for engine in engines)


def main() -> int:
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(page(), encoding="utf-8")
        return 0
    if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == page():
        return 0
    print("docs/engines.md: stale; run scripts/draw_engines.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
