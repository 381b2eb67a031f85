"""A report as text. Sentences wrap at 100 columns; the table has no limit."""

from __future__ import annotations

import textwrap

from .._printable import printable, printable_lines
from .report import SOUND, Report, layer_text

WIDTH = 100
COLUMNS = ("layers", "rotates", "rotated", "base", "stretch", "window", "scale", "verdict")


def _cells(report: Report) -> list[tuple[str, ...]]:
    lines = [COLUMNS]
    for row in report.rows:
        layers = layer_text(row.layers, most=3)
        base = "-" if row.base is None else f"{row.base:.6g}"
        scale = "-" if row.scale is None else f"{row.scale:.6g}"
        lines.append((f"{row.kind}: {layers}" if row.kind else layers, row.rotates, row.rotated,
                      base, row.stretch, row.window, scale, row.verdict))
    return lines


def _table(lines: list[tuple[str, ...]]) -> list[str]:
    lines = [tuple(printable(cell) for cell in line) for line in lines]
    widths = [max(len(line[c]) for line in lines) for c in range(len(lines[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip()
            for line in lines]


def _wrapped(label: str, text: str) -> list[str]:
    space = " " * 10
    return textwrap.wrap(printable_lines(text), WIDTH, initial_indent=label.ljust(10),
                         subsequent_indent=space)


def text_of(report: Report) -> str:
    """The verdict, the layers, and each finding with its cause."""
    versions = ", ".join(f"{name} {version}" for name, version in report.versions.items())
    lines = [printable(f"{report.subject}, against {report.against}") +
             (f" ({versions})" if versions else "")]
    if report.rows:
        lines += ["", *_table(_cells(report))]
    for found in report.findings:
        lines += ["", f"{found.severity}: {printable(found.field)}, "
                  f"layers {layer_text(found.layers)}"]
        lines += _wrapped("expected", found.expected) + _wrapped("got", found.got)
        lines += _wrapped("cause", found.cause) if found.cause else []
    for entry in report.unjudged:
        lines += ["", *_wrapped("not judged", f" {entry.what}, layers {layer_text(entry.layers)}: "
                                f"{entry.why}")]
    for note in report.notes:
        lines += ["", *_wrapped("note", note)]
    count = len(report.findings)
    said = report.verdict if report.verdict != "findings" else \
        f"{count} finding{'s' if count > 1 else ''}"
    lines += ["", f"verdict: {said}" + (": every layer does what the configuration means"
                                        if report.verdict == SOUND and report.rows else "")]
    return "\n".join(lines) + "\n"
