#!/usr/bin/env python3
"""Draws the answers, tables and charts of docs/findings.md from docs/data/findings.json.

    scripts/draw_findings.py           rewrites docs/figures/findings/*.svg and the marked blocks
    scripts/draw_findings.py --check   writes nothing, and fails if a chart or block is stale
    scripts/draw_findings.py --take FOLDER [--program PATH]
                                       reads the survey of FOLDER, finished or not, into
                                       docs/data/findings.json; PATH: the sextant with its claims
                                       (default: build/release/bin/sextant)

A block is the lines between `<!-- findings:NAME -->` and `<!-- /findings -->`.
"""
import argparse
import collections
import json
import math
import pathlib
import re
import sys

import findings_data
import svg_chart
from draw_questions import shown
from figure_rows import paragraph, table
from findings_data import interval, minus

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE, DATA = ROOT / "docs/findings.md", ROOT / "docs/data/findings.json"
FIGURES = ROOT / "docs/figures/findings"
BLOCK = re.compile(r"(<!-- findings:(\w+) -->\n).*?(<!-- /findings -->)", re.DOTALL)
STRETCHED = "rope"
# Methods that readers know, which stand in charts beside the best.
KNOWN = {"": ("rope", "sinusoidal", "alibi", "t5"), STRETCHED: ("rope", "yarn", "ntk", "pi")}
NAMED, PENDING = 5, "not yet"
OUTCOMES = ("holds", "fails", "undecided", "not learned")


def values(found, decimals=3, sign=False):
    """The mean of values by seed, with its interval."""
    mean, half = interval(found.values())
    return PENDING if mean is None else number(mean, half, decimals, sign)


def number(mean, half, decimals=3, sign=False):
    """"+0.005 ± 0.011"; a zero has no minus."""
    return shown([round(mean, decimals) + 0.0, half], decimals, sign)


def grouped(count):
    return f"{count:,}".replace(",", " ")


def link(label):
    page = f"methods/{label.split(':')[0]}.md"
    return f"[`{label}`]({page if (ROOT / 'docs' / page).exists() else 'methods/stretches.md'})"


def listed(labels, last="and"):
    names = [f"`{label}`" for label in labels]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {last} {names[-1]}"


# ---- the answers ----


def state(survey):
    document = survey.document
    if survey.is_complete:
        trained = sum(not method["base"] for method in survey.methods.values())
        return (f"All {document['planned']} arms are done: {trained} encodings and "
                f"{len(survey.methods) - trained} stretches of a trained {STRETCHED}, "
                f"{document['seeds']} seeds each. A number after ± is half of a 95 % interval over "
                "seeds (Student's t).")
    return (f"**{document['done']} of {document['planned']} arms are done so far; means are over "
            "the seeds that are there.** A value without ± has one seed and no interval, and close "
            "methods with one seed cannot be told apart; ± is half of a 95 % interval over seeds "
            "(Student's t). The answers below may change until the survey ends.")


def terms(survey):
    return (f"L is the training length, {survey.trained} bytes; losses are in nats per byte, of "
            f"the last {survey.trained // 2} bytes of a window that grows to "
            f"{survey.longest // survey.trained} L = {survey.longest}. A method holds if its loss "
            f"rises by {findings_data.HOLDS_BELOW:g} at most. It finds far pairs if a model "
            f"trained on retrieval in sequences of {survey.pair_trained} answers half of the questions "
            f"about the beginning of sequences of {max(survey.pair_lengths)}.")


