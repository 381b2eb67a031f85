"""The tables of docs/findings.md: a line for each method, or for each claim."""
import collections
import re

import findings_data
import survey_claims
from findings_data import interval, minus
from findings_words import STRETCHED, beside, link, listed, values
from page_blocks import paragraph, table

OUTCOMES = ("holds", "fails", "undecided", "not learned")


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
        f"{counts['holds']} are confirmed at this scale, {counts['fails']} are refuted, and "
        f"{counts['undecided']} are undecided" + (
            f"; {counts['not learned']} are not decided because a method has not learned the task."
            if counts["not learned"] else ".")) + "\n" + table(head, rows)


def claim_list(survey):
    if not survey.document["claims"]:
        return "The list follows when all arms are done.\n"
    rows = [(each["claim"], *survey_claims.cells(each), each["source"], place_of(each))
            for each in survey.document["claims"]]
    return table(("claim", "here", "measured", "arms", "claimed", "source", "more"), rows)
