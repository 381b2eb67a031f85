"""Compares an answer of explain with the buffers of the code and with the layers of a run.

Each function returns one line per difference, and none if all agrees.
"""

from __future__ import annotations

from typing import Any, Iterable, Sequence

from .explain import Setting
from .models import Frequencies
from .probe import LayerSeen
from .shrink import TOKENS

BUFFER_TOLERANCE = 2e-5  # relative: float32 frequencies against double
RUN_TOLERANCE = 5e-4  # of angles from float32 cos and sin
SCALE_TOLERANCE = 1e-4
GAIN_TOLERANCE = 1e-5
SLOW = 1e-3  # radians per position; a run of a few tokens does not show slower pairs


def without_still(values: Iterable[float]) -> list[float]:
    """The frequencies without trailing pairs that do not rotate."""
    kept = list(values)
    while kept and kept[-1] == 0:
        kept.pop()
    return kept


def difference(a: float, b: float) -> float:
    return abs(a - b) / max(abs(a), abs(b)) if a != b else 0.0


def worst(ours: Sequence[float], theirs: Sequence[float]) -> float:
    return max((difference(a, b) for a, b in zip(ours, theirs)), default=0.0)


def is_near(a: float | None, b: float | None, tolerance: float) -> bool:
    return a is None or b is None or difference(a, b) <= tolerance


def kinds_of(setting: Setting, layer_types: Sequence[str] | None) -> set[str]:
    """The kinds of layers that an entry describes."""
    if layer_types and setting.layer_numbers is not None:
        return {layer_types[n] for n in setting.layer_numbers if n < len(layer_types)}
    return {setting.layers}


def settings_for(kind: str, settings: Sequence[Setting],
                 layer_types: Sequence[str] | None) -> list[Setting]:
    rotating = [s for s in settings if s.rotates and s.frequencies]
    if not kind:
        return rotating
    named = [s for s in settings if kind in kinds_of(s, layer_types) or s.layers == kind]
    if named:
        return [s for s in named if s in rotating]
    return rotating if len(settings) == 1 else []


def compare_frequencies(setting: Setting, theirs: list[float], factor: float) -> list[str]:
    ours, theirs = without_still(setting.frequencies), without_still(theirs)
    lines = []
    if len(ours) != len(theirs):
        lines.append(f"pairs: explain {len(ours)}, code {len(theirs)}")
    elif worst(ours, theirs) > BUFFER_TOLERANCE:
        if worst(sorted(ours), sorted(theirs)) <= BUFFER_TOLERANCE:
            lines.append("the same frequencies on other channels")
        else:
            at = max(range(len(ours)), key=lambda i: difference(ours[i], theirs[i]))
            lines.append(f"frequency of pair {at}: explain {ours[at]:.6g}, code {theirs[at]:.6g}")
    gain = setting.attention_factor
    if abs(gain - factor) > GAIN_TOLERANCE * max(1.0, abs(factor)):
        lines.append(f"attention factor: explain {gain:.6g}, code {factor:.6g}")
    return lines


def compare_buffers(settings: Sequence[Setting], found: Frequencies,
                    layer_types: Sequence[str] | None) -> list[str]:
    """Compares the buffers of a rotary module, by kind of layer."""
    lines = []
    for kind, (theirs, factor) in found.items():
        if kind and layer_types and kind not in layer_types:
            continue  # no layer is of this kind
        label = f"{kind}: " if kind else ""
        fitting = settings_for(kind, settings, layer_types)
        results = [compare_frequencies(s, theirs, factor) for s in fitting]
        if not kind and any(not r for r in results):
            continue  # one of several buffers; a run shows which layers use it
        for result in results[:1] if not kind else results:
            lines += [label + line for line in result]
    return list(dict.fromkeys(lines))


def setting_of(layer: LayerSeen, settings: Sequence[Setting],
               layer_types: Sequence[str] | None) -> Setting | None:
    """The entry that describes this layer, or None."""
    index = layer.index
    own = next((s for s in settings if s.layer_numbers and index in s.layer_numbers), None)
    rest = [s for s in settings if s.layer_numbers is None]
    if own or len(rest) == 1:
        return own or rest[0]
    kind = layer_types[index] if index is not None and layer_types and index < len(layer_types) \
        else None
    return next((s for s in rest if s.layers == kind), None)