def answer(survey, base):
    """The sentences on one question."""
    measured, kind = survey.measured(base), "stretches" if base else "encodings"
    stretched = f" of a trained `{base}`" if base else ""
    planned = sum(method["base"] == base for method in survey.methods.values())
    if not measured:
        return paragraph(f"**Stretches{stretched}: none of {planned} is measured yet.** They are "
                         "tested after the trainings.") if base else "No arm is done yet.\n"
    holding, candidates = survey.holding(base), survey.candidates(base)
    if not candidates:
        return paragraph(f"**None of the {len(measured)} {kind}{stretched} holds its loss at "
                         f"{survey.longest} bytes.** The lowest is `{measured[0]}` with "
                         f"{values(survey.loss(measured[0], survey.longest))}.")
    best = candidates[0]
    ties = [label for label in candidates[1:] if survey.is_tied(label, best)]
    waiting = [label for label in holding if survey.finds(label) is None]
    found = sum(bool(survey.finds(label)) for label in holding)
    advice = f"Stretch a trained `{base}` with `{best}`" if base else f"Train with `{best}`"
    if waiting:
        advice = f"So far `{best}` is first among the {kind}{stretched}"
    if ties:
        advice += f", or with {listed(ties, 'or')}" if len(ties) < NAMED else (
            f", or one of {len(ties)} others")
    text = [f"**{advice}.** Of {len(measured)} {kind}{stretched}, {len(holding)} hold their loss "
            f"at {survey.longest} bytes"
            + ("." if waiting else f", and {found or 'none'} of these "
               f"find{'s' * (found < 2)} far pairs.")]
    if ties:
        text.append("The methods named together are not told apart at that length." if
                    len(ties) < NAMED else f"The others are not told apart from `{best}` at that "
                    "length.")
    if waiting:
        text.append(f"Far pairs are measured for {len(holding) - len(waiting)} of these "
                    f"{len(holding)} so far.")
    lost = [label for label in holding if label not in candidates]
    if lost:
        text.append(f"Loss alone misleads: {listed(lost)} hold{'s' * (len(lost) == 1)} the loss, "
                    f"but {'does' if len(lost) == 1 else 'do'} not find far pairs.")
    head = ("stretch" if base else "encoding", f"loss at {survey.trained}",
            f"at {survey.longest}", f"minus `{best}`",
            *(f"far pairs at {length}" for length in survey.pair_lengths[-2:]))
    compared = candidates[:NAMED]
    if STRETCHED not in compared and survey.measured(STRETCHED if base else ""):
        compared.append(STRETCHED)
    rows = [[link(label), values(survey.loss(label, survey.trained)),
             values(survey.loss(label, survey.longest)), beside(survey, label, best),
             *(values(survey.share(label, "far", length), 2)
               for length in survey.pair_lengths[-2:])] for label in compared]
    return paragraph(*text) + "\n" + table(head, rows)


def beside(survey, label, best):
    """The difference to the best at the longest length."""
    if label == best:
        return "first"
    mean, half = survey.behind(label, best)
    if mean is None:
        return ""
    text = number(mean, half, sign=True)
    return text + ", not told apart" * (half is not None and abs(mean) <= half)


def answers(survey):
    return (paragraph(state(survey)) + "\n" + answer(survey, "") + "\n"
            + answer(survey, STRETCHED) + "\n" + image(survey, "answer") + "\n"
            + paragraph(terms(survey)))


# ---- the tables ----


def ordered(survey, base):
    """By loss at the longest length; methods that have not learned the text are last."""
    return sorted(survey.measured(base), key=lambda label: survey.verdict(label) == "not learned")


def remark(survey, label):
    seeds = survey.methods[label]["text"].values()
    diverged = sum("diverged" in row for row in seeds)
    return f" ({diverged} of {len(seeds)} diverged)" if diverged else ""


def method_rows(survey, base, best):
    rows = []
    for label in ordered(survey, base) + ([base] if base and survey.measured(base) else []):
        first = values(survey.loss(label, survey.trained))
        cost = minus(survey.loss(label, survey.trained), survey.loss(STRETCHED, survey.trained))
        row = [link(label), first, "" if label == STRETCHED else values(cost, sign=True)]
        row += [values(survey.change(label, length), sign=True) for length in survey.lengths
                if length != survey.trained]
        row += [f"**{survey.verdict(label)}**{remark(survey, label)}",
                beside(survey, label, best) if best else ""]
        row += [values(survey.share(label, "far", length), 2)
                for length in survey.pair_lengths[-2:]]
        row.append(values(survey.share(label, "near", survey.pair_lengths[-1]), 2))
        if not base:
            seconds = interval(row["train_seconds"]
                               for row in survey.rows(label, "text").values())[0]
            row.append(f"{seconds:.0f}")
        rows.append(row)
    return rows


