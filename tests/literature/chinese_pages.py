"""Chinese summaries of docs/findings.md, questions.md and survey.md, drawn by draw_literature.py.

A page docs/NAME.zh.md is docs/data/chinese/NAME.txt with a number for each key
(literature_numbers.py) and a table for each line

  <!-- verdicts SOURCE METHODS MEASURE... -->   METHODS are trained, stretches or labels with commas
  <!-- question WORDS -->    the claims on the open question that begins so, of docs/data/questions
  <!-- subject WORDS -->     the findings' claims on a subject of report/claims.json

{answer|findings|train} and {answer|findings|stretch} are the names that the drawn block of
docs/findings.md recommends. claims.toml has each claim's words in Chinese.
"""
import functools
import json
import re
import tomllib

import literature_numbers
import page_blocks
from literature_numbers import OUTCOMES, QUESTIONS, data, number, plain
from page_blocks import ROOT

FOLDER = ROOT / "docs/data/chinese"
TABLE = re.compile(r"^<!-- (verdicts|question|subject) (.+?) -->\n", re.MULTILINE)
ANSWER = re.compile(r"\{answer\|findings\|(Train with|Stretch a trained rope with)\}")
HEADS = {"verdict": "判定", "change": "变化", "cost": "代价", "far": "远处检索正确率",
         "direction": "方向任务"}


@functools.lru_cache(None)
def words():
    """{a claim in English: in Chinese}"""
    return tomllib.loads((FOLDER / "claims.toml").read_text("utf-8"))


@functools.lru_cache(None)
def known_claims():
    """{a claim: (its subject, its question or None)}, in the order of the report."""
    subjects = json.loads((ROOT / "sextant/lab/report/claims.json").read_text("utf-8"))
    return {each["claim"]: (subject, each.get("question"))
            for subject, claims in subjects.items() for each in claims}


def recommended(found):
    """The names in bold that begin the answer of docs/findings.md."""
    page = " ".join((ROOT / "docs/findings.md").read_text("utf-8").split())
    names = re.search(rf"\*\*{found[1]} ([^*]+)\*\*", page)[1]
    names = re.sub(r", or one of (\d+) others", r"（或另外 \1 种之一）", names)
    return names.replace(", ", "、").replace(" or ", " 或 ")


def labels(source, which):
    """The labels of a table; trained ones and stretches by their loss at the longest length, those
    that have not learned the text last."""
    if which not in ("trained", "stretches"):
        return which.split(",")
    longest = data(source)["settings"]["test"]["lengths"][-1]
    losses = literature_numbers.summary(source)
    found = {each["arm"]["label"] for each in data(source)["arms"]
             if bool(each["arm"]["weights_from"]) == (which == "stretches")}
    return sorted(found, key=lambda label: (number(f"{source}|{label}|verdict") == "not learned",
                                            losses[label, "sliding", longest, None][0]))


def verdicts(source, which, *measures):
    rows = [[f"`{label}`", *(number(f"{source}|{label}|{each}", "zh") for each in measures)]
            for label in labels(source, which)]
    return page_blocks.table(
        ["方法", *(HEADS.get(each, f"{each} 处损失") for each in measures)], rows)


def claim_row(each, length):
    measured = f"{plain(each['mean'], 3, True)} ± {plain(each['half_interval95'], 3)}"
    return [words()[each["claim"]], " − ".join(f"`{arm}`" for arm in each["arms"]), length,
            OUTCOMES[each["outcome"]], measured,
            f"{'>' if each['side'] == 'above' else '<'} {each['bound']:g}".replace("-", "−")]


def claims(sources, wanted):
    """A table of the claims that `wanted` has, each with its arms once for each L, if there are
    several."""
    order, rows = list(known_claims()), {}
    for source in sources:
        length = str(data(source)["settings"]["training"]["length"])
        for each in data(source)["claims"]:
            if wanted(*known_claims()[each["claim"]]):
                key = (order.index(each["claim"]), int(length), each["arms"])
                rows.setdefault(json.dumps(key), (key, claim_row(each, length)))
    if not rows:
        raise LookupError("no claim")
    lines = [["论断", "方法", "L", "判定", "测得", "论断所说"],
             *(row for _, row in sorted(rows.values()))]
    if len({row[2] for row in lines[1:]}) == 1:
        lines = [row[:2] + row[3:] for row in lines]
    return page_blocks.table(lines[0], lines[1:])


def drawn_table(found):
    kind, given = found[1], found[2]
    if kind == "verdicts":
        return verdicts(*given.split())
    if kind == "subject":
        return claims(["findings"], lambda subject, _: subject == given)
    return claims(QUESTIONS, lambda _, question: (question or "").startswith(given))


def templates():
    """{path of a page: its template, with tables and names but with keys}"""
    return {ROOT / f"docs/{path.stem}.zh.md":
            ANSWER.sub(recommended, TABLE.sub(drawn_table, path.read_text("utf-8")))
            for path in sorted(FOLDER.glob("*.txt"))}


def pages():
    return {path: literature_numbers.drawn(text, "zh") for path, text in templates().items()}


def paragraphs():
    """[(page, a paragraph with keys)]"""
    return [(path, part) for path, text in templates().items() for part in text.split("\n\n")
            if literature_numbers.KEY.search(part)]
