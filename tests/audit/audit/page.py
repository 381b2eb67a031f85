"""The page of the documentation, drawn from the results of an audit."""

from __future__ import annotations

import collections
import datetime
import pathlib
import platform
import subprocess
import textwrap
from typing import Iterator

from .findings import AGREES, DIFFERS, EXPLAINED, NO_TEXT, RANKS, FolderResult
from .registry import NAME as REGISTRY
from .vision import rotating_types, table, unrotated_types

ROOT = pathlib.Path(__file__).resolve().parents[3]

INTRO = """# Audit against transformers {version}

This page is written by `./check --audit`. It holds `sextant explain` against the code of
transformers {version}. For each folder with a rotary class of a language model, the class is built
and a small model is run; `explain --json` answers for the same configuration. Compared are the
frequency of each pair, the attention factor, which layers rotate, which channels, in which pairs,
the scale of the scores as the attention function applies it, and the window.

| | |
| --- | --- |
| date | {date} |
| transformers | {version} |
| torch | {torch}, Python {python}, CPU |
| Sextant | {sextant} |
| configurations compared | {compared} |
| time | {seconds:.0f} s of one core |

Frequencies agree within 2e-5 (the code holds float32), angles of a run within 5e-4, scales within
1e-4. `tests/audit/audit_transformers.py --self-test` plants errors in right answers, such as one
pair that is changed by 1e-4, and fails if one is not found.
"""

Table = Iterator[str]


def escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


def code_version(sextant_binary: str) -> str:
    done = subprocess.run(
        [sextant_binary, "--version"], capture_output=True, text=True, check=False)
    first = (done.stdout.splitlines() or ["not known"])[0]
    return first.removeprefix("sextant ")


def counts(results: list[FolderResult]) -> Table:
    yield "| state | folders | meaning |"
    yield "| --- | --- | --- |"
    meanings = {
        DIFFERS: "a number or a claim differs from the code",
        "refuses": "`explain` refuses a file that the code takes",
        "asks": "`explain` asks for a value that the code has",
        "cannot be built": "no configuration builds without values from outside",
        EXPLAINED: "a difference that `explain` says, or that has a cause named below",
        NO_TEXT: "the rotary classes are for pictures, sounds or series",
        AGREES: "all that was compared agrees"}
    for state in RANKS:
        yield f"| {state} | {sum(r.state() == state for r in results)} | {meanings[state]} |"


def others(results: list[FolderResult]) -> Table:
    rows = [r for r in results if r.state() != AGREES]
    yield "| folder | state | reason |"
    yield "| --- | --- | --- |"
    for result in sorted(rows, key=lambda r: (RANKS.index(r.state()), r.folder)):
        yield f"| {result.folder} | {result.state()} | {escaped(result.why())} |"


def runs(results: list[FolderResult]) -> Table:
    yield "| configuration | layers that rotate | pairs | scale of q·k |"
    yield "| --- | --- | --- | --- |"
    for result in results:
        for name, run in result.facts.get("runs", {}).items():
            scales = ", ".join(f"{s:.5g}" for s in run["scales"]) or "not seen"
            pairs = ", ".join(run["pairings"]) or "-"
            yield f"| {name} | {run['rotating']} of {run['layers']} | {pairs} | {scales} |"


def released(results: list[FolderResult]) -> Table:
    yield "| model | scale of q·k |"
    yield "| --- | --- |"
    found = {name: scales for r in results for name, scales in r.facts.get("released", {}).items()}
    for name, scales in sorted(found.items(), key=lambda item: item[0].lower()):
        yield f"| {name} | {', '.join(f'{s:.5g}' for s in scales) or '-'} |"


def case_counts(results: list[FolderResult], stage: str) -> Table:
    """The counts of a stage whose cases are named "Configuration rest", by the rest."""
    table: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for result in results:
        for case, verdict in result.facts.get(stage, {}).items():
            table[case.split(" ", 1)[1]][verdict] += 1
    verdicts = sorted({v for row in table.values() for v in row})
    yield f"| {'field' if stage == 'missing' else 'switch'} | {' | '.join(verdicts)} |"
    yield "| --- |" + " --- |" * len(verdicts)
    for case, row in sorted(table.items()):
        yield f"| {case.removeprefix('without ')} | {' | '.join(str(row[v]) for v in verdicts)} |"


def scaling_line(results: list[FolderResult]) -> str:
    total = [r.facts["scalings"] for r in results if "scalings" in r.facts]
    lines = [f.state for r in results for f in r.findings if f.stage == "scalings"]
    agree = sum(t["agree"] for t in total)
    refused = sum(t["refused by transformers"] for t in total)
    return (f"{len(total)} folders were tried with linear, dynamic, YaRN (seven forms), Llama 3's\n"
            f"and LongRoPE's scaling: {agree} configurations agree, {refused} are\n"
            f"refused by transformers itself, {lines.count(DIFFERS)} lines differ, and "
            f"{lines.count(EXPLAINED)} lines differ as\n"
            f"`explain` says or for a cause that is named.")


def registry_line(results: list[FolderResult]) -> str:
    own = next((r for r in results if r.folder == REGISTRY), None)
    if own is None:
        return "Not part of this run."
    counted = own.facts["registry"]
    return (f"{counted['types']} values of `model_type` have no rotary class in their folder:\n"
            f"{counted['do not rotate']} are told not to rotate, {counted['may rotate']} contain "
            f"or may be a model\nthat rotates by other code, and "
            f"{counted['not built by default']} have no default configuration.")


def unprobed(results: list[FolderResult]) -> Table:
    yield "| folder | not run |"
    yield "| --- | --- |"
    for result in results:
        for line in result.unprobed:
            yield f"| {result.folder} | {escaped(line)} |"


