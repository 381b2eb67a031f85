#!/usr/bin/env python3
"""Draws the tables and charts of docs/questions.md from the surveys of docs/data/questions.

    scripts/draw_questions.py           rewrites docs/figures/questions/*.svg and the marked blocks
                                        of the pages
    scripts/draw_questions.py --check   writes nothing, and fails if a chart or block is stale
    scripts/draw_questions.py --take NAME FOLDER [--program PATH]
                                        reads the finished survey of FOLDER into
                                        docs/data/questions/NAME.json; PATH: the sextant whose
                                        claims it has (default: build/release/bin/sextant)

A block is the lines between `<!-- questions:NAME -->` and `<!-- /questions -->`. Losses are in nats
per byte. A value is [mean, half of its 95 % interval over seeds].
"""
import argparse
import datetime
import json
import pathlib
import re
import sys

import page_blocks
import survey_claims
import svg_chart
from page_blocks import ROOT, shown, table
from survey_claims import rounded

DATA = ROOT / "docs/data/questions"
FIGURES = ROOT / "docs/figures/questions"
PAGES = ("docs/questions.md", "docs/survey.md")
# The charts of losses: key, title, survey, arms.
CHARTS = {
    "added": ("Added sinusoids and relative positions", "claims",
              ("none", "sinusoidal", "rope", "t5", "alibi", "shaw", "nezha", "tener")),
    "clip": ("Shaw's encoding by its clip", "claims",
             ("shaw:clip=1", "shaw:clip=2", "shaw:clip=4", "shaw", "shaw:clip=64",
              "shaw:values=false")),
    "tuning": ("Stretches, tuned and as they are", "claims",
               ("rope", "rope:weights=rope:tune=40", "pi", "pi:tune=40", "ntk", "ntk:tune=40",
                "yarn", "yarn:tune=40")),
    "tener": ("TENER, scaled and not", "claims", ("tener", "tener:scaled=true")),
    "window": ("ALiBi and a window of L", "claims", ("alibi", "window", "window:of=none", "none")),
    "masked": ("Masked bytes", "masked",
               ("none", "sinusoidal", "learned", "t5", "shaw", "nezha", "tener", "deberta", "tupe",
                "alibi", "alibi:causal=true", "alibi:future_scale=0.5")),
    "variants": ("Clocks and Sandwich's lambda", "variants",
                 ("none", "sinusoidal", "clock", "alien-clock", "sandwich", "sandwich:ratio=4",
                  "sandwich:strength=0.5:first_index=0")),
    "vectors": ("Lost channels, and the recurrences", "vectors",
                ("none", "sinusoidal", "sinusoidal:drop_channels=1", "sinusoidal:drop_channels=4",
                 "binary:bits=7", "binary:bits=7:drop_channels=1", "binary:bits=7:drop_channels=4",
                 "recursive", "recursive:over=input")),
}
# Shorter names in charts.
SHORT = {"rope:weights=rope:tune=40": "rope:tune=40",
         "sandwich:strength=0.5:first_index=0": "sandwich:strength=0.5",
         **{f"{method}:drop_channels={lost}": f"{method}, {lost} lost"
            for method in ("sinusoidal", "binary:bits=7") for lost in (1, 4)}}
BASES = ("base=100", "", "base=1e6")


# ---- from a survey's folder ----


def method_values(results):
    """{method: {"sliding": {length: value}, "change": value, "task": {length: {distance: value}}}}
    of the summary."""
    settings = results["settings"]
    longest = max(settings["test"]["lengths"])
    found = {}
    for row in results["summary"]:
        method = found.setdefault(row["method"], {"seeds": row["seeds"], "sliding": {}, "task": {}})
        value = [rounded(row["mean"]), rounded(row.get("half_interval95"))]
        length = str(row["length"])
        if row["measure"] == "sliding":
            method["sliding"][length] = value
        elif row["measure"] == "sliding_change" and row["length"] == longest:
            method["change"] = value
        elif row["measure"] in ("retrieval", "direction"):
            method["task"].setdefault(length, {})[str(row["distance"])] = value
    for row in results["verdicts"]:
        found[row["method"]]["verdict"] = row["verdict"]
        found[row["method"]]["task_learned"] = row["small_task_learned"]
    return found