def method_table(survey, base):
    candidates = survey.candidates(base)
    best = candidates[0] if candidates else None
    head = ["method", f"loss at {survey.trained}",
            f"cost at {survey.trained}" if base else f"minus `{STRETCHED}`",
            *(f"change at {length}" for length in survey.lengths if length != survey.trained),
            "verdict", f"minus `{best}` at {survey.longest}" if best else "minus the first",
            *(f"far at {length}" for length in survey.pair_lengths[-2:]),
            f"near at {survey.pair_lengths[-1]}", *([] if base else ["seconds"])]
    rows = method_rows(survey, base, best)
    labels = [label for label, method in survey.methods.items() if method["base"] == base]
    missing = [label for label in labels if survey.verdict(label) is None]
    diverged = [label for label in labels if survey.verdict(label) == "diverged"]
    text = table(head, rows) if rows else ""
    if missing:
        text += "\n" * bool(rows) + paragraph("Without a result so far: " + listed(missing) + ".")
    if diverged:
        text += "\n" + paragraph("Diverged with every seed, as the loss was no longer a number: "
                                 + listed(diverged) + ".")
    return text


def columns(survey):
    far = [survey.far_distance(length) for length in survey.pair_lengths[-2:]]
    near = survey.far_distance(survey.pair_trained)
    return paragraph(
        f"*Change* is the loss at a longer context minus that at {survey.trained}, on the same "
        "bytes. *Holds*, *drifts* and *breaks* are the survey's verdicts on the last change: at "
        f"most {findings_data.HOLDS_BELOW:g}, between, and above {findings_data.BREAKS_ABOVE:g} "
        "nats; *not learned* is a method whose loss is not significantly, or not by "
        f"{findings_data.BELOW_NONE:g}, below that of `none`. *Minus* columns are differences "
        "paired by seed; *not told apart* is a difference whose interval reaches zero. *Far* is "
        f"the share of pairs found at the beginning of a sequence ({far[0]} and {far[1]} tokens "
        f"back), *near* half a training length back; sequences of {survey.pair_trained} were "
        f"trained, in which the farthest pair is {near} tokens back. *Seconds* is the time of one "
        "training on text with one thread, while other programs ran on the machine.")


# ---- the charts ----


def charted(survey, base):
    """The methods of the line charts: the two best, and known ones, as far as the legend fits."""
    labels = survey.candidates(base)[:2]
    labels += [label for label in KNOWN[base] if label not in labels]
    fitting, width = [], 16.0
    for label in labels:
        width += 44 + 9.6 * len(label)
        measured = survey.loss(label, survey.longest) if label in survey.methods else {}
        if measured and width < svg_chart.WIDTH and len(fitting) < NAMED:
            fitting.append(label)
    return fitting if base == "" or set(fitting) - {STRETCHED} else []


def step_of(width):
    """The smallest round step that covers a width six times."""
    return next((step for step in (0.02, 0.05, 0.1, 0.2, 0.5, 1) if width <= 6 * step), 2)


def ticks_of(numbers):
    """A few round ticks that span the numbers and 0."""
    low, high = min(0, *numbers), max(0, *numbers)
    step = step_of(high - low)
    first, last = math.floor(low / step), math.ceil(high / step)
    return [round(step * n, 2) for n in range(first, max(last, first + 1) + 1)]


def change_chart(survey, base):
    title = f"Change of the loss of a stretched {base}" if base else "Change of the loss"
    series = {label: [(length, interval(survey.change(label, length).values())[0])
                      for length in survey.lengths] for label in charted(survey, base)}
    if not series:
        return None
    ticks = ticks_of([y for points in series.values() for _, y in points])
    return svg_chart.lines(f"{title}, nats per byte", series, (survey.lengths, ticks),
                           ("length of the context in bytes", False),
                           (str, lambda y: f"{y:+g}" if y else "0"))


def far_chart(survey, base):
    series = {}
    for label in charted(survey, base):
        points = [(length, interval(survey.share(label, "far", length).values())[0])
                  for length in survey.pair_lengths]
        if all(share is not None for _, share in points):
            series[label] = points
    if not series or (base and len(series) == 1):
        return None
    return svg_chart.lines("Share of pairs found at the beginning", series,
                           (survey.pair_lengths, [0, 0.25, 0.5, 0.75, 1]),
                           ("length of the sequence in tokens", False), (str, "{:g}".format))


