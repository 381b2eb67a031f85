"""The charts of docs/findings.md, and the lines of Markdown that show them."""
import math

import svg_chart
from findings_data import interval
from findings_words import NAMED, STRETCHED

# Methods that readers know, which stand in charts beside the best.
KNOWN = {"": ("rope", "sinusoidal", "alibi", "t5"), STRETCHED: ("rope", "yarn", "ntk", "pi")}


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


def ticks_of(numbers):
    """A few round ticks that span the numbers."""
    low, high = min(numbers), max(numbers)
    step = next((step for step in (0.02, 0.05, 0.1, 0.2, 0.5, 1) if high - low <= 6 * step), 2)
    first, last = math.floor(low / step), math.ceil(high / step)
    return [round(step * n, 2) for n in range(first, max(last, first + 1) + 1)]


def change_chart(survey, base):
    title = f"Change of the loss of a stretched {base}" if base else "Change of the loss"
    series = {label: [(length, interval(survey.change(label, length).values())[0])
                      for length in survey.lengths] for label in charted(survey, base)}
    if not series:
        return None
    ticks = ticks_of([0, *(y for points in series.values() for _, y in points)])
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
    ticks = ticks_of([end for _, series in rows for pair in series.values() for end in pair])
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
