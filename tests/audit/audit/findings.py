"""Findings of the audit, and the state of a folder that follows from them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from .models import data

# Ordered from bad to good; the state of a folder is the worst state of its findings.
DIFFERS, REFUSES, ASKS, UNBUILT = "differs", "refuses", "asks", "cannot be built"
EXPLAINED = "explained"  # a difference that explain itself reports, or whose cause is known
NO_TEXT, AGREES = "no text rotary", "agrees"
RANKS = (DIFFERS, REFUSES, ASKS, UNBUILT, EXPLAINED, NO_TEXT, AGREES)


@dataclass(frozen=True)
class Finding:
    """A difference between explain and the code."""

    stage: str  # "defaults", "missing", ...
    case: str  # within the stage: "base left out"
    state: str  # one of RANKS
    text: str

    def line(self) -> str:
        return f"{self.stage}, {self.case}: {self.text}"


def known_cause(folder: str, finding: Finding) -> str:
    """The known cause of a finding in tests/audit/models.json, which is no fault of explain; empty
    if there is none."""
    if finding.state == UNBUILT:
        return ""
    for cause in data()["known"].get(folder, []):
        if re.search(cause["match"], finding.line()):
            return str(cause["why"])
    return ""


@dataclass
class FolderResult:
    """The results of the audit for a folder of transformers.models."""

    folder: str
    text: bool = False  # whether it has a rotary class of a language model
    findings: list[Finding] = field(default_factory=list)
    reason: str = ""  # the reason if nothing was compared
    compared: int = 0  # the number of configurations compared with explain
    facts: dict[str, Any] = field(default_factory=dict)  # for the page
    unprobed: list[str] = field(default_factory=list)  # the reasons for runs that were not possible
    seconds: float = 0.0

    def add(self, stage: str, case: str, state: str, texts: list[str]) -> None:
        for text in dict.fromkeys(texts):
            finding = Finding(stage, case, state, " ".join(text.split())[:240])
            why = known_cause(self.folder, finding)
            if why:
                finding = Finding(stage, case, EXPLAINED, f"{finding.text}: {why}")
            self.findings.append(finding)

    def state(self) -> str:
        if self.findings:
            return min((f.state for f in self.findings), key=RANKS.index)
        if not self.text:
            return NO_TEXT
        return AGREES if self.compared else UNBUILT

    def why(self) -> str:
        """The reason for a state other than "agrees", in one line."""
        state = self.state()
        lines = [f.line() for f in self.findings if f.state == state]
        more = f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""
        return lines[0] + more if lines else "" if state == AGREES else self.reason

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "findings": [vars(f) for f in self.findings]}

    @staticmethod
    def from_json(values: dict[str, Any]) -> FolderResult:
        findings = [Finding(**f) for f in values["findings"]]
        return FolderResult(**{**values, "findings": findings})