VISION_TITLE = "\n## Vision parts and M-RoPE\n"

VISION_INTRO = """
For each vision part that rotates by [axes](../rotary-axes.md), the tower of transformers runs on
6 x 10 patches, and its queries before and after the rotation are compared with what `explain` says
of the same configuration: each pair's channels, axis, frequency and coordinate, the channels that
stay, tokens beside the patches, and windows, by what a first layer sees. This is done with the
code's defaults, with another base, and for the released models of the tests; files that lack a
field, and parts inside a whole file, are compared as well. For M-RoPE the rotary class of the
language model gets position ids of time, height and width that differ.

| | |
| --- | --- |
| date | {date} |
| torch | {torch}, Sextant {sextant} |
| comparisons | {compared} |
| parts that rotate | {rotating} |
| parts that have learned vectors or the like, as `explain` says | {unrotated} |
"""


def is_vision(result: FolderResult) -> bool:
    return result.folder.startswith(("vision ", "mrope "))


def vision_states(results: list[FolderResult]) -> Table:
    yield "| state | vision parts: folders | M-RoPE: folders | meaning |"
    yield "| --- | --- | --- | --- |"
    meanings = {DIFFERS: "differs in silence", "refuses": "`explain` refuses what the code takes",
                "asks": "`explain` asks for a value that the code has",
                "cannot be built": "not judged: named below",
                EXPLAINED: "a difference that `explain` says",
                AGREES: "all that was compared agrees"}
    for state, meaning in meanings.items():
        counts_of = [sum(r.state() == state for r in results if r.folder.startswith(kind))
                     for kind in ("vision ", "mrope ")]
        yield f"| {state} | {counts_of[0]} | {counts_of[1]} | {meaning} |"


def vision_parts(results: list[FolderResult]) -> Table:
    yield "| part | form | axes | `axes` of rope | pairing | channels that rotate |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for result in results:
        for kind, fact in result.facts.get("parts", {}).items():
            yield (f"| {kind} | {fact['form']} | {', '.join(fact['axes'])} | {fact['order']} | "
                   f"{fact['pairing']} | {fact['rotary_dim']} of {fact['head_dim']} |")


def mrope_parts(results: list[FolderResult]) -> Table:
    yield "| language model | pairs of time, height and width |"
    yield "| --- | --- |"
    for result in results:
        for label, sections in result.facts.get("mrope", {}).items():
            yield f"| {label} | {', '.join(map(str, sections))} |"


def not_judged(results: list[FolderResult]) -> Table:
    """The parts of multimodal models that are in no table, and those that were not run."""
    known = {*rotating_types(), *unrotated_types()}
    parts = {kind for key in ("parts", "usual_parts") for named in table()[key].values()
             for kind in named.values()}
    holders = {*table()["parts"], *table()["usual_parts"]}
    yield from textwrap.wrap("Not judged by `explain` are the types " + ", ".join(
        f"`{kind}`" for kind in sorted(parts - known - holders)) + ".", 100)
    yield ""
    yield "| folder | reason |"
    yield "| --- | --- |"
    for result in results:
        if result.state() != AGREES or result.unprobed:
            yield f"| {result.folder} | {escaped('; '.join(result.unprobed) or result.why())} |"


def render_vision(results: list[FolderResult], sextant_binary: str) -> str:
    import torch
    own = [r for r in results if is_vision(r)]
    intro = VISION_INTRO.format(
        date=datetime.date.today(), torch=torch.__version__, sextant=code_version(sextant_binary),
        compared=sum(r.compared for r in own),
        rotating=sum(len(r.facts.get("parts", {})) for r in own),
        unrotated=sum(len(r.facts.get("unrotated", {})) for r in own))
    parts = [("States of vision parts", vision_states(own)),
             ("Parts that rotate", vision_parts(own)), ("M-RoPE", mrope_parts(own)),
             ("Not judged", not_judged(own))]
    return VISION_TITLE + intro + "".join(
        f"\n### {title}\n\n" + "\n".join(lines) + "\n" for title, lines in parts)


def write_vision(path: pathlib.Path, results: list[FolderResult], sextant_binary: str,
                 version: str) -> None:
    """Rewrites the page's section of vision parts, and no other."""
    before = path.read_text().split(VISION_TITLE)[0]
    path.write_text(before + render_vision(results, sextant_binary))


def render(every: list[FolderResult], sextant_binary: str, version: str) -> str:
    import torch
    results = [r for r in every if not is_vision(r)]
    folders = [r for r in results if r.folder != REGISTRY]
    intro = INTRO.format(
        version=version, date=datetime.date.today(), torch=torch.__version__,
        python=platform.python_version(), sextant=code_version(sextant_binary),
        compared=sum(r.compared for r in results), seconds=sum(r.seconds for r in results))
    parts = [
        ("States", counts(folders)), ("Folders that are not \"agrees\"", others(results)),
        ("Fields that a file leaves out", case_counts(results, "missing")),
        ("Scalings", iter([scaling_line(results)])),
        ("Switches", case_counts(results, "switches")),
        ("Types without a rotary class", iter([registry_line(results)])),
        ("Released models", released(results)),
        ("Runs of default configurations", runs(results)),
        ("Configurations that were compared without a run", unprobed(results))]
    text = "".join(f"\n## {title}\n\n" + "\n".join(lines) + "\n" for title, lines in parts)
    return intro + text + render_vision(every, sextant_binary)


def write(path: pathlib.Path, results: list[FolderResult], sextant_binary: str,
          version: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(render(results, sextant_binary, version))
