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
  commands  commands that show it; `later`: those that later.txt still lists as unknown
  paper     the paper's or the notes' formula, where it differs from the printed one; paper_zh: with
            its remarks in Chinese
  en, zh    the statement of the notes
  out_en, out_zh   the result here. {survey} and {quick} become links to the measurements
  heading   an anchor of its own

and a misprint (file 5) has key, where, quote, pages, commands, en, zh. conditions.json beside the
folder is written by draw_conditions.py.
"""
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
    "en": {"survey": "[survey](survey.md#the-output)",
           "quick": "[quick look](data/quick-look.json)", "out": "*Here:* ",
           "paper": "Paper or note: ", "misprints": "Misprints and contradictions",
           "printed": "As `sextant methods` prints it:", "where": "in note",
           "yes": "yes", "no": "no", "wrapped": "as wrapped", "first": "first {}",
           "table": "all {} of its table", "tried": "yes, {} tried", "up to L": "up to L",
           "error": "error from {}", "term": "term {}", "first_term": "kept",
           "turned": "turned", "method": "method", "other": "other", "how": "how",
           "conditions": ["method", "unique", "relative", "any length", "direction"]},
    "zh": {"survey": "[调查](survey.md#the-output)", "quick": "[速览](data/quick-look.json)",
           "out": "*结果*：", "paper": "论文或笔记：", "misprints": "勘误与矛盾之处",
           "printed": "`sextant methods` 打印的公式：", "where": "笔记",
           "yes": "是", "no": "否", "wrapped": "同所套方法", "first": "前 {} 个",
           "table": "表内 {} 个", "tried": "是（试到 {}）", "up to L": "L 以内",
           "error": "{} 起报错", "term": "第 {} 项", "first_term": "保留",
           "turned": "被旋转", "method": "方法", "other": "其他", "how": "做法",
           "conditions": ["方法", "唯一", "相对", "任意长度", "方向"]},
}


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
    """Lines of at most 100 columns; Chinese breaks after punctuation, where a space is harmless."""
    if language == "en":
        return textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False)
    lines, line = [], ""
    for part in re.findall(r"[^，。；：]*[，。；：]?", text):
        if line and len(line) + len(part) > 60:
            lines.append(line)
            line = ""
            part = part.lstrip()
        line += part
    return "\n".join([*lines, line])


def command_block(commands):
    """The commands, continued on another line before an option where one is too long."""
    lines = [command if len(command) <= 96 else command.replace(" --", " \\\n    --")
             for command in commands]
    return "```\n" + "\n".join(lines) + "\n```\n"


def method_link(name, language):
    return f"[{name}](methods/{name}.md)"


def filled(text, language):
    words = WORDS[language]
    return text.replace("{survey}", words["survey"]).replace("{quick}", words["quick"])


def item_text(item, language):
    anchors = "".join(f'<a id="{each.lower()}"></a>' for each in item["ids"])
    if "heading" in item:
        anchors += f'<a id="{item["heading"]}"></a>'
    links = ", ".join(method_link(name, language) for name in item["methods"])
    bracketed, after = (" ({}) ", " ") if language == "en" else ("（{}）", "：")
    head = f"**{', '.join(item['ids'])}**" + (bracketed.format(links).rstrip() if links else "")
    out = WORDS[language]["out"] + filled(item[f"out_{language}"], language)
    lines = [anchors, "", wrapped(head + after + filled(item[language], language), language), "",
             wrapped(out, language), ""]
    if "paper" in item:
        formula = item.get(f"paper_{language}", f"`{item['paper']}`")
        lines += [wrapped(WORDS[language]["paper"] + formula, language), ""]
    return "\n".join(lines) + "\n" + command_block(item["commands"] + item.get("later", [])) + "\n"


def formula_block(methods, language):
    printed = formulas()
    lines = [f"{name}: {printed[name][0]}" + "".join(
        f"\n{' ' * len(name)}  {more}" for more in printed[name][1:])
        for name in methods if name in printed]
    if not lines:
        return ""
    return f"{WORDS[language]['printed']}\n\n```\n" + "\n".join(lines) + "\n```\n\n"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "| " + " | ".join("---" for _ in head) + " |"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def introduction(name, language):
    text = tomllib.loads((DATA / "introductions.toml").read_text("utf-8"))[name][language]
    return wrapped(text, language) + "\n\n"


def terms_table(language):
    words, found = WORDS[language], conditions()
    notes = tomllib.loads((DATA / "terms.toml").read_text("utf-8"))
    rows = []
    for name, note in notes.items():
        terms = found[name]["terms"]
        if terms is None:
            marks = [words["other"]] * 4
        else:
            marks = [words["turned"] if "turned" in terms else words["first_term"]]
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
    words = WORDS[language]
    rows = []
    for arm, found in conditions().items():
        name = method_link(arm, language) if ":" not in arm else f"`{arm}`"
        rows.append([name, *condition_cells(found, words)])
    return introduction("conditions", language) + table(words["conditions"], rows) + "\n"


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
            + command_block(misprint["commands"] + misprint.get("later", [])) + "\n")


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
    text += f'<a id="misprints"></a>\n\n## {WORDS[language]["misprints"]}\n\n'
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
            for command in item["commands"] + item.get("later", []) if " survey " in command]


def main(arguments):
    if arguments == ["--open"]:
        print(*open_items(), sep="\n")
        return 0
    check = "--check" in arguments
    wanted = {}
    if "--program" in arguments:
        program = arguments[arguments.index("--program") + 1]
        text = json.dumps(printed_formulas(program), indent=1, ensure_ascii=False) + "\n"
        wanted[DATA / "formulas.json"] = text
        if not check:
            (DATA / "formulas.json").write_text(text, "utf-8")
    wanted |= {path: page(language) for language, path in PAGES.items()}
    stale = []
    for path, text in wanted.items():
        if not check:
            path.write_text(text, "utf-8")
        elif not path.is_file() or path.read_text("utf-8") != text:
            stale.append(str(path.relative_to(ROOT)))
    if stale:
        print(f"{', '.join(stale)}: stale; run scripts/draw_literature.py --program "
              "build/release/bin/sextant", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
