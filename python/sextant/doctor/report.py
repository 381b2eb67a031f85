"""The report of ``sextant doctor`` as values: the command's ``--json``, described in
docs/doctor.md.

An error is a difference between the configuration and the model that runs. A warning is a
configuration that the model follows and that is doubtful. Both are findings. A quantity that could
not be measured is no finding; it is listed as unjudged with the reason, and a report without
findings but with unjudged quantities has the verdict "cannot be judged".
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from .reading import ReadingError, run_command

ERROR, WARNING = "error", "warning"
SOUND, FINDINGS, UNJUDGED = "sound", "findings", "cannot be judged"


@dataclass(frozen=True)
class Finding:
    """One difference, for all layers that have it.

    layers: numbers from 0, ascending; empty: the whole model, or the layers of `kind`.
    expected, got: values with their units, for people.
    cause: the likeliest cause in a sentence, with the place in the code if there is one; or "".
    severity: ERROR or WARNING.
    """

    layers: tuple[int, ...]
    field: str
    expected: str
    got: str
    cause: str = ""
    severity: str = ERROR
    kind: str = ""


@dataclass(frozen=True)
class Unjudged:
    """A quantity that could not be measured."""

    layers: tuple[int, ...]
    what: str
    why: str


@dataclass(frozen=True)
class Fact:
    """A fact that is judged. status: "as configured", "differs" or "not measured", in these layers
    (empty: all) and for this reason."""

    layers: tuple[int, ...]
    fact: str
    status: str
    why: str


@dataclass(frozen=True)
class LayerRow:
    """A line of the table: layers that are alike in configuration and in verdict."""

    layers: tuple[int, ...]
    kind: str
    rotates: str  # "half-split", "interleaved", "yes", "no (NoPE)"
    rotated: str  # "0-127 of 128": the channels that rotate
    base: float | None
    stretch: str
    window: str
    scale: float | None
    verdict: str


def _all(kind: Any, entries: list[dict[str, Any]]) -> list[Any]:
    return [kind(**{**entry, "layers": tuple(entry["layers"])}) for entry in entries]


class Report:
    """The whole result. subject: the model; against: the source of expected values."""

    def __init__(self, answer: dict[str, Any], examined: str) -> None:
        self._answer, self._examined = answer, examined
        self.subject: str = answer["subject"]
        self.against: str = answer["against"]
        self.versions: dict[str, str] = answer["versions"]
        self.verdict: str = answer["verdict"]
        self.rows: list[LayerRow] = _all(LayerRow, answer["layers"])
        self.findings: list[Finding] = _all(Finding, answer["findings"])
        self.unjudged: list[Unjudged] = _all(Unjudged, answer["unjudged"])
        self.notes: list[str] = answer["notes"]
        self.facts: list[Fact] = _all(Fact, answer.get("facts", []))

    @staticmethod
    def of(examined: str) -> Report:
        """The command's report of the JSON of ``examine``. Raises ReadingError."""
        text = run_command(["doctor", "--examined", "-", "--json"], examined, (0, 1, 2))
        try:
            return Report(json.loads(text), examined)
        except ValueError as error:
            raise ReadingError(f"sextant doctor: expected JSON, but {error}") from error

    def __str__(self) -> str:
        """The report as the command prints it."""
        return run_command(["doctor", "--examined", "-"], self._examined, (0, 1, 2)).rstrip("\n")

    @property
    def exit_status(self) -> int:
        """1: an error, 2: something could not be judged, 0: neither."""
        if any(finding.severity == ERROR for finding in self.findings):
            return 1
        return 2 if self.unjudged else 0

    def to_json(self) -> dict[str, Any]:
        return self._answer
