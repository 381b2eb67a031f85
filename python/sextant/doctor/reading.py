"""The reading of a configuration: the answer of ``sextant explain --json``, as values.

This is the only module that starts the command: the one that SEXTANT_COMMAND names, the wheel's
``bin/sextant``, that of a source tree after its build, or ``sextant`` on PATH.
"""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import types
from dataclasses import dataclass
from typing import Any

from .._errors import Error
from .._files import MOST_JSON, read_bytes

_PACKAGE = pathlib.Path(__file__).resolve().parent.parent
_TREE = _PACKAGE.parent.parent
_TIMEOUT = 60  # seconds


class ReadingError(Error):
    """explain refused the configuration, or there is no explain here."""


class Group(types.SimpleNamespace):
    """Layers that are alike: an entry of ``configs``, whose keys are attributes here."""

    @property
    def plain(self) -> list[float]:
        """Frequencies in radians a position, as trained."""
        return [pair["frequency"] for pair in self.pairs]

    @property
    def frequencies(self) -> list[float]:
        """The same, in use."""
        return [pair["stretched"] for pair in self.pairs]

    def means(self) -> dict[str, Any]:
        """The values without sentences and without the parameters that lead to them."""
        left_out = ("parameters", "notes", "warnings", "doubts")
        return {key: value for key, value in vars(self).items() if key not in left_out}


@dataclass(frozen=True)
class Reading:
    """A configuration as explain understands it."""

    dialect: str
    groups: tuple[Group, ...]
    config: str  # the text that was read

    @staticmethod
    def of(answer: dict[str, Any], config: str) -> Reading:
        if answer.get("schema") != 3:
            raise ReadingError(f"explain: schema: expected 3, but got {answer.get('schema')}")
        return Reading(answer["dialect"], tuple(Group(**e) for e in answer["configs"]), config)

    def group_of(self, layer: int | None, kind: str | None) -> Group | None:
        """The group of a layer. kind: its name in ``layer_types``, if the configuration has it."""
        own = next((g for g in self.groups if g.layer_numbers and layer in g.layer_numbers), None)
        rest = [g for g in self.groups if g.layer_numbers is None]
        if own or len(rest) == 1:
            return own or rest[0]
        return next((g for g in rest if g.layers and g.layers == kind), None)

    @property
    def depends_on_length(self) -> bool:
        """Whether frequencies depend on the length of the sequence."""
        return any(g.rope_type in ("dynamic", "longrope") for g in self.groups)


def command() -> str:
    """The path of the command ``sextant``. Raises ReadingError if there is none."""
    named = os.environ.get("SEXTANT_COMMAND")
    places = [named] if named else [str(_PACKAGE / "bin/sextant"),
                                    str(_TREE / "build/release/bin/sextant"),
                                    shutil.which("sextant")]
    for place in places:
        if place and os.access(place, os.X_OK) and pathlib.Path(place).is_file():
            return place
    raise ReadingError(
        "expected the command sextant at one of " + ", ".join(p for p in places if p) +
        ", but there is none. The wheel has it; in a source tree ./run explain builds it; "
        "SEXTANT_COMMAND names another place")


def run_command(arguments: list[str], text: str, statuses: tuple[int, ...] = (0,)) -> str:
    """What the command prints, with `text` on standard input. Raises ReadingError with its message
    unless it ends with one of the statuses and without a message."""
    program = command()
    done = subprocess.run([program, *arguments], input=text, capture_output=True, text=True,
                          encoding="utf-8", timeout=_TIMEOUT, check=False)
    if done.returncode not in statuses or not done.stdout:
        raise ReadingError(done.stderr.strip() or f"{program} ended with {done.returncode}")
    return done.stdout


def read_text(text: str, length: int = 0) -> Reading:
    """Reads the text of a config.json. length: the tokens of a sequence, on which dynamic
    stretches depend; 0: not given. Raises ReadingError."""
    line = ["explain", "-", "--json", *(["--length", str(length)] if length else [])]
    return Reading.of(json.loads(run_command(line, text)), text)


def read(path: str, length: int = 0) -> Reading:
    """Reads the config.json of a path. Raises ReadingError."""
    try:
        return read_text(read_bytes(path, MOST_JSON).decode(), length)
    except (OSError, UnicodeDecodeError) as problem:
        raise ReadingError(f"{path}: {getattr(problem, 'strerror', problem)}") from problem


def read_fields(fields: dict[str, Any], length: int = 0) -> Reading:
    """Reads the fields of a config.json."""
    return read_text(json.dumps(fields, default=str), length)
