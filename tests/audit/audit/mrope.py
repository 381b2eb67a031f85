"""Compares the axes that explain names for the pairs of a language model (M-RoPE) with its rotary
class, at position ids of time, height and width that differ."""

from __future__ import annotations

import inspect
from typing import Any

from .explain import Sextant
from .findings import DIFFERS, FolderResult
from .models import build, needed_values, rotary_classes, sources_of, rotary_folders
from .vision import STAGE

TOKENS, TOLERANCE = 7, 1e-4
KIND = "full_attention"
# Values without which the code's own default does not run.
VALUES = {"cohere_compass_text": {"rope_parameters": {KIND: {"rope_type": "default",
                                                             "rope_theta": 10000.0}}},
          "glm_image_text": {"rope_parameters": {"rope_type": "default", "rope_theta": 10000.0,
                                                 "mrope_section": [16, 24, 24]}}}


def mrope_folders() -> list[str]:
    """The folders whose code has sections of pairs, by its text."""
    return [f"mrope {folder}" for folder in rotary_folders()
            if any("mrope_section" in source.read_text() for source in sources_of(folder))]


def angles_of(rotary: Any, positions: Any) -> tuple[Any, Any]:
    import torch
    by_kind = "layer_type" in inspect.signature(type(rotary).forward).parameters
    cos, sin = rotary(torch.zeros(1, TOKENS, 8), positions, *([KIND] if by_kind else []))[:2]
    return cos.double().reshape(-1, TOKENS, cos.shape[-1])[-1], sin.double().reshape(
        -1, TOKENS, sin.shape[-1])[-1]


def compare(entry: dict[str, Any], rotary: Any) -> list[str]:
    import torch
    pairs = entry["pairs"]
    axes = max(pair["axis"] for pair in pairs) + 1
    torch.manual_seed(3)
    positions = torch.randint(0, 60, (axes, 1, TOKENS))
    cos, sin = angles_of(rotary, positions)
    ours = torch.stack([positions[pair["axis"], 0].double() * pair["stretched"] for pair in pairs],
                       dim=-1)
    n = len(pairs)
    shapes = {"half-split": slice(0, n), "interleaved": slice(0, 2 * n, 2)}
    if cos.shape[-1] == n:
        shapes = {key: slice(0, n) for key in shapes}
    else:
        # cos of all pairs, twice or side by side; interleaved pairs may be written in halves.
        shapes["interleaved"] = next(
            (s for s in (slice(0, 2 * n, 2), slice(0, n))
             if float((cos[:, s] - ours.cos()).abs().max()) < TOLERANCE), slice(0, 2 * n, 2))
    cut = shapes[entry["pairing"] or "half-split"]
    off = torch.maximum((cos[:, cut] - ours.cos() * entry["attention_factor"]).abs(),
                        (sin[:, cut] - ours.sin() * entry["attention_factor"]).abs()).amax(dim=0)
    worst = int(off.argmax())
    return [] if float(off[worst]) < TOLERANCE else [
        f"pair {worst} of {n}: explain has axis {pairs[worst]['axis']}, off by {off[worst]:.2g}"]


def audit_mrope(name: str, sextant: Sextant) -> FolderResult:
    import torch
    result = FolderResult(name, text=True)
    for subject, text in rotary_classes(name.removeprefix("mrope ")):
        if not text or subject.config_class is None \
                or "mrope_section" not in inspect.getsource(subject.rotary):
            continue
        label = subject.config_class.__name__
        try:
            kind = subject.config_class.model_type
            if kind in VALUES:
                config = subject.config_class(**VALUES[kind])
            else:
                config, _ = build(subject.rotary, subject.config_class)
            for key, value in needed_values(config.model_type).items():
                setattr(config, key, value)
            rotary = subject.rotary(config)
            angles_of(rotary, torch.zeros(3, 1, TOKENS, dtype=torch.long))  # its own sections fit
            answer = sextant.explain_whole({**config.to_dict(), **needed_values(config.model_type)})
            if isinstance(answer, str):
                raise ValueError(answer)
            entry = next(e for e in answer["configs"] if e["rotates"])
            if max(pair["axis"] for pair in entry["pairs"]) == 0:
                result.add(STAGE, label, DIFFERS, ["explain names no axes"])
                continue
            lines = compare(entry, rotary)
        except Exception as error:  # pylint: disable=broad-except
            result.unprobed.append(f"{label}: {type(error).__name__}: {error}"[:160])
            continue
        result.add(STAGE, f"{label}, axes of pairs", DIFFERS, lines)
        result.compared += 1
        result.facts.setdefault("mrope", {})[label] = [
            sum(pair["axis"] == axis for pair in entry["pairs"])
            for axis in range(max(pair["axis"] for pair in entry["pairs"]) + 1)]
    if not result.compared and not result.reason:
        result.reason = "; ".join(result.unprobed[:1]) or "no class has sections by default"
    return result

