"""The measured numbers on pages, drawn from docs/data by a key {SOURCE|NAME|MEASURE}.

SOURCE is a survey: findings, findings-larger or a file of docs/data/questions or docs/data/notes.
NAME is the label of an arm, and MEASURE one of

  128           the sliding loss at this length
  change        its change at the longest length, change@256 at another; of a stretch against the
                loss of its rope at the training length, as on docs/findings.md
  cost          the difference of a stretch and its rope at the training length
  far, near     the share of pairs found in the longest sequences, at their beginning or 32 back
  direction     the least and the largest share of marks by distance, at the training length
  share@1       the least and the largest share of a head of layer 1 that distance explains, seed 0;
                start@1: before training
  weights       the number of trained weights
  verdict       holds, drifts, breaks, not learned
  machine       the processor of the trainings

or NAME is the beginning of a claim's words in lower case with hyphens, and MEASURE is claim, its
number, or outcome. NAME may be a class, absolute, relative or relative-minus-absolute: of the
trained methods that have learned the text and are in conditions.json, those whose scores do not or
do depend on i - j alone. Its MEASURE is change, the mean over its methods; size or holding, counts
of methods. A number over seeds stands with half of its 95 % interval (Student's t).

{quick|ARM|128} is of docs/data/quick-look.json, one seed; {words|rotation_speed|least} and largest
of complex-words-result.json; and {check|NAME|WORDS} is the number that a check of
check_literature.py prints behind these words, kept in literature/checks.json.
"""
import functools
import json
import re
import statistics

from page_blocks import ROOT

DATA = ROOT / "docs/data"
KEY = re.compile(r"\{([\w-]+)\|([^|{}]+)\|([^|{}]+)\}")
MARKED = re.compile(r"<!-- number ([^|>]+\|[^|>]+\|[^|>]+) -->(.*?)<!-- /number -->", re.DOTALL)
QUESTIONS = ("claims", "length-512", "length-64", "masked", "variants", "vectors")
NOTES = ("arms", "shifted", "small-data", "two-digits")  # of docs/data/notes, one seed
CLASSES = ("absolute", "relative", "relative-minus-absolute")
STUDENT = {3: 4.302653}  # the 97.5 % quantile of t with one degree of freedom less
CHINESE = {"holds": "稳定", "drifts": "变差", "breaks": "失效", "not learned": "未学会",
           "fails": "不成立", "undecided": "未定"}
OUTCOMES = {**CHINESE, "holds": "成立"}  # of claims


class UnknownNumber(LookupError):
    """A key that the data does not have."""


@functools.lru_cache(None)
def data(source):
    names = {"quick": "quick-look", "words": "complex-words-result", "check": "literature/checks",
             **{each: f"questions/{each}" for each in QUESTIONS},
             **{each: f"notes/{each}" for each in NOTES}}
    return json.loads((DATA / f"{names.get(source, source)}.json").read_text("utf-8"))


@functools.lru_cache(None)
def summary(source):
    """{(arm, measure, length, distance): (mean, half of the interval, seeds)} of a survey."""
    return {(row["method"], row["measure"], row["length"], row.get("distance")):
            (row["mean"], row.get("half_interval95"), row["seeds"])
            for row in data(source)["summary"]}


def seeds(source):
    """The seeds that each number of a source is a mean over."""
    (one,) = {1} if source in ("quick", "words") else {row[2] for row in summary(source).values()}
    return one


def plain(value, digits, signed=False):
    return f"{value:{'+' if signed else ''}.{digits}f}".replace("-", "−")


def shown(mean, half, digits=3, signed=False):
    """A mean with half of its interval; of one seed there is none."""
    return plain(mean, digits, signed) + ("" if half is None else f" ± {plain(half, digits)}")


def extremes(values):
    """The least and the largest of shares, or the one number that they are."""
    return "–".join(dict.fromkeys(plain(each, 2) for each in (min(values), max(values))))


def claim(source, name):
    slugs = {re.sub("[^a-z0-9]+", "-", each["claim"].lower()): each
             for each in data(source)["claims"]}
    found = [slug for slug in slugs if slug.startswith(name)]
    if name not in slugs and len(found) != 1:
        raise UnknownNumber(f"{name}: expected the beginning of one claim, but of {found}")
    return slugs[name if name in slugs else found[0]]


@functools.lru_cache(None)
def methods_of(source, name):
    """The methods of a class."""
    conditions = json.loads((DATA / "conditions.json").read_text("utf-8"))
    trained = {each["arm"]["label"] for each in data(source)["arms"]
               if not each["arm"]["weights_from"]}
    learned = {row["method"] for row in data(source)["verdicts"] if row["verdict"] != "not learned"}
    return [arm for arm in sorted(trained & learned & conditions.keys())
            if (conditions[arm]["relative"] == "no") == (name == "absolute")]


def change_of_class(source, name):
    """The mean of a class's changes at the longest length, by seed."""
    if name == "relative-minus-absolute":
        return [a - b for a, b in zip(*(change_of_class(source, each)
                                        for each in ("relative", "absolute")))]
    by_seed = {}
    for each in data(source)["arms"]:
        if each["arm"]["task"] == "text" and each["arm"]["label"] in methods_of(source, name):
            by_seed.setdefault(each["arm"]["seed"], []).append(
                each["lengths"][-1]["sliding_change"]["mean"])
    return [statistics.mean(by_seed[seed]) for seed in sorted(by_seed)]