def pair_angles(angles: list[float], pairs: int) -> list[float] | None:
    """The angles, one per pair; None if they do not fit. (cos, sin) contain each angle once, or
    twice: in two halves or side by side."""
    half = len(angles) // 2
    shapes = [angles]
    if len(angles) % 2 == 0:
        shapes += [angles[:half]] if worst(angles[:half], angles[half:]) < 1e-6 else []
        shapes += [angles[0::2]] if worst(angles[0::2], angles[1::2]) < 1e-6 else []
    fitting = [s for s in map(without_still, shapes) if len(s) == pairs]
    return fitting[-1] if fitting else None


def same_channels(setting: Setting, moved: tuple[int, int]) -> bool:
    """Whether the channels that changed are those of an entry. Within a few tokens the slowest
    pairs do not change visibly; these are the last channels if pairs are interleaved."""
    first, last = setting.rotated_channels or (0, -1)
    if moved == (first, last):
        return True
    still = (last - moved[1] + 1) // 2
    slow = setting.pairing == "interleaved" and 0 < still < len(setting.frequencies)
    return moved[0] == first and slow and max(setting.frequencies[-still:]) < SLOW


def compare_layer(layer: LayerSeen, setting: Setting) -> list[str]:
    if layer.rotates != setting.rotates:
        does = {True: "rotates", False: "does not rotate"}
        return [f"explain {does[setting.rotates]}, code {does[layer.rotates]}"]
    lines = []
    gain = layer.gain if layer.rotates else 1.0
    if layer.rotates:
        ours = without_still(setting.frequencies)
        theirs = pair_angles(layer.angles, len(ours))
        if theirs is None:
            lines.append(f"(cos, sin) have {len(layer.angles)} angles, explain {len(ours)} pairs")
        elif worst(ours, theirs) > RUN_TOLERANCE:
            at = max(range(len(ours)), key=lambda i: difference(ours[i], theirs[i]))
            lines.append(f"angle of pair {at}: explain {ours[at]:.6g}, run {theirs[at]:.6g}")
        if abs(setting.attention_factor - gain) > SCALE_TOLERANCE:
            lines.append(f"gain: explain {setting.attention_factor:.6g}, run {gain:.6g}")
        if setting.pairing and layer.pairing and setting.pairing != layer.pairing:
            lines.append(f"pairs: explain {setting.pairing}, run {layer.pairing}")
        whole = len(ours) == len(setting.frequencies)
        if setting.rotated_channels and layer.moved and whole \
                and not same_channels(setting, layer.moved):
            lines.append(f"channels: explain {list(setting.rotated_channels)}, "
                         f"run {list(layer.moved)}")
    if layer.scale:
        scale = layer.scale * layer.before * gain ** 2
        if not is_near(setting.softmax_scale, scale, SCALE_TOLERANCE):
            lines.append(f"softmax scale: explain {setting.softmax_scale:.6g}, run {scale:.6g}")
    # A run of TOKENS positions cannot show a window of that width or more.
    ours = setting.window if setting.window and setting.window < TOKENS - 1 else None
    if layer.has_mask and setting.has_window and ours != layer.window:
        lines.append(f"window: explain {setting.window}, run {layer.window}")
    return lines


def compare_run(settings: Sequence[Setting], layers: Sequence[LayerSeen],
                layer_types: Sequence[str] | None) -> list[str]:
    """Compares the attention layers of a run. A line names the layers that it applies to."""
    found: dict[str, list[str]] = {}
    for layer in layers:
        setting = setting_of(layer, settings, layer_types)
        lines = compare_layer(layer, setting) if setting else ["explain has no entry for it"]
        for line in lines:
            found.setdefault(line, []).append(
                str(layer.index) if layer.index is not None else layer.name)
    return [f"{line} (layer{'s' if len(names) > 1 else ''} {', '.join(dict.fromkeys(names))} "
            f"of {len(layers)})" for line, names in found.items()]


def facts_of_run(layers: Sequence[LayerSeen]) -> dict[str, Any]:
    """The facts of a run that the page shows."""
    scales = sorted({float(f"{s.scale * s.before * (s.gain if s.rotates else 1.0) ** 2:.5g}")
                     for s in layers if s.scale})
    return {"layers": len(layers), "rotating": sum(s.rotates for s in layers), "scales": scales,
            "pairings": sorted({s.pairing for s in layers if s.pairing}),
            "windows": sorted({s.window for s in layers if s.window})}
