"""Foreign text as a terminal may show it, as ``sextant/base/printable.h`` has it in C++."""

from __future__ import annotations

import re
import sys

# C0, DEL and C1 control characters, separators of lines and paragraphs, overrides and isolates of
# direction.
_HIDDEN = re.compile("[\0-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
_HIDDEN_IN_LINES = re.compile(_HIDDEN.pattern.replace("\0-\x1f", "\0-\b\v-\x1f"))
_NO_UTF8 = re.compile("[\ud800-\udfff]")  # in a str: bytes that are no UTF-8
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _escaped(found: re.Match[str]) -> str:
    return _SHORT.get(found[0], f"\\u{ord(found[0]):04x}")


def printable(text: object) -> str:
    """One line, with control characters as JSON escapes them."""
    return _HIDDEN.sub(_escaped, _NO_UTF8.sub("\ufffd", str(text)))


def printable_lines(text: object) -> str:
    """Text whose line feeds and tabs stay."""
    return _HIDDEN_IN_LINES.sub(_escaped, _NO_UTF8.sub("\ufffd", str(text)))


def print_error(message: object, who: str = "sextant") -> None:
    """A message on standard error; its lines after the first are indented."""
    print(f"{who}: " + re.sub(r"\n(?!  )", "\n  ", printable_lines(message)), file=sys.stderr,
          flush=True)
