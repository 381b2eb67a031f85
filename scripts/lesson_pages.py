"""docs/learn.md and docs/learn.zh.md, drawn by draw_literature.py from docs/data/lesson.toml.

A step has a title `en`, `zh`, its claim, text_en and text_zh, a number as a sentence with keys
(literature_numbers.py), number_en and number_zh, a command, a check of check_literature.py, and
pictures of docs/images/methods, which `sextant plot lesson` draws in this order.
"""
import textwrap
import tomllib

import literature_numbers
from page_blocks import ROOT

PAGES = {"en": ROOT / "docs/learn.md", "zh": ROOT / "docs/learn.zh.md"}
NUMBER = {"en": "**One number:** ", "zh": "**一个数**："}


def lesson():
    return tomllib.loads((ROOT / "docs/data/lesson.toml").read_text("utf-8"))


def steps():
    return lesson()["step"]


def joined(text, language):
    """A paragraph as one line."""
    return text if language == "zh" else " ".join(text.split())


def wrapped(text, language):
    """Lines of at most 100 columns; a Chinese paragraph is one line."""
    if language == "zh":
        return text
    return textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False)


def template(language):
    """A page with keys for its numbers."""
    told = lesson()
    parts = told[f"head_{language}"].strip().split("\n\n")
    for number, step in enumerate(told["step"], 1):
        parts += [f"## {number}. {step[language]}", step[f"text_{language}"],
                  *(f"![{step[language]}](images/methods/{name}.svg)" for name in step["pictures"]),
                  NUMBER[language] + step[f"number_{language}"],
                  f"```\n{step['command']}\n"
                  f"python3 scripts/check_literature.py {step['check']}\n```"]
    return parts


def pages():
    return {path: "\n\n".join(
        part if part.startswith(("#", "!", "`")) else
        wrapped(literature_numbers.drawn(part, language), language)
        for part in template(language)) + "\n" for language, path in PAGES.items()}


def paragraphs():
    """[(page, its language, a paragraph with keys)]"""
    return [(path, language, part) for language, path in PAGES.items()
            for part in template(language) if literature_numbers.KEY.search(part)]