def of_class(source, name, measure):
    if measure == "change":
        found = change_of_class(source, name)
        half = STUDENT[len(found)] * statistics.stdev(found) / len(found) ** 0.5
        return shown(statistics.mean(found), half, signed=True)
    methods = methods_of(source, name)
    verdicts = {row["method"]: row["verdict"] for row in data(source)["verdicts"]}
    counts = {"size": len(methods), "holding": [verdicts[arm] for arm in methods].count("holds")}
    return str(counts[measure])


def of_survey(source, name, measure):
    if name in CLASSES:
        return of_class(source, name, measure)
    settings = data(source)["settings"]
    lengths, task = settings["test"]["lengths"], settings["retrieval"]
    kind, _, at = measure.partition("@")
    if kind in ("claim", "outcome"):
        each = claim(source, name)
        return each["outcome"] if kind == "outcome" else \
            f"{plain(each['mean'], 3, True)} ± {plain(each['half_interval95'], 3)}"
    if kind == "verdict":
        return {row["method"]: row["verdict"] for row in data(source)["verdicts"]}[name]
    if kind == "machine":
        (one,) = {each["machine"].split(",")[0].replace("(R)", "") for each in data(source)["arms"]
                  if each["arm"]["label"] == name}
        return one.removesuffix(" Processor")
    if kind == "weights":
        (one,) = {each["weights"] for each in data(source)["arms"]
                  if (each["arm"]["label"], each["arm"]["task"]) == (name, "text")}
        return f"{one:,}".replace(",", " ")
    if kind in ("share", "start"):
        when = {"share": "trained", "start": "untrained"}[kind]
        return extremes([head[when] for each in data(source)["arms"]
                       if each["arm"]["label"] == name and "positions" in each
                       for head in each["positions"]["heads"] if head["layer"] == int(at) - 1])
    if kind == "direction":
        return extremes([row[0] for key, row in summary(source).items()
                       if key[:3] == (name, "direction", task["length"])])
    if kind in ("far", "near"):
        length = task["lengths"][-1]
        distance = length - 8 if kind == "far" else task["length"] // 2
        mean, half, _ = summary(source)[name, "retrieval", length, distance]
        return shown(mean, half, 2)
    changes = kind in ("change", "cost")
    length = int(at or {"change": lengths[-1], "cost": lengths[0]}.get(kind) or kind)
    rows = [summary(source).get((name, each, length, None)) for each in
            (("base_change", "sliding_change") if changes else ("sliding",))]
    mean, half, _ = next(row for row in rows if row)
    return shown(mean, half, 3, changes)


def of_quick_look(arm, length):
    row = data("quick")["first"].get(arm) or data("quick")["second"][arm]
    lengths = data("quick")["lengths"]
    return plain(row[(lengths if len(row) == 4 else lengths[::3]).index(int(length))], 3)


def number(key, language="en"):
    """The number that SOURCE|NAME|MEASURE stands for, as pages have it."""
    source, name, measure = key.split("|")
    try:
        if source == "check":
            value = data(source)[name][measure]
            return f"{value:.0f}" if value > 999 and value.is_integer() else \
                f"{value:.3g}".replace("e-0", "e-").replace("e+0", "e")
        if source == "words":
            return plain({"least": min, "largest": max}[measure](data(source)[name].values()), 3)
        if source == "quick":
            return of_quick_look(name, measure)
        found = of_survey(source, name, measure)
    except (LookupError, ValueError, TypeError, AttributeError, StopIteration, OSError) as error:
        raise UnknownNumber(f"{{{key}}}: expected a number of docs/data, but got {error!r}"
                            ) from error
    chinese = OUTCOMES if measure == "outcome" else CHINESE
    return chinese.get(found, found) if language == "zh" else found


def drawn(text, language="en"):
    """The text with a number for each key."""
    return KEY.sub(lambda found: number(found[0][1:-1], language), text)


def remarked(page):
    """A page with each marked number as it is in the data."""
    return MARKED.sub(
        lambda found: f"<!-- number {found[1]} -->{number(found[1])}<!-- /number -->", page)


def compared(template, page, language):
    """[(key, the page's number, the data's)] of a paragraph with keys, and of a page with spaces
    for line breaks; the page's number is None if it has no such paragraph."""
    parts = KEY.split(template)
    keys = ["|".join(parts[n:n + 3]) for n in range(1, len(parts), 4)]
    pattern = "(.{1,60}?)".join(map(re.escape, parts[::4]))
    found = re.search(pattern + r"(?!\d)", page)
    return [(key, found and found[n + 1], number(key, language)) for n, key in enumerate(keys)]


def typed(text):
    """The numbers with decimals that a text with keys has of its own, outside of code."""
    rest = re.sub(r"`[^`]*`|\]\([^)]*\)|(?:[Ee]quation|式) ?\d\.\d", "", KEY.sub("", text))
    return re.findall(r"\d+\.\d+(?:e-?\d+)?", rest)