def products(results):
    """{method: {"plain", "heads": [[layer, head, trained, untrained], ...]}} of seed 0."""
    found = {}
    for arm in results["arms"]:
        if "positions" in arm and arm["arm"]["seed"] == 0:
            share = arm["positions"]
            found[arm["arm"]["label"]] = {
                "plain": rounded(share["plain"]),
                "heads": [[head["layer"], head["head"], rounded(head["trained"]),
                           rounded(head["untrained"])] for head in share["heads"]]}
    return found


def take(name, folder, program):
    path = folder / "results.json"
    results = json.loads(path.read_text(encoding="utf-8"))
    day = datetime.datetime.fromtimestamp(path.stat().st_mtime, datetime.timezone.utc).date()
    document = {"command": survey_claims.command_of(folder), "date": day.isoformat(),
                "sextant": results["sextant"], "machine": results["arms"][0]["machine"],
                "arms": len(results["arms"]), "settings": results["settings"],
                "text": results["text"], "reference": results["reference"],
                "methods": method_values(results), "products": products(results),
                "claims": survey_claims.checked(results, survey_claims.known(program))}
    DATA.mkdir(parents=True, exist_ok=True)
    (DATA / f"{name}.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


# ---- to Markdown and SVG ----


def lengths_of(survey):
    """The training length and the longest, as in "128, 1024"."""
    settings = survey["settings"]
    return f"{settings['training']['length']}, {max(settings['test']['lengths'])}"


def claims_table(surveys, question):
    """The claims of a question in all surveys that have some; with lengths if they differ. Arms of
    two surveys with the same plan have the same results, and one row."""
    rows = []
    named = [each for each in surveys.values()
             if any(claim["question"] == question for claim in each["claims"])]
    differ = len({lengths_of(each) for each in named}) > 1
    for survey in sorted(named, key=lambda each: each["settings"]["training"]["length"]):
        for each in survey["claims"]:
            if each["question"] != question:
                continue
            row = (each["claim"], *([lengths_of(survey)] if differ else []),
                   *survey_claims.cells(each), each["source"])
            if row not in rows:
                rows.append(row)
    head = ("claim", *(["L, longest"] if differ else []), "here", "measured", "arms", "claimed",
            "source")
    return table(head, rows)


def setting(surveys, _):
    rows = [(f"`{each['command']}`", str(each["arms"]), str(max(
        method["seeds"] for method in each["methods"].values())), each["date"])
            for each in surveys.values()]
    machines = ", ".join(sorted({each["machine"] for each in surveys.values()}))
    return (table(("survey", "arms", "seeds", "date"), rows) +
            f"\nMachine: {machines}. Each JSON file of `docs/data/questions` has all settings.\n")


def base_table(surveys, method):
    """The loss at L and at 2 L by base and L."""
    named = sorted((each for name, each in surveys.items()
                    if name.startswith("length-") or name == "claims"),
                   key=lambda each: each["settings"]["training"]["length"])
    rows = []
    for each in named:
        length = each["settings"]["training"]["length"]
        row = [str(length)]
        for base in BASES:
            label = f"{method}:{base}" if base else method
            sliding = each["methods"].get(label, {}).get("sliding", {})
            row += [shown(sliding.get(str(length))), shown(sliding.get(str(2 * length)))]
        rows.append(row)
    head = ["L"]
    for base in ("100", "10000", "1000000"):
        head += [f"base {base}, at L", f"{base}, at 2 L"]
    return table(head, rows)


def direction_at(method, length):
    """The share of marks tagged right in sequences of this length: the mean over distances."""
    values = [value[0] for value in method["task"].get(str(length), {}).values()]
    return sum(values) / len(values) if values else None


def masked_table(surveys, _):
    if "masked" not in surveys:
        return "Not decided yet: this survey has not been run.\n"
    survey = surveys["masked"]
    trained = survey["settings"]["training"]["length"]
    longest = max(survey["settings"]["test"]["lengths"])
    lengths = survey["settings"]["retrieval"]["lengths"]
    rows = []
    for label, method in survey["methods"].items():
        cells = [f"`{label}`", shown(method["sliding"].get(str(trained))),
                 shown(method["sliding"].get(str(longest))),
                 shown(method.get("change"), sign=True), method.get("verdict", "")]
        for length in (lengths[0], lengths[-1]):
            share = direction_at(method, length)
            cells.append("" if share is None else f"{share:.2f}")
        rows.append(cells)
    return table(("method", f"loss at {trained}", f"at {longest}", "change", "verdict",
                  f"direction at {lengths[0]}", f"at {lengths[-1]}"), rows)


def products_table(surveys, _):
    rows, layers = [], 0
    for name in ("claims", "variants"):
        survey = surveys.get(name, {"products": {}})
        for label, share in survey["products"].items():
            if any(row[0] == f"`{label}`" for row in rows):
                continue
            layers = 1 + max(head[0] for head in share["heads"])
            row = [f"`{label}`", f"{share['plain']:.2f}"]
            for of in ([head[3] for head in share["heads"]],
                       *([head[2] for head in share["heads"] if head[0] == layer]
                         for layer in range(layers))):
                row.append(f"{min(of):.2f} to {max(of):.2f}")
            rows.append(row)
    if not rows:
        return "Not decided yet: this survey has not been run.\n"
    return table(("method", "no W", "random W",
                  *(f"layer {layer + 1}" for layer in range(layers))), rows)


TABLES = {"claims": claims_table, "setting": setting, "base": base_table,
          "masked": masked_table, "products": products_table}


def block(name, surveys):
    kind, _, argument = name.partition(":")
    if kind not in TABLES:
        sys.exit(f"block {name}: expected one of {' '.join(TABLES)}")
    if kind == "claims":
        questions = {slug(each["question"]): each["question"] for survey in surveys.values()
                     for each in survey["claims"] if each["question"]}
        if argument not in questions:
            sys.exit(f"block {name}: expected one of {' '.join(sorted(questions))}")
        argument = questions[argument]
    return TABLES[kind](surveys, argument)


def slug(question):
    """The key of a question: its first words, as in "why-are-added-sinusoids"."""
    return "-".join(re.findall(r"[a-z0-9]+", question.lower().replace("'", ""))[:4])


def chart(title, survey, arms):
    trained = survey["settings"]["training"]["length"]
    longest = max(survey["settings"]["test"]["lengths"])
    rows = []
    for arm in arms:
        sliding = survey["methods"].get(arm, {}).get("sliding", {})
        series = {}
        for length in (trained, longest):
            value = sliding.get(str(length))
            if value and value[0] is not None:
                half = value[1] or 0
                series[f"at {length}"] = (value[0] - half, value[0] + half)
        if series:
            rows.append((SHORT.get(arm, arm), series))
    if not rows:
        return None
    ends = [end for _, series in rows for pair in series.values() for end in pair]
    low, high = int(min(ends) * 2) / 2, int(max(ends) * 2 + 1) / 2
    ticks = [low + 0.5 * n for n in range(round((high - low) / 0.5) + 1)]
    return svg_chart.ranges(f"{title}: loss in nats per byte",
                            (f"at {trained}", f"at {longest}"), rows, ticks, "{:.1f}".format)


def drawn(surveys):
    """{path: content} of all charts and pages."""
    files = {}
    for key, (title, name, arms) in CHARTS.items():
        svg = chart(title, surveys[name], arms) if name in surveys else None
        if svg:
            files[FIGURES / f"{key}.svg"] = svg
    for page in PAGES:
        path = ROOT / page
        files[path] = page_blocks.filled(path.read_text(encoding="utf-8"), "questions",
                                         lambda name: block(name, surveys))
    return files


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--take", nargs=2, metavar=("NAME", "FOLDER"))
    parser.add_argument("--program", default=str(ROOT / "build/release/bin/sextant"))
    given = parser.parse_args()
    if given.take:
        take(given.take[0], pathlib.Path(given.take[1]), given.program)
        return 0
    surveys = {path.stem: json.loads(path.read_text(encoding="utf-8"))
               for path in sorted(DATA.glob("*.json"))}
    return page_blocks.write(drawn(surveys), given.check, "draw_questions.py")


if __name__ == "__main__":
    sys.exit(main())
