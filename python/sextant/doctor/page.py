"""A report as one HTML page, which needs no other file and no network."""

from __future__ import annotations

import html

from .report import Report, layer_text

STYLE = """
:root { color-scheme: light dark; --line: #8884; --bad: #b3261e; --doubt: #9a6700; --good: #1a7f37 }
@media (prefers-color-scheme: dark) { :root { --bad: #ff8a80; --doubt: #e3b341; --good: #56d364 } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse } div { overflow-x: auto }
th, td { text-align: left; padding: .3rem .8rem; border-bottom: 1px solid var(--line) }
.error, .findings { color: var(--bad) } .warning { color: var(--doubt) }
.sound { color: var(--good) }
dt { font-weight: 600 } dd { margin: 0 0 .4rem 1rem }
"""
VERDICTS = {"sound": "sound", "findings": "findings", "cannot be judged": "warning"}


def _row(cells: list[str], tag: str = "td") -> str:
    return "<tr>" + "".join(f"<{tag}>{html.escape(c)}</{tag}>" for c in cells) + "</tr>"


def _layers(report: Report) -> str:
    if not report.rows:
        return ""
    head = _row(["layers", "rotates", "rotated channels", "base", "stretch", "window",
                 "softmax scale", "verdict"], "th")
    rows = [_row([f"{r.kind}: {layer_text(r.layers)}" if r.kind else layer_text(r.layers),
                  r.rotates, r.rotated, "-" if r.base is None else f"{r.base:.6g}", r.stretch,
                  r.window, "-" if r.scale is None else f"{r.scale:.6g}", r.verdict])
            for r in report.rows]
    return f"<h2>Layers</h2><div><table>{head}{''.join(rows)}</table></div>"


def _findings(report: Report) -> str:
    parts = []
    for found in report.findings:
        values = [("expected", found.expected), ("got", found.got), ("cause", found.cause)]
        listed = "".join(f"<dt>{name}</dt><dd>{html.escape(value)}</dd>"
                         for name, value in values if value)
        parts.append(f"<h3><span class={found.severity}>{found.severity}</span>: {found.field}, "
                     f"layers {layer_text(found.layers)}</h3><dl>{listed}</dl>")
    return "<h2>Findings</h2>" + "".join(parts) if parts else ""


def _list(title: str, lines: list[str]) -> str:
    items = "".join(f"<li>{html.escape(line)}</li>" for line in lines)
    return f"<h2>{title}</h2><ul>{items}</ul>" if lines else ""


def page_of(report: Report) -> str:
    """The page, as text in UTF-8."""
    versions = ", ".join(f"{name} {version}" for name, version in report.versions.items())
    unjudged = [f"{u.what}, layers {layer_text(u.layers)}: {u.why}" for u in report.unjudged]
    title = html.escape(f"sextant doctor: {report.subject}")
    return (f"<!doctype html><html lang=en><head><meta charset=utf-8><title>{title}</title>"
            '<meta name=viewport content="width=device-width, initial-scale=1">'
            f"<style>{STYLE}</style></head><body><h1>{title}</h1>"
            f"<p>Compared with {html.escape(report.against)}"
            f"{html.escape(f' ({versions})' if versions else '')}. "
            f"Verdict: <strong class={VERDICTS[report.verdict]}>{report.verdict}</strong></p>"
            f"{_layers(report)}{_findings(report)}{_list('Not judged', unjudged)}"
            f"{_list('Notes', report.notes)}</body></html>\n")