def answer_chart(survey):
    """The loss at L and at the longest length of the first candidates."""
    names = (f"at {survey.trained}", f"at {survey.longest}")
    rows = []
    for base in ("", STRETCHED):
        for label in survey.candidates(base)[:NAMED]:
            series = {}
            for name, length in zip(names, (survey.trained, survey.longest)):
                mean, half = interval(survey.loss(label, length).values())
                series[name] = (mean - (half or 0), mean + (half or 0))
            rows.append((f"{base} + {label}" if base else label, series))
    if not rows:
        return None
    ends = [end for _, series in rows for pair in series.values() for end in pair]
    step = step_of(max(ends) - min(ends))
    first, last = math.floor(min(ends) / step), math.ceil(max(ends) / step)
    ticks = [step * n for n in range(first, max(last, first + 1) + 1)]
    kinds = "encodings and stretches" if survey.candidates(STRETCHED) else "encodings"
    return svg_chart.ranges(f"Loss of the first {kinds}, nats per byte", names, rows, ticks,
                            "{:.2f}".format)


CHARTS = {
    "answer": ("loss at the training length and at the longest", answer_chart),
    "change": ("change of the loss against the length of the context",
               lambda survey: change_chart(survey, "")),
    "far": ("far pairs found against the length of the sequence",
            lambda survey: far_chart(survey, "")),
    "stretched_change": ("change of the loss of a stretched rope against the length",
                         lambda survey: change_chart(survey, STRETCHED)),
    "stretched_far": ("far pairs found with a stretched rope against the length",
                      lambda survey: far_chart(survey, STRETCHED)),
}


def image(survey, name):
    alternative, chart = CHARTS[name]
    return "" if chart(survey) is None else f"![{alternative}](figures/findings/{name}.svg)\n"


def images(survey, base):
    names = ("stretched_change", "stretched_far") if base else ("change", "far")
    return "\n".join(filter(None, (image(survey, name) for name in names))) or (
        "The charts follow with the first results.\n")


# ---- claims, sizes and limits ----


def place_of(claim):
    if not claim["question"]:
        return "[literature](literature.md)"
    anchor = re.sub(r"[^\w\s-]", "", claim["question"].lower()).replace(" ", "-")
    return f"[questions](questions.md#{anchor})"


def claims(survey):
    document = survey.document
    known = f"`sextant claims` lists {document['known_claims']} claims on causal decoders"
    if not document["claims"]:
        return paragraph(f"{known}; {document['claims_of_arms']} of them compare arms of this "
                         "survey. They are decided when all arms are done.")
    counts = collections.Counter(each["outcome"] for each in document["claims"])
    head = ("subject", *OUTCOMES)
    rows = []
    for subject in dict.fromkeys(each["subject"] for each in document["claims"]):
        found = collections.Counter(each["outcome"] for each in document["claims"]
                                    if each["subject"] == subject)
        rows.append([subject, *(str(found[outcome]) for outcome in OUTCOMES)])
    rows.append(["all", *(f"**{counts[outcome]}**" for outcome in OUTCOMES)])
    return paragraph(
        f"{known}; {len(document['claims'])} of them compare arms of this survey. "
        f"{counts['holds']} are confirmed at this scale, {counts['fails']} are refuted, "
        f"{counts['undecided']} are undecided, and {counts['not learned']} are not decided because "
        "a method has not learned the task.") + "\n" + table(head, rows)


def claim_list(survey):
    if not survey.document["claims"]:
        return "The list follows when all arms are done.\n"
    rows = []
    for each in survey.document["claims"]:
        decimals = 2 if each["measure"] in ("far", "attention", "attention_past",
                                            "products") else 3
        rows.append([each["claim"], f"**{each['outcome']}**",
                     number(each["mean"], each["half"], decimals, len(each["arms"]) == 2),
                     " minus ".join(f"`{arm}`" for arm in each["arms"]),
                     f"{each['side']} {each['bound']:g}", each["source"], place_of(each)])
    return table(("claim", "here", "measured", "arms", "claimed", "source", "more"), rows)


