"""The data of a report: findings, layers and the verdict.

The JSON of ``--json`` is ``Report.to_json()``::

    {"schema": 1, "subject": str, "against": str, "versions": {name: version},
     "verdict": "sound" | "findings" | "cannot be judged",
     "layers": [{"layers": [int], "kind": str, "rotates": str, "rotated": str, "base": float | null,
                 "stretch": str, "window": str, "scale": float | null, "verdict": str}],
     "findings": [{"layers": [int], "field": str, "expected": str, "got": str, "cause": str,
                   "severity": "error" | "warning"}],
     "unjudged": [{"layers": [int], "what": str, "why": str}],
     "notes": [str]}

An error is a difference between the configuration and the model that runs. A warning is a
configuration that the model follows and that is doubtful. Both are findings. A quantity that could
not be measured is no finding; it is listed under "unjudged" with the reason, and a report without
findings but with unjudged quantities has the verdict "cannot be judged".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Iterable

SCHEMA = 1
ERROR, WARNING = "error", "warning"
SOUND, FINDINGS, UNJUDGED = "sound", "findings", "cannot be judged"
EXIT_STATUS = {SOUND: 0, FINDINGS: 1, UNJUDGED: 2}

# The quantities that a finding can be about, in the order of a report.
FIELDS = ("configuration", "rotates", "rotated channels", "pairing", "direction", "frequencies",
          "positions", "precision", "attention factor", "softmax scale", "window", "chunk",
          "query law", "layers")


@dataclass(frozen=True)
class Finding:
    """One difference, for all layers that have it.

    layers: numbers from 0, ascending; empty: the whole model.
    field: one of FIELDS.
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

    def __post_init__(self) -> None:
        if self.field not in FIELDS:
            raise ValueError(f"field: expected one of {', '.join(FIELDS)}, but got {self.field!r}")
        if self.severity not in (ERROR, WARNING):
            raise ValueError(f"severity: expected {ERROR} or {WARNING}, but got {self.severity!r}")


@dataclass(frozen=True)
class Unjudged:
    """A quantity that could not be measured."""

    layers: tuple[int, ...]
    what: str
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


@dataclass
class Report:
    """The whole result. subject: the model or file; against: the source of expected values."""

    subject: str
    against: str
    versions: dict[str, str] = field(default_factory=dict)
    rows: list[LayerRow] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    unjudged: list[Unjudged] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        """The report as the command prints it."""
        from .table import text_of
        return text_of(self).rstrip("\n")

    @property
    def verdict(self) -> str:
        if self.findings:
            return FINDINGS
        return UNJUDGED if self.unjudged else SOUND

    @property
    def exit_status(self) -> int:
        """0: sound, 1: findings, 2: cannot be judged."""
        return EXIT_STATUS[self.verdict]

    def to_json(self) -> dict[str, Any]:
        rows = [{"layers": list(r.layers), "kind": r.kind, "rotates": r.rotates,
                 "rotated": r.rotated, "base": r.base, "stretch": r.stretch, "window": r.window,
                 "scale": r.scale, "verdict": r.verdict} for r in self.rows]
        findings = [{"layers": list(f.layers), "field": f.field, "expected": f.expected,
                     "got": f.got, "cause": f.cause, "severity": f.severity}
                    for f in self.findings]
        unjudged = [{"layers": list(u.layers), "what": u.what, "why": u.why}
                    for u in self.unjudged]
        return {"schema": SCHEMA, "subject": self.subject, "against": self.against,
                "versions": self.versions, "verdict": self.verdict, "layers": rows,
                "findings": findings, "unjudged": unjudged, "notes": self.notes}


def joined(findings: Iterable[Finding]) -> list[Finding]:
    """Findings that differ in their layers only, as one; in the order of FIELDS."""
    layers: dict[Finding, set[int]] = {}
    for found in findings:
        key = Finding((), found.field, found.expected, found.got, found.cause, found.severity)
        layers.setdefault(key, set()).update(found.layers)
    merged = [Finding(tuple(sorted(numbers)), f.field, f.expected, f.got, f.cause, f.severity)
              for f, numbers in layers.items()]
    return sorted(merged, key=lambda f: (f.severity != ERROR, FIELDS.index(f.field), f.layers))


def layer_text(layers: Iterable[int], most: int = 6) -> str:
    """"0-4, 6-10, 12 (11 layers)"; "all" if there are none."""
    numbers = sorted(layers)
    if not numbers:
        return "all"
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    texts = [str(a) if a == b else f"{a}-{b}" for a, b in ranges]
    if len(texts) <= most:
        return ", ".join(texts)
    return ", ".join(texts[:most - 1]) + f", ... ({len(numbers)} layers)"
