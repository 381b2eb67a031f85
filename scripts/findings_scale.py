"""The section of docs/findings.md on the second scale: what changes in a larger model."""
import textwrap

from findings_charts import ticks_of
from findings_data import interval
from findings_setting import hours
from findings_words import STRETCHED, grouped, link, listed, values
from page_blocks import paragraph, table
import svg_chart

DECIDED = ("holds", "fails")
NONE_YET = "The second scale is not run yet.\n"


def labels_of(survey):
    """The methods with results at both scales: encodings and then stretches, each by loss at the
    longest length of the larger model; methods that have not learned the text are last."""
    larger, found = survey.larger, []
    for base in ("", STRETCHED):
        found += sorted((label for label in larger.measured(base) if survey.verdict(label)),
                        key=lambda label: larger.verdict(label) == "not learned")
    return found


def parameters_of(survey, task):
    """The parameters of a trained rope, which has none of its own."""
    return next(iter(survey.rows(STRETCHED, task).values()))["weights"]


def size_of(survey):
    model = survey.document["settings"]["model"]
    return (f"{model['layers']} layers of width {model['width']} with {model['heads']} heads, "
            f"{grouped(parameters_of(survey, 'text'))} parameters")


def learned_less(survey):
    """A sentence if the larger model is no better on short text."""
    smaller, larger = (interval(each.loss(STRETCHED, each.trained).values())[0]
                       for each in (survey, survey.larger))
    if larger < smaller:
        return []
    training = survey.larger.document["settings"]["training"]
    return [f"The larger models are not better on short text: the loss of `{STRETCHED}` is "
            f"{larger:.3f} instead of {smaller:.3f}, as {grouped(training['bytes'])} bytes at the "
            "same learning rate are too few for them, or the rate too high."]


def setting(survey):
    larger = survey.larger
    times = parameters_of(larger, "text") / parameters_of(survey, "text")
    trained = sum(not method["base"] for method in larger.methods.values())
    document, pairs = larger.document, larger.document["settings"]["retrieval"]
    done = "" if larger.is_complete else (
        f" **{document['done']} of its {document['planned']} arms are done so far.**")
    return paragraph(
        f"{trained} of the encodings and {len(larger.methods) - trained} of the stretches were "
        f"trained and tested again with {times:.1f} times the parameters: {size_of(larger)}, "
        f"instead of {size_of(survey)}. The models of the retrieval task have width "
        f"{pairs['width']} instead of {survey.document['settings']['retrieval']['width']}. Text, "
        f"schedule and lengths are the same, with {document['seeds']} seeds.{done} It took "
        f"{hours(larger):.1f} hours of one thread, while other programs ran. Both columns "
        "of a pair are of one method: first the smaller model, then the larger one.",
        *learned_less(survey))


def scale_table(survey):
    larger, last = survey.larger, max(survey.pair_lengths)
    both = (survey, larger)
    head = ["method"]
    for name in (f"loss at {survey.trained}", f"change at {survey.longest}", "verdict",
                 f"far at {last}"):
        head += [name, "larger"]
    rows = []
    for label in labels_of(survey):
        row = [link(label)]
        for cell in (lambda s: values(s.loss(label, s.trained)),
                     lambda s: values(s.change(label, s.longest), sign=True),
                     lambda s: f"**{s.verdict(label)}**",
                     lambda s: values(s.share(label, "far", last), 2)):
            row += [cell(each) for each in both]
        rows.append(row)
    return table(head, rows)


def changes(survey):
    """[(label, "holds", "drifts")] of the verdicts that differ between the scales."""
    pairs = [(label, survey.verdict(label), survey.larger.verdict(label))
             for label in labels_of(survey)]
    return [pair for pair in pairs if pair[1] != pair[2]]


def found_changes(survey):
    """The methods that find far pairs at one scale only: (in the larger model, in the smaller)."""
    pairs = [(label, survey.finds(label), survey.larger.finds(label))
             for label in labels_of(survey)]
    return ([label for label, before, after in pairs if after and before is False],
            [label for label, before, after in pairs if before and after is False])


