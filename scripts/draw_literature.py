#!/usr/bin/env python3
"""Writes docs/literature.md and docs/literature.zh.md from docs/data/literature/.

usage: draw_literature.py [--check] [--program PATH]
       draw_literature.py --open

--check writes nothing and fails if a page is stale. With --program the formulas that this sextant
prints (`methods NAME`) are read first into docs/data/literature/formulas.json, or with --check
compared with it. --open lists the items that are not decided yet, with their commands.

A chapter is a file N-NAME.toml with titles `en` and `zh` and sections. A section has titles,
methods whose formulas are shown, figures of docs/images/methods and perhaps a table (`insert`). An
item has

  ids       its numbers in the audit of the notes: A1 .. A64, B1 .. B26, C1 .. C13, D1 .. D20,
            E1 .. E19
  methods   pages of docs/methods
  commands  commands that show it
  paper     the paper's or the notes' formula, where it differs from the printed one; paper_zh: with
            its remarks in Chinese
  en, zh    the statement of the notes
  out_en, out_zh   the result here. {survey}, {quick} and {questions} become links to the
            measurements, {SURVEY|ARM|LENGTH} a loss of docs/data/questions/SURVEY.json,
            {SURVEY|ARM|change} its change, and {masked|ARM|direction} a share of marks at L
  heading   an anchor of its own

and a misprint (file 5) has key, where, quote, pages, commands, en, zh. conditions.json beside the
folder is written by draw_conditions.py.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import textwrap
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
DATA = ROOT / "docs/data/literature"
PAGES = {"en": ROOT / "docs/literature.md", "zh": ROOT / "docs/literature.zh.md"}
NOTES = {"A": 64, "B": 26, "C": 13, "D": 20, "E": 19}

WORDS = {
    "survey": {"en": "[survey](survey.md#the-output)", "zh": "[调查](survey.md#the-output)"},
    "questions": {"en": "[open questions](questions.md)", "zh": "[待解问题](questions.md)"},
    "quick": {"en": "[quick look](data/quick-look.json)", "zh": "[速览](data/quick-look.json)"},
    "out": {"en": "*Here:* ", "zh": "*结果*："},
    "paper": {"en": "Paper or note: ", "zh": "论文或笔记："},
    "misprints": {"en": "Misprints and contradictions", "zh": "勘误与矛盾之处"},
    "printed": {"en": "As `sextant methods` prints it:", "zh": "`sextant methods` 打印的公式："},
    "yes": {"en": "yes", "zh": "是"},
    "no": {"en": "no", "zh": "否"},
    "wrapped": {"en": "as wrapped", "zh": "同所套方法"},
    "first": {"en": "first {}", "zh": "前 {} 个"},
    "table": {"en": "all {} of its table", "zh": "表内 {} 个"},
    "tried": {"en": "yes, {} tried", "zh": "是（试到 {}）"},
    "up to L": {"en": "up to L", "zh": "L 以内"},
    "error": {"en": "error from {}", "zh": "{} 起报错"},
    "term": {"en": "term {}", "zh": "第 {} 项"},
    "first_term": {"en": "kept", "zh": "保留"},
    "rotated": {"en": "rotated", "zh": "被旋转"},
    "method": {"en": "method", "zh": "方法"},
    "other": {"en": "other", "zh": "其他"},
    "how": {"en": "how", "zh": "做法"},
    "unique": {"en": "unique", "zh": "唯一"},
    "relative": {"en": "relative", "zh": "相对"},
    "any length": {"en": "any length", "zh": "任意长度"},
    "direction": {"en": "direction", "zh": "方向"},
}


def words_of(language):
    return {key: each[language] for key, each in WORDS.items()}


def chapters():
    """The chapters in their order, without the misprints."""
    return [tomllib.loads(path.read_text("utf-8")) for path in sorted(DATA.glob("[1-4]-*.toml"))]


def misprints():
    return tomllib.loads((DATA / "5-misprints.toml").read_text("utf-8"))["misprint"]


def items():
    return [item for chapter in chapters() for section in chapter["section"]
            for item in section["item"]]


def formulas():
    return json.loads((DATA / "formulas.json").read_text("utf-8"))


def conditions():
    return json.loads((DATA.parent / "conditions.json").read_text("utf-8"))


def wrapped(text, language):
    """Lines of at most 100 columns; a Chinese paragraph is one line: a break would show as a space.
    """
    if language == "zh":
        return text
    return textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False)


def command_block(commands):
    """The commands, continued on another line before an option where one is too long."""
    lines = [command if len(command) <= 96 else command.replace(" --", " \\\n    --")
             for command in commands]
    return "```\n" + "\n".join(lines) + "\n```\n"


def method_link(name, language):
    return f"[{name}](methods/{name}.md)"


def measured(match):
    """The number that {SURVEY|ARM|MEASURE} stands for."""
    survey, arm, measure = match.groups()
    found = json.loads((DATA.parent / f"questions/{survey}.json").read_text("utf-8"))
    settings = found["settings"]
    lengths = {"direction": settings["retrieval"]["length"],
               "change": max(settings["test"]["lengths"])}
    kind = {"direction": "direction", "change": "sliding_change"}.get(measure, "sliding")
    length = lengths.get(measure) or int(measure)
    means = [row["mean"] for row in found["summary"] if row["method"] == arm
             and row["measure"] == kind and row["length"] == length]
    if not means:
        sys.exit(f"{match[0]}: expected an arm of questions/{survey}.json")
    mean = sum(means) / len(means)  # of direction over the distances
    return f"{mean:.2f}" if kind == "direction" else f"{mean:{'+' * (measure in lengths)}.3f}"


def filled(text, language):
    words = words_of(language)
    for key in ("survey", "quick", "questions"):
        text = text.replace(f"{{{key}}}", words[key])
    return re.sub(r"\{([\w-]+)\|([^|}]+)\|([^|}]+)\}", measured, text)


def item_text(item, language):
    anchors = "".join(f'<a id="{each.lower()}"></a>' for each in item["ids"])
    if "heading" in item:
        anchors += f'<a id="{item["heading"]}"></a>'
    links = ", ".join(method_link(name, language) for name in item["methods"])
    bracketed, after = (" ({}) ", " ") if language == "en" else ("（{}）", "：")
    head = f"**{', '.join(item['ids'])}**" + (bracketed.format(links).rstrip() if links else "")
    out = WORDS["out"][language] + filled(item[f"out_{language}"], language)
    lines = [anchors, "", wrapped(head + after + filled(item[language], language), language), "",
             wrapped(out, language), ""]
    if "paper" in item:
        formula = item.get(f"paper_{language}", f"`{item['paper']}`")
        lines += [wrapped(WORDS["paper"][language] + formula, language), ""]
    return "\n".join(lines) + "\n" + command_block(item["commands"]) + "\n"


def formula_block(methods, language):
    printed = formulas()
    lines = [f"{name}: {printed[name][0]}" + "".join(
        f"\n{' ' * len(name)}  {more}" for more in printed[name][1:])
        for name in methods if name in printed]
    if not lines:
        return ""
    return f"{WORDS['printed'][language]}\n\n```\n" + "\n".join(lines) + "\n```\n\n"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "| " + " | ".join("---" for _ in head) + " |"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def introduction(name, language):
    text = tomllib.loads((DATA / "introductions.toml").read_text("utf-8"))[name][language]
    return wrapped(text, language) + "\n\n"


def terms_table(language):
    words, found = words_of(language), conditions()
    notes = tomllib.loads((DATA / "terms.toml").read_text("utf-8"))
    rows = []
    for name, note in notes.items():
        terms = found[name]["terms"]
        if terms is None:
            marks = [words["other"]] * 4
        else:
            marks = [words["rotated" if "1" in terms else "first_term"]]
            marks += [words["yes"] if each in terms else "" for each in "234"]
        rows.append([method_link(name, language), *marks, note[language]])
    head = [words["method"], *(words["term"].format(n) for n in "1234"), words["how"]]
    return introduction("terms", language) + table(head, rows) + "\n"


def condition_cells(found, words):
    unique, to = found["unique"], found["to"]
    if unique < to:
        first = words["no"] if unique == 1 else words["first"].format(unique)
    elif found["any_length"].isdigit():
        first = words["table"].format(unique)
    else:
        first = words["yes"] if to == 1024 else words["tried"].format(to)
    relative = words[found["relative"]]
    if found["relative"] != "yes":
        relative += f" ({found['share']:.2f})"
    length = found["any_length"]
    length = words["error"].format(length) if length.isdigit() else words[length]
    sees = found["direction"]
    return [first, relative, length, words["wrapped" if sees is None else "yes" if sees else "no"]]


def conditions_table(language):
    words = words_of(language)
    rows = []
    for arm, found in conditions().items():
        name = method_link(arm, language) if ":" not in arm else f"`{arm}`"
        rows.append([name, *condition_cells(found, words)])
    head = [words[key] for key in ("method", "unique", "relative", "any length", "direction")]
    return introduction("conditions", language) + table(head, rows) + "\n"


def section_text(section, language):
    other = section["zh"] if language == "en" else ""
    title = section[language] + (f" ({other})" if other and other != section["en"] else "")
    text = f"### {title}\n\n" + formula_block(section["methods"], language)
    text += "".join(f"![{name}](images/methods/{name}.svg)\n\n" for name in section["figures"])
    text += "".join(item_text(item, language) for item in section["item"])
    inserts = {"terms": terms_table, "conditions": conditions_table}
    if "insert" in section:
        text += inserts[section["insert"]](language)
    return text


def misprint_text(misprint, language):
    links = ", ".join(method_link(name, language) for name in misprint["pages"])
    form = "**{}** ({}): “{}”. {}" if language == "en" else "**{}**（{}）：“{}”。{}"
    text = form.format(misprint["where"], links, misprint["quote"],
                       filled(misprint[language], language))
    return (f'<a id="misprint-{misprint["key"]}"></a>\n\n' + wrapped(text, language) + "\n\n"
            + command_block(misprint["commands"]) + "\n")


def index_text():
    lines = (f"{note}: " + " ".join(f"[{n}](#{note.lower()}{n})" for n in range(1, count + 1))
             for note, count in NOTES.items())
    return "\n\n".join(wrapped(line, "en") for line in lines) + "\n\n"


def page(language):
    text = (DATA / f"head.{language}.txt").read_text("utf-8") + "\n" + index_text()
    for chapter in chapters():
        title = chapter[language] + (f" ({chapter['zh']})" if language == "en" else "")
        text += f"## {title}\n\n"
        text += "".join(section_text(section, language) for section in chapter["section"])
    text += f'<a id="misprints"></a>\n\n## {WORDS["misprints"][language]}\n\n'
    text += "".join(misprint_text(each, language) for each in misprints())
    return text.rstrip("\n") + "\n"


def printed_formulas(program):
    """The formulas that the program prints, {method: [line]}."""
    names = {name for chapter in chapters() for section in chapter["section"]
             for name in section["methods"] if name != "stretches"}
    found = {}
    for name in sorted(names):
        said = subprocess.run([program, "methods", name, "--json"], check=True, capture_output=True,
                              text=True).stdout
        found[name] = json.loads(said)["formula"].split("; ")
    return found


def open_items():
    """Lines that name the items without a result and the commands that decide them."""
    return [f"{', '.join(item['ids'])}: {command}" for item in items()
            if "ot decided yet" in item["out_en"]
            for command in item["commands"] if " survey " in command]


def parsed(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true",
                        help="write nothing and fail if a page is stale")
    parser.add_argument("--program", metavar="PATH",
                        help="read the formulas that this sextant prints first, or check them")
    parser.add_argument("--open", action="store_true",
                        help="list the items that are not decided yet, with their commands")
    given = parser.parse_args(arguments)
    if given.open and (given.check or given.program):
        parser.error("--open: expected no other option")
    return given


def main(arguments):
    given = parsed(arguments)
    if given.open:
        print(*open_items(), sep="\n")
        return 0
    wanted = {}
    if given.program:
        text = json.dumps(printed_formulas(given.program), indent=1, ensure_ascii=False) + "\n"
        wanted[DATA / "formulas.json"] = text
        if not given.check:
            (DATA / "formulas.json").write_text(text, "utf-8")
    wanted |= {path: page(language) for language, path in PAGES.items()}
    stale = []
    for path, text in wanted.items():
        if not given.check:
            path.write_text(text, "utf-8")
        elif not path.is_file() or path.read_text("utf-8") != text:
            stale.append(str(path.relative_to(ROOT)))
    if stale:
        print(f"{', '.join(stale)}: stale; run scripts/draw_literature.py --program "
              "build/release/bin/sextant", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
