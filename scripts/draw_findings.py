#!/usr/bin/env python3
"""Draws the answers, tables and charts of docs/findings.md from docs/data/findings.json.

    scripts/draw_findings.py           rewrites docs/figures/findings/*.svg and the marked blocks
    scripts/draw_findings.py --check   writes nothing, and fails if a chart or block is stale
    scripts/draw_findings.py [--larger] --take FOLDER [--program PATH]
                                       reads the survey of FOLDER, finished or not, into
                                       docs/data/findings.json, or that of larger models into
                                       findings-larger.json; PATH: the sextant with its claims
                                       (default: build/release/bin/sextant)

A block is the lines between `<!-- findings:NAME -->` and `<!-- /findings -->`.
"""
import argparse
import json
import sys

import findings_data
import page_blocks
from findings_answers import answers
from findings_charts import CHARTS, images
from findings_scale import scale, scale_chart, scale_command
from findings_setting import command, limits, sizes
from findings_tables import claim_list, claims, columns, method_table
from findings_words import STRETCHED
from page_blocks import ROOT

PAGE, DATA = ROOT / "docs/findings.md", ROOT / "docs/data/findings.json"
LARGER = ROOT / "docs/data/findings-larger.json"
FIGURES = ROOT / "docs/figures/findings"
BLOCKS = {"answers": answers, "columns": columns, "command": command, "claims": claims,
          "claim_list": claim_list, "sizes": sizes, "limits": limits, "scale": scale,
          "scale_command": scale_command,
          "methods": lambda survey: method_table(survey, ""),
          "stretches": lambda survey: method_table(survey, STRETCHED),
          "charts": lambda survey: images(survey, ""),
          "stretched_charts": lambda survey: images(survey, STRETCHED)}


def block(name, survey):
    if name not in BLOCKS:
        sys.exit(f"block {name}: expected one of {' '.join(BLOCKS)}")
    return BLOCKS[name](survey)


def loaded(path):
    return findings_data.Survey(json.loads(path.read_text(encoding="utf-8")))


def drawn(survey, page):
    """{path: content} of the charts and the page; None for a chart without data."""
    files = {FIGURES / f"{name}.svg": chart(survey) for name, (_, chart) in CHARTS.items()}
    files[FIGURES / "scale.svg"] = scale_chart(survey)
    files[PAGE] = page_blocks.filled(page, "findings", lambda name: block(name, survey))
    return files


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--larger", action="store_true")
    parser.add_argument("--take", metavar="FOLDER")
    parser.add_argument("--program", default=str(ROOT / "build/release/bin/sextant"))
    given = parser.parse_args()
    if given.take:
        document = findings_data.take(given.take, given.program)
        path = LARGER if given.larger else DATA
        path.write_text(findings_data.text_of(document), encoding="utf-8")
        return 0
    if given.larger:
        parser.error("--larger: expected beside --take")
    survey = loaded(DATA)
    survey.larger = loaded(LARGER) if LARGER.exists() else None
    files = drawn(survey, PAGE.read_text(encoding="utf-8"))
    return page_blocks.write(files, given.check, "draw_findings.py")


if __name__ == "__main__":
    sys.exit(main())
