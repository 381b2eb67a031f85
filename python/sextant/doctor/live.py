"""Examines a live model, or the model that a configuration builds."""

from __future__ import annotations

import contextlib
import pathlib
from typing import Any

from . import subject
from .causes import Context
from .compare import compare_layers
from .doubts import doubts
from .probe import LayerSeen, ProbeError, positions_for, probe
from .reading import Group, Reading, ReadingError, read
from .report import LayerRow, Report, Unjudged, joined
from .subject import SubjectError


def _versions() -> dict[str, str]:
    import torch
    import transformers
    return {"transformers": transformers.__version__, "torch": torch.__version__}


def _of_language_model(layers: list[LayerSeen], model: Any, config: Any) -> list[LayerSeen]:
    """The layers without those of a tower for images or sound."""
    kept = []
    modules = dict(model.named_modules())
    for layer in layers:
        own = getattr(modules.get(layer.name), "config", None)
        if own is None or getattr(own, "model_type", None) in (config.model_type, None):
            kept.append(layer)
    return kept or layers


def _rotated(group: Group) -> str:
    if not group.rotated_channels:
        return "-"
    return f"{group.rotated_channels[0]}-{group.rotated_channels[1]} of {group.head_dim}"


def _row(group: Group, layers: tuple[int, ...], verdict: str) -> LayerRow:
    rotates = group.pairing or "yes" if group.rotates else \
        "no (NoPE)" if group.instead == "none" else f"no ({group.instead})"
    chunks = f"chunks of {group.chunk}" if group.chunk else "-"
    window = f"{group.window}" if group.window else chunks
    stretch = "-" if not group.rotates or group.method == "plain RoPE" else \
        f"{group.method} x {group.factor:g}" if group.factor != 1 else group.method
    scale = group.softmax_scale if group.rotates else group.softmax_scale_of_unturned
    return LayerRow(layers, group.layers, rotates, _rotated(group), group.base, stretch, window,
                    scale, verdict)


def _compare(report: Report, layers: list[LayerSeen], context: Context) -> dict[int, set[str]]:
    """Adds findings to the report. Returns the fields of the findings by layer."""
    found: dict[int, set[str]] = {}
    for seen, _, findings, unjudged in compare_layers(layers, context):
        report.findings += findings
        report.unjudged += unjudged
        fields = found.setdefault(seen.index if seen.index is not None else -1, set())
        fields |= {f.field for f in findings}
        fields |= {"not judged" for _ in unjudged}
    return found


def _rows(layers: list[LayerSeen], reading: Reading, found: dict[int, set[str]]) -> list[LayerRow]:
    """Lines of layers with the same group and the same verdict."""
    lines: dict[tuple[int, str], list[int]] = {}
    for seen in layers:
        group = reading.group_of(seen.index, seen.kind)
        if group is None or seen.index is None:
            continue
        verdict = ", ".join(sorted(found.get(seen.index, ()))) or "ok"
        numbers = lines.setdefault((reading.groups.index(group), verdict), [])
        if seen.index not in numbers:
            numbers.append(seen.index)
    return [_row(reading.groups[g], tuple(sorted(numbers)), verdict)
            for (g, verdict), numbers in sorted(lines.items())]


def _merged_unjudged(unjudged: list[Unjudged]) -> list[Unjudged]:
    layers: dict[tuple[str, str], set[int]] = {}
    for entry in unjudged:
        layers.setdefault((entry.what, entry.why), set()).update(entry.layers)
    return [Unjudged(tuple(sorted(n)), what, why) for (what, why), n in layers.items()]


def examine(model: Any, reader: Any, name: str, against: str, live: bool = False) -> Report:
    """Compares a model with a reading. reader(length): the reading for a sequence of so many
    tokens. live: the configuration may have changed since the model was built."""
    report = Report(name, against, _versions())
    config = subject.text_config(model.config)
    longest = getattr(config, "max_position_embeddings", None)
    positions = positions_for(longest if isinstance(longest, int) else None)
    try:
        reading = reader(positions[-1] + 1)
        report.findings += doubts(reading, longest if isinstance(longest, int) else None)
        said = {f.got for f in report.findings}
        report.notes += [f"explain warns: {w}" for w in reading.warnings if w not in said]
        if not any(g.rotates for g in reading.groups):
            report.notes.append("the configuration has no rotary positions "
                                f"({reading.groups[0].instead if reading.groups else 'none'})")
        layers = _of_language_model(probe(model, reading, positions), model, config)
    except (ReadingError, ProbeError) as error:
        report.unjudged.append(Unjudged((), "model", str(error)))
        return report
    found = _compare(report, layers, Context(reading, model, report.versions, live))
    if reading.depends_on_length:
        _examine_long(report, model, reader, config, live)
    report.findings = joined(report.findings)
    report.unjudged = _merged_unjudged(report.unjudged)
    report.rows = _rows(layers, reading, found)
    return report


def _examine_long(report: Report, model: Any, reader: Any, config: Any, live: bool) -> None:
    """Dynamic stretches change frequencies beyond the trained length: a probe there."""
    base = reader(0)
    trained = max((g.trained_length or 0 for g in base.groups), default=0)
    target = max((g.target_length or 0 for g in base.groups), default=0)
    long = max(2 * trained, 0) if target <= trained else target
    if not trained or long <= trained:
        return
    positions = tuple(p for p in positions_for(trained)) + (trained + (long - trained) // 2,
                                                            long - 1)
    try:
        reading = reader(long)
        layers = _of_language_model(probe(model, reading, positions), model, config)
    except (ReadingError, ProbeError) as error:
        report.unjudged.append(Unjudged((), f"a length of {long}", str(error)))
        return
    _compare(report, layers, Context(reading, model, report.versions, live))


def examine_model(model: Any) -> Report:
    """Examines a live model of transformers against its own configuration. A model that
    ``sextant.transformers.stretch`` has changed is examined as it is without."""
    config = subject.text_config(model.config)
    changed: Any = contextlib.nullcontext("")
    if any("_sextant_method" in vars(module) for module in model.modules()):
        from sextant.transformers.positions import own_positions
        changed = own_positions(model)
    with changed as stretch:
        report = examine(model, lambda length: subject.read_config(config, length),
                         type(model).__name__, "model.config", live=True)
    if stretch:
        report.notes.append(f"stretched by sextant.transformers ({stretch}); examined are the "
                            "model's own positions, as after restore(model)")
    return report


def examine_folder(folder: pathlib.Path, weights: bool = False, trust_remote_code: bool = False
                   ) -> Report:
    """Examines the model of a folder: config.json as explain reads it, against the model that the
    installed transformers builds from it. weights: load them, and examine the whole model."""
    report = Report(str(folder), "config.json", _versions())
    path = folder / "config.json"
    try:
        read(str(path))
        config = subject.load_config(folder, trust_remote_code)
        if weights:
            model = subject.load(folder, trust_remote_code)
        else:
            inner = subject.text_config(config)
            small = subject.shrunk(inner)
            _check_same_meaning(inner, small)
            model = subject.build(small, trust_remote_code)
    except (ReadingError, SubjectError) as error:
        report.unjudged.append(Unjudged((), "model", str(error)))
        return report
    return examine(model, lambda length: read(str(path), length), str(folder), "config.json")


def _check_same_meaning(config: Any, small: Any) -> None:
    """Raises SubjectError if fewer heads change the meaning of a configuration."""
    a, b = subject.read_config(config), subject.read_config(small)
    if [g for g in a.groups] != [g for g in b.groups]:
        raise SubjectError(f"{config.model_type}: a model with fewer heads would have other "
                           "positions; --weights examines the whole model")