def verdict_sentences(survey):
    differing = changes(survey)
    count = len(labels_of(survey))
    if not differing:
        text = [f"**The verdict on the loss is the same for all {count} methods.**"]
    else:
        text = [f"**The verdict on the loss is the same for {count - len(differing)} of {count} "
                "methods.** " + "; ".join(f"`{label}`: *{before}* in the smaller model, *{after}* "
                                          "in the larger one"
                                          for label, before, after in differing) + "."]
    gained, lost = found_changes(survey)
    if not gained and not lost:
        text.append("The same methods find far pairs.")
    for labels, which in ((gained, "larger"), (lost, "smaller")):
        if labels:
            text.append(f"Only in the {which} model {listed(labels)} "
                        f"find{'s' * (len(labels) == 1)} far pairs.")
    return text


def first_sentences(survey):
    """Which of the repeated methods is first at each scale."""
    text = []
    for base, kind in (("", "encodings"), (STRETCHED, "stretches")):
        labels = [label for label in labels_of(survey) if survey.methods[label]["base"] == base]
        firsts = []
        for scale in (survey, survey.larger):
            candidates = [label for label in scale.candidates(base) if label in labels]
            if not candidates:
                break
            ties = [label for label in candidates[1:] if scale.is_tied(label, candidates[0])]
            firsts.append(f"`{candidates[0]}`" + (
                f" (not told apart from {listed(ties)})" if ties else ""))
        if len(firsts) == 2:
            text.append(f"The best of these {kind} with far pairs is {firsts[0]} in the smaller "
                        f"model and {firsts[1]} in the larger one.")
    return text


def claim_sentence(survey):
    outcomes = [{(each["claim"], each["measure"], tuple(each["arms"])): each["outcome"]
                 for each in scale.document["claims"]} for scale in (survey, survey.larger)]
    decided = [key for key, outcome in outcomes[1].items()
               if outcome in DECIDED and outcomes[0].get(key) in DECIDED]
    reversed_ = [key for key in decided if outcomes[0][key] != outcomes[1][key]]
    if not decided:
        return []
    text = (f"Both scales decide {len(decided)} claims of the literature, and agree on "
            f"{len(decided) - len(reversed_)}.")
    return [text + "".join(f" “{key[0]}” {outcomes[0][key]} in the smaller model and "
                           f"{outcomes[1][key]} in the larger one." for key in reversed_)]


def scale(survey):
    if survey.larger is None:
        return NONE_YET
    text = [*verdict_sentences(survey), *first_sentences(survey), *claim_sentence(survey)]
    return (paragraph(*text) + "\n" + setting(survey) + "\n" + scale_table(survey) + "\n"
            + "![loss at the longest length of both models](figures/findings/scale.svg)\n")


def scale_command(survey):
    if survey.larger is None:
        return NONE_YET
    command = survey.larger.document["command"] + " --out runs/findings-larger"
    lines = textwrap.wrap(command, 94, break_long_words=False, break_on_hyphens=False)
    return ("```\n" + " \\\n    ".join(lines) + "\n"
            "scripts/draw_findings.py --larger --take runs/findings-larger && "
            "scripts/draw_findings.py\n```\n")


def scale_chart(survey):
    """The loss at the longest length at both scales, of the methods that hold in one of them."""
    if survey.larger is None:
        return None
    names, rows = ("smaller model", "larger model"), []
    for label in labels_of(survey):
        if "holds" not in (survey.verdict(label), survey.larger.verdict(label)):
            continue
        series = {}
        for name, each in zip(names, (survey, survey.larger)):
            mean, half = interval(each.loss(label, each.longest).values())
            series[name] = (mean - (half or 0), mean + (half or 0))
        base = survey.methods[label]["base"]
        rows.append((f"{base} + {label}" if base else label, series))
    if not rows:
        return None
    ticks = ticks_of([end for _, series in rows for pair in series.values() for end in pair])
    return svg_chart.ranges(f"Loss at {survey.longest} bytes, nats per byte", names, rows, ticks,
                            "{:.2f}".format)


def summary(survey):
    """The sentence of the page's first block."""
    if survey.larger is None or not survey.larger.is_complete:
        return []
    count, differing = len(labels_of(survey)), len(changes(survey))
    times = parameters_of(survey.larger, "text") / parameters_of(survey, "text")
    same = "for all" if not differing else f"for {count - differing} of"
    return [f"[With {times:.1f} times the parameters](#in-a-larger-model) the verdict is the same "
            f"{same} {count} methods that were trained again."]
