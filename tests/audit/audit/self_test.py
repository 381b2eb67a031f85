"""Plants errors in correct answers. The comparisons must find each error, and find nothing in the
correct answers.

The correct answers are made from runs of transformers' own models, not from explain.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Callable

from transformers.models.qwen2_vl import configuration_qwen2_vl as qwen2_vl
from transformers.models.qwen2_vl import modeling_qwen2_vl

from . import vision
from .compare import compare_buffers, compare_run, pair_angles, without_still
from .explain import Setting, Sextant
from .models import Frequencies, frequencies_of, rotary_classes
from .probe import LayerSeen
from .stages import layer_types_of, run_of
from .towers import run_tower, shrink

FOLDERS = ("llama", "gemma3", "smollm3", "glm", "deepseek_v3", "granite")


def setting_from(layer: LayerSeen, found: Frequencies, kind: str) -> Setting:
    """The correct answer for one layer."""
    frequencies, factor = found.get(kind) or next(iter(found.values()))
    rotates = layer.rotates
    gain = layer.gain if rotates else 1.0
    fitting = pair_angles(layer.angles, len(without_still(frequencies)))
    if rotates and fitting is None:
        raise ValueError(f"{layer.name}: angles of the run do not fit the frequencies")
    scale = layer.scale * layer.before * gain ** 2 if layer.scale else None
    return Setting(kind, (layer.index or 0,), rotates, layer.pairing, layer.moved, None,
                   tuple(frequencies) if rotates else (), factor if rotates else 1.0, scale,
                   layer.window, True, ())


def changed(settings: list[Setting], at: int, **changes: Any) -> list[Setting]:
    return [dataclasses.replace(s, **changes) if i == at else s for i, s in enumerate(settings)]


def one_pair(settings: list[Setting], at: int) -> list[Setting]:
    values = list(settings[at].frequencies)
    values[len(values) // 2] *= 1 + 1e-4
    # All layers of the kind change, since they share buffers.
    return [dataclasses.replace(s, frequencies=tuple(values))
            if s.rotates and s.layers == settings[at].layers else s for s in settings]


def other_pairing(settings: list[Setting], at: int) -> list[Setting]:
    other = {"half-split": "interleaved", "interleaved": "half-split"}
    return changed(settings, at, pairing=other[settings[at].pairing or ""])


ERRORS: dict[str, Callable[[list[Setting], int], list[Setting]]] = {
    "one pair changed by 1e-4": one_pair,
    "a layer's rotation left out": lambda s, at: changed(s, at, rotates=False),
    "the pairs of a layer exchanged": other_pairing,
    "a softmax scale times 1.1": lambda s, at: changed(
        s, at, softmax_scale=(s[at].softmax_scale or 1.0) * 1.1),
    "a gain of 1.001": lambda s, at: changed(s, at, attention_factor=1.001),
    "channels moved by two": lambda s, at: changed(
        s, at, rotated_channels=tuple(c + 2 for c in s[at].rotated_channels or (0, 0))),
    "a window added": lambda s, at: changed(s, at, window=(s[at].window or 0) + 2),
    "a layer without an entry": lambda s, at: s[:at] + s[at + 1:],
}


def still_rotates(settings: list[Setting]) -> list[Setting] | None:
    """The settings with a layer that does not rotate changed to rotate; None if all rotate."""
    still = next((i for i, s in enumerate(settings) if not s.rotates), None)
    model = next(s for s in settings if s.rotates)
    return None if still is None else changed(settings, still, rotates=True,
                                              frequencies=model.frequencies)


def test_folder(folder: str) -> list[str]:
    """One line per error that the comparisons did not find, or found in a correct answer."""
    subject = next(s for s, text in rotary_classes(folder) if text)
    config = subject.config_class()
    small, layers, why = run_of(config, subject.modeling)
    if not layers:
        return [f"{folder}: no run: {why}"]
    found = frequencies_of(subject.rotary(small))
    kinds = layer_types_of(small) or []

    def kind_of(layer: LayerSeen) -> str:
        return kinds[layer.index or 0] if "" not in found and kinds else ""
    right = [setting_from(layer, found, kind_of(layer)) for layer in layers]

    def lines_of(settings: list[Setting]) -> list[str]:
        return compare_buffers(settings, found, kinds) + compare_run(settings, layers, kinds)
    lines = [f"{folder}: found without an error: {line}" for line in lines_of(right)]
    at = next(i for i, s in enumerate(right) if s.rotates)
    planted = {name: plant(right, at) for name, plant in ERRORS.items()}
    if (settings := still_rotates(right)) is not None:
        planted["a layer that does not rotate told to rotate"] = settings
    lines += [f"{folder}: not found: {name}" for name, settings in planted.items()
              if not lines_of(settings)]
    return lines


def test_vision(sextant: Sextant) -> list[str]:
    """Errors in what explain says of a vision tower."""
    config = shrink(qwen2_vl.Qwen2VLVisionConfig(), 1)
    [seen] = run_tower(modeling_qwen2_vl, config)
    right = vision.claims_of(sextant, config.to_dict())[0]
    pairs = right["pairs"]
    other = [{**p, "channels": p["channels"][::-1]} for p in pairs[:1]] + pairs[1:]
    faster = [{**p, "frequency": p["frequency"] * (1 + 1e-3)} for p in pairs[:1]] + pairs[1:]
    planted = {"the axes exchanged": {"axes": right["axes"][::-1]},
               "indices from 1": {"first_index": 1}, "coordinates in [-1, 1]": {"normalised": True},
               "a pair left out": {"pairs": pairs[1:]}, "a pair the other way": {"pairs": other},
               "a pair changed by 1e-3": {"pairs": faster}, "another head": {"head_dim": 64}}
    lines = [f"vision: found without an error: {x}" for x in vision.compare_run(right, seen)]
    return lines + [f"vision: not found: {name}" for name, change in planted.items()
                    if not vision.compare_run({**right, **change}, seen)]


def self_test(sextant: Sextant) -> list[str]:
    return [*test_vision(sextant), *(line for folder in FOLDERS for line in test_folder(folder))]
