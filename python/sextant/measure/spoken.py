"""Answers of models that reason before they speak."""

from __future__ import annotations

from sextant.measure.errors import NoAnswer

BEGIN, END = "<think>", "</think>"  # of reasoning within a text


def spoken(text: str, *, ran_out: bool, reasons: bool = False) -> str:
    """A text without the reasoning at its beginning.

    ran_out: the model had no more tokens. reasons: it also reasoned beside the text. Raises
    NoAnswer if reasoning took tokens that the answer needed."""
    _, end, after = text.rpartition(END)
    opened = text.lstrip().startswith(BEGIN)
    if ran_out and (reasons or end or opened):
        raise NoAnswer("the answer ran out of tokens (finish_reason length), as the model spent "
                       "them on reasoning; expected one that answers without", text)
    return after if end else "" if opened else text
