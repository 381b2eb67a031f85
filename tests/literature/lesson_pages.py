"""docs/learn.md and docs/learn.zh.md, drawn by draw_literature.py from docs/data/lesson.toml.

A step has a title `en`, `zh`, its claim, text_en and text_zh, a number as a sentence with keys
(literature_numbers.py), number_en and number_zh, commands that draw and check it, and pictures of
docs/images/methods with captions, which `sextant plot lesson` draws in this order.
"""
import tomllib

import literature_numbers
from page_blocks import ROOT, wrapped

PAGES = {"en": ROOT / "docs/learn.md", "zh": ROOT / "docs/learn.zh.md"}
NUMBER = {"en": "**One number:** ", "zh": "**一个数**："}


def lesson():
    return tomllib.loads((ROOT / "docs/data/lesson.toml").read_text("utf-8"))


def steps():
    return lesson()["step"]


def figure(picture, language):
    """A picture and its caption."""
    end = {"en": ".", "zh": "。"}[language]
    return [f"![{picture['name']}](images/methods/{picture['name']}.svg)",
            f"*{picture[language]}{end}*"]


def template(language):
    """The paragraphs of a page, with keys for its numbers."""
    parts = lesson()[f"head_{language}"].strip().split("\n\n")
    for number, step in enumerate(steps(), 1):
        parts += [f"## {number}. {step[language]}", step[f"text_{language}"],
                  *(part for picture in step["pictures"] for part in figure(picture, language)),
                  NUMBER[language] + step[f"number_{language}"],
                  "\n".join(["```", *step["commands"], "```"])]
    return parts


def pages():
    return {path: "\n\n".join(
        part if part.startswith(("#", "!", "`")) else
        wrapped(literature_numbers.drawn(part, language), language)
        for part in template(language)) + "\n" for language, path in PAGES.items()}


def paragraphs():
    """[(page, its language, a paragraph with keys)]"""
    return [(path, language, part if language == "zh" else " ".join(part.split()))
            for language, path in PAGES.items() for part in template(language)
            if literature_numbers.KEY.search(part)]