def sizes(survey):
    document, settings = survey.document, survey.document["settings"]
    rows = {task: [row for label, method in survey.methods.items() if not method["base"]
                   for row in survey.rows(label, task).values()] for task in ("text", "pairs")}
    all_rows = [row for label in survey.methods for task in ("text", "pairs")
                for row in survey.rows(label, task).values()]
    hours = sum(row["train_seconds"] + row["test_seconds"] for row in all_rows) / 3600
    model, pairs = settings["model"], settings["retrieval"]

    def parameters(task):
        counts = [row["weights"] for row in rows[task]]
        return " to ".join(dict.fromkeys((grouped(min(counts)), grouped(max(counts)))))

    text = [
        f"`{document['command']}` with Sextant {document['sextant']}; the newest arm is of "
        f"{document['date']}.",
        f"{'; '.join(document['machines'])}; {settings['threads']} "
        f"thread{'s' * (settings['threads'] > 1)} per arm. The arms that are done took "
        f"{hours:.1f} hours of one thread.",
        f"Text: {model['layers']} layers of width {model['width']} with {model['heads']} heads, "
        f"{parameters('text')} parameters, {grouped(settings['training']['bytes'])} bytes of "
        f"training in sequences of {survey.trained}; the test scores "
        f"{settings['test']['blocks']} blocks."]
    if rows["pairs"]:
        text.append(f"Retrieval: {pairs['layers']} layers of width {pairs['width']}, "
                    f"{parameters('pairs')} parameters, {pairs['steps']} steps of "
                    f"{pairs['batch']} sequences of {survey.pair_trained}; the test asks "
                    f"{pairs['texts']} sequences at each length and distance.")
    return "".join(paragraph("* " + line) for line in text)


def limits(survey):
    settings = survey.document["settings"]
    model, lengths = settings["model"], f"{survey.trained} and {survey.longest}"
    return paragraph(
        f"* Models of {model['layers']} layers of width {model['width']} that read bytes are "
        "small. A larger model may rank the methods differently, and where a claim of the "
        "literature is about such a model, an outcome here does not refute it.") + paragraph(
        f"* A model this small gains nothing from text beyond a few words of context: the loss "
        f"shows where a method breaks between {lengths} bytes, and only retrieval shows long-range "
        "use.") + paragraph(
        "* Each method has the defaults of its page and the same schedule of training. None is "
        "tuned, and a method that learns slowly counts as worse, or as not learned.") + paragraph(
        f"* {survey.document['seeds']} seeds are planned. Their interval is wide where trainings "
        "differ, and a method that is not told apart from another one is not thereby equal.") + (
        paragraph("* Every method is tested at one scale only. A second scale is not run yet."))


def command(survey):
    return (f"```\n{survey.document['command']} --out runs/findings\n"
            "scripts/draw_findings.py --take runs/findings && scripts/draw_findings.py\n```\n")


BLOCKS = {"answers": answers, "columns": columns, "command": command, "claims": claims,
          "claim_list": claim_list, "sizes": sizes, "limits": limits,
          "methods": lambda survey: method_table(survey, ""),
          "stretches": lambda survey: method_table(survey, STRETCHED),
          "charts": lambda survey: images(survey, ""),
          "stretched_charts": lambda survey: images(survey, STRETCHED)}


def block(name, survey):
    if name not in BLOCKS:
        sys.exit(f"block {name}: expected one of {' '.join(BLOCKS)}")
    return BLOCKS[name](survey)


def drawn(survey, page):
    """{path: content} of the charts and the page; None for a chart without data."""
    files = {FIGURES / f"{name}.svg": chart(survey) for name, (_, chart) in CHARTS.items()}
    files[PAGE] = BLOCK.sub(lambda match: match[1] + block(match[2], survey) + match[3], page)
    return files


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--take", metavar="FOLDER")
    parser.add_argument("--program", default=str(ROOT / "build/release/bin/sextant"))
    given = parser.parse_args()
    if given.take:
        document = findings_data.take(given.take, given.program)
        DATA.write_text(findings_data.text_of(document), encoding="utf-8")
        return
    survey = findings_data.Survey(json.loads(DATA.read_text(encoding="utf-8")))
    stale = []
    for path, content in drawn(survey, PAGE.read_text(encoding="utf-8")).items():
        if content == (path.read_text(encoding="utf-8") if path.exists() else None):
            continue
        stale.append(path)
        if given.check:
            continue
        if content is None:
            path.unlink()
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    for path in stale:
        print("stale:" if given.check else "wrote", path.relative_to(ROOT))
    if given.check and stale:
        sys.exit("run scripts/draw_findings.py")


if __name__ == "__main__":
    main()
