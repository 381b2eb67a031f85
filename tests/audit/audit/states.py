"""The committed list of known states: one line per folder, "folder state reason", separated by
tabs."""

from __future__ import annotations

import pathlib

from .findings import AGREES, FolderResult

HEAD = """\
# The states of transformers' folders with a rotary class, as tests/audit/audit_transformers.py
# found them: folder, state and reason, separated by tabs. The audit fails if a state differs;
# --update writes this file.
"""

States = dict[str, tuple[str, str]]  # folder -> state and reason


def read(path: pathlib.Path) -> States:
    if not path.exists():
        return {}
    lines = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
    rows = [(line.split("\t") + ["", ""])[:3] for line in lines]
    return {folder: (state, reason) for folder, state, reason in rows}


def line_of(folder: str, state: tuple[str, str]) -> str:
    return "\t".join((folder, *state)).rstrip()


def found(results: list[FolderResult]) -> States:
    return {r.folder: (r.state(), "" if r.state() == AGREES else r.why()) for r in results}


def write(path: pathlib.Path, states: States) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [line_of(folder, states[folder]) for folder in sorted(states)]
    path.write_text(HEAD + "\n".join(lines) + "\n")


def differences(known: States, now: States) -> list[str]:
    """The lines of the list whose state differs, as a diff."""
    lines = []
    for folder in sorted(now):
        if known.get(folder, ("", ""))[0] != now[folder][0]:
            if folder in known:
                lines.append("-" + line_of(folder, known[folder]))
            lines.append("+" + line_of(folder, now[folder]))
    return lines
