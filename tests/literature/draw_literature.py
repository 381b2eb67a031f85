#!/usr/bin/env python3
"""Writes docs/literature.md and docs/literature.zh.md from docs/data/literature/, the Chinese
summaries of chinese_pages.py, the lesson of lesson_pages.py, and the numbers that docs/methods/*.md
mark with <!-- number SOURCE|NAME|MEASURE -->...<!-- /number -->.

usage: draw_literature.py [--check] [--program PATH]
       draw_literature.py --numbers | --open

--check writes nothing and fails if a page is stale. With --program the formulas that this sextant
prints (`methods NAME`) are read first into docs/data/literature/formulas.json, or with --check
compared with it. --numbers compares every number of the pages with its data. --open lists the items
that are not decided yet, with their commands.

A chapter is a file N-NAME.toml with titles `en` and `zh` and sections. A section has titles,
methods whose formulas are shown, figures of docs/images/methods (a name, or {name, en, zh} with
captions) and perhaps a table (`insert`). An item has

  ids       its numbers in the audits of the notes: A1 .. A64, B1 .. B26, C1 .. C13, D1 .. D20,
            E1 .. E19, and N1 .. N25, which the third audit found in any of the notes
  methods   pages of docs/methods
  commands  commands that show it
  paper     the paper's or the notes' formula, where it differs from the printed one; paper_zh: with
            its remarks in Chinese
  en, zh    the statement of the notes
  out_en, out_zh   the result here. {findings}, {questions}, {quick} and the names of
            literature_numbers.NOTES become links to the measurements with their seeds, and
            {SOURCE|NAME|MEASURE} a number of docs/data (literature_numbers.py); no measured number
            is typed
  heading   an anchor of its own

and a misprint (file 5) has key, where, quote, pages, commands, en, zh, and ids where it is one of
N1 .. N25. conditions.json beside the folder is written by draw_conditions.py.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tomllib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))

import chinese_pages  # noqa: E402  (these need the path above)
import lesson_pages  # noqa: E402
import literature_numbers  # noqa: E402
import page_blocks  # noqa: E402
from page_blocks import ROOT, wrapped  # noqa: E402

DATA = ROOT / "docs/data/literature"
METHODS = sorted((ROOT / "docs/methods").glob("*.md"))
PAGES = {"en": ROOT / "docs/literature.md", "zh": ROOT / "docs/literature.zh.md"}
RUN = "tests/literature/draw_literature.py --program build/release/bin/sextant"
NOTES = {"A": 64, "B": 26, "C": 13, "D": 20, "E": 19, "N": 25}

SOURCES = {
    "findings": ("findings", {"en": "[findings](findings.md)", "zh": "[结果总表](findings.zh.md)"}),
    "questions": ("claims", {"en": "[open questions](questions.md)",
                             "zh": "[待解问题](questions.zh.md)"}),
    "quick": ("quick", {"en": "[quick look](data/quick-look.json)",
                        "zh": "[小规模试跑](data/quick-look.json)"}),
    **{each: (each, {"en": f"[{each}](data/notes/{each}.json)",
                     "zh": f"[补充试验](data/notes/{each}.json)"})
       for each in literature_numbers.NOTES},
}
SEEDS = {"en": {1: ", one seed", 3: ", three seeds"}, "zh": {1: "，一个种子", 3: "，三个种子"}}
WORDS = {
    "out": {"en": "*Here:* ", "zh": "*结果*："},
    "paper": {"en": "Paper or note: ", "zh": "论文或笔记："},
    "misprints": {"en": "Misprints and contradictions", "zh": "勘误与矛盾之处"},
    "printed": {"en": "As `sextant methods` prints it:", "zh": "`sextant methods` 打印的公式："},
    "yes": {"en": "yes", "zh": "是"},
    "no": {"en": "no", "zh": "否"},
    "wrapped": {"en": "as wrapped", "zh": "取决于所套用的方法"},
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


def command_block(commands):
    """The commands, continued on another line before an option where one is too long."""
    lines = [command if len(command) <= 96 else command.replace(" --", " \\\n    --")
             for command in commands]
    return "```\n" + "\n".join(lines) + "\n```\n"


def method_link(name, language):
    return f"[{name}](methods/{name}.md)"


def linked(text, language):
    """The text with a link, and how many seeds, for the name of each page of measurements."""
    for key, (source, link) in SOURCES.items():
        count = literature_numbers.seeds(source)
        text = text.replace(f"{{{key}}}", link[language] + SEEDS[language][count])
    return text


def filled(text, language):
    return literature_numbers.drawn(linked(text, language), language)


def anchors_of(item):
    return "".join(f'<a id="{each.lower()}"></a>' for each in item.get("ids", []))


def item_text(item, language):
    anchors = anchors_of(item)
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
    return introduction("terms", language) + page_blocks.table(head, rows) + "\n"


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
    return introduction("conditions", language) + page_blocks.table(head, rows) + "\n"


def section_text(section, language):
    other = section["zh"] if language == "en" else ""
    title = section[language] + (f" ({other})" if other and other != section["en"] else "")
    text = f"### {title}\n\n" + formula_block(section["methods"], language)
    for figure in section["figures"]:
        figure = {"name": figure} if isinstance(figure, str) else figure
        text += f"![{figure['name']}](images/methods/{figure['name']}.svg)\n\n"
        text += wrapped(figure[language], language) + "\n\n" if language in figure else ""
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
    return (f'<a id="misprint-{misprint["key"]}"></a>{anchors_of(misprint)}\n\n'
            + wrapped(text, language) + "\n\n" + command_block(misprint["commands"]) + "\n")


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
    said = subprocess.run([program, "methods", "--json"], check=True, capture_output=True,
                          text=True).stdout
    found = {each["name"]: each["formula"].split("; ") for each in json.loads(said)}
    return {name: found[name] for name in sorted(names)}


def open_items():
    """Lines that name the items without a result and the commands that decide them."""
    return [f"{', '.join(item['ids'])}: {command}" for item in items()
            if "ot decided yet" in item["out_en"]
            for command in item["commands"] if " survey " in command]


def texts(language):
    """[(its name, text with keys)] of all paragraphs of results, with the word before them."""
    found = [(", ".join(each["ids"]), WORDS["out"][language] + each[f"out_{language}"])
             for each in items()]
    return found + [(each["key"], each[language]) for each in misprints()]


def marked():
    """[(page, key, number)] of the marked numbers of method pages."""
    return [(path.name, *found) for path in METHODS
            for found in literature_numbers.MARKED.findall(path.read_text("utf-8"))]


def quoted_numbers():
    """The keys [SOURCE, NAME, MEASURE] of the numbers of all pages."""
    return [key.split("|") for _, key, _ in marked()] + [
        key for language in PAGES for _, text in texts(language)
        for key in literature_numbers.KEY.findall(text)]


def compare_numbers():
    """Compares the numbers of the pages with their data. Returns the exit status."""
    found = [(page, key, there, literature_numbers.number(key)) for page, key, there in marked()]
    for language, path in PAGES.items():
        flat = " ".join(path.read_text("utf-8").split())
        for name, text in texts(language):
            rows = literature_numbers.compared(linked(text, language), flat, language)
            found += [(f"{path.name}: {name}", *row) for row in rows]
    others = [(path, "zh", text) for path, text in chinese_pages.paragraphs()]
    for path, language, text in others + lesson_pages.paragraphs():
        flat = " ".join(path.read_text("utf-8").split()) if language == "en" else \
            path.read_text("utf-8")
        rows = literature_numbers.compared(text, flat, language)
        found += [(path.name, *row) for row in rows]
    differ = [each for each in found if each[2] != each[3]]
    for where, key, on_page, in_data in differ:
        print(f"{where}: {{{key}}}: the page has {on_page}, the data {in_data}")
    print(f"{len(found)} numbers compared with their data, {len(differ)} differ")
    return 1 if differ else 0


def parsed(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true",
                        help="write nothing and fail if a page is stale")
    parser.add_argument("--program", metavar="PATH",
                        help="read the formulas that this sextant prints first, or check them")
    parser.add_argument("--numbers", action="store_true",
                        help="compare every number of the pages with its data, and write nothing")
    parser.add_argument("--open", action="store_true",
                        help="list the items that are not decided yet, with their commands")
    given = parser.parse_args(arguments)
    if given.open + given.numbers + bool(given.check or given.program) > 1:
        parser.error("--open, --numbers: expected no other option")
    return given


def main(arguments):
    given = parsed(arguments)
    if given.open:
        print(*open_items(), sep="\n")
        return 0
    if given.numbers:
        return compare_numbers()
    wanted = {}
    if given.program:
        text = json.dumps(printed_formulas(given.program), indent=1, ensure_ascii=False) + "\n"
        wanted[DATA / "formulas.json"] = text
        if not given.check:  # the pages print them
            page_blocks.write(wanted, False, RUN)
    wanted |= {path: page(language) for language, path in PAGES.items()} | chinese_pages.pages()
    wanted |= lesson_pages.pages()
    wanted |= {path: literature_numbers.remarked(path.read_text("utf-8")) for path in METHODS}
    return page_blocks.write(wanted, given.check, RUN)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
