"""The likeliest cause of a difference, from its numbers.

A cause is a sentence for people, and names the place in the installed code that computes the
quantity. An empty string means that no cause is known.
"""

from __future__ import annotations

import inspect
import math
import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .reading import Group, Reading
from .rotation import Rotation, phase_errors

NEAR = 1e-4  # relative


@dataclass
class Context:
    """The facts beside a layer. model: the model that runs; versions: of transformers and torch."""

    reading: Reading
    model: Any = None
    versions: dict[str, str] = field(default_factory=dict)
    live: bool = False  # a model in memory, whose configuration may have changed
    length: int = 0  # of sequences whose keys were seen one by one
    positions: list[np.ndarray] = field(default_factory=list)  # those that layers were found to use

    def model_type(self) -> str:
        return str(getattr(getattr(self.model, "config", None), "model_type", ""))

    def rotary_place(self) -> str:
        """The file and line of the class that holds the frequencies, or ""."""
        modules = self.model.modules() if self.model is not None else ()
        for module in modules:
            if any(n.endswith("inv_freq") for n, _ in module.named_buffers(recurse=False)):
                return place_of(type(module))
        return ""

    def apply_place(self) -> str:
        """The function that applies rotations in the model's module, or ""."""
        modules = self.model.modules() if self.model is not None else ()
        for module in modules:
            if re.search(r"Attention", type(module).__name__):
                own = inspect.getmodule(type(module))
                function = getattr(own, "apply_rotary_pos_emb", None)
                return place_of(function) if function else place_of(type(module))
        return ""


def place_of(thing: Any) -> str:
    """"modeling_llama.py:73 (LlamaRotaryEmbedding)"; "" if it has no source."""
    try:
        file = inspect.getsourcefile(thing)
        line = inspect.getsourcelines(thing)[1]
    except (OSError, TypeError):
        return ""
    parts = (file or "").split("/")
    return f"{parts[-1]}:{line} ({thing.__name__})"


def see(place: str) -> str:
    return f"; see {place}" if place else ""


def _near(a: np.ndarray, b: np.ndarray, resolution: float, relative: float = NEAR) -> bool:
    return len(a) == len(b) and bool((np.abs(a - b) <= resolution + relative * np.abs(b)).all())


def base_of(frequencies: np.ndarray, resolution: float) -> float | None:
    """The base B with frequencies B^(-2f / R), if there is one."""
    pairs = len(frequencies)
    clear = frequencies > 100 * resolution
    if pairs < 3 or clear.sum() < 3 or abs(frequencies[0] - 1) > NEAR:
        return None
    at = int(np.nonzero(clear)[0][-1])
    base = float(frequencies[at] ** (-pairs / at)) if at else 1.0
    wanted = base ** (-np.arange(pairs) / pairs)
    return base if _near(frequencies, wanted, resolution) else None


def _rounded(values: np.ndarray, bits: int) -> np.ndarray:
    """Values rounded to so many bits of fraction: 7 for bfloat16, 10 for float16."""
    fraction, exponent = np.frexp(values)
    return np.ldexp(np.round(fraction * 2.0 ** (bits + 1)) / 2.0 ** (bits + 1), exponent)


def _built(context: Context, what: str) -> str:
    """The sentence on the place where values are computed."""
    text = f". They are computed when the model is built{see(context.rotary_place())}"
    return text + (f"; {what} set in model.config afterwards changes nothing"
                   if context.live else "")


def _ignored_stretch(group: Group, context: Context) -> str:
    major = context.versions.get("transformers", "5").split(".")[0]
    text = (f"the stretch of the configuration ({group.method}) has no effect: the frequencies are "
            f"those of plain RoPE{_built(context, 'a stretch')}")
    if major == "4":
        text += (". transformers 4 reads rope_scaling and rope_theta, and does not read "
                 "rope_parameters of version 5")
    return text


def of_frequencies(group: Group, theirs: np.ndarray, resolution: float, seen: Any,
                   context: Context) -> str:
    """The cause of frequencies [pairs] that differ from those of the group."""
    ours, plain = np.asarray(group.frequencies), np.asarray(group.plain)
    stretched = not _near(ours, plain, resolution)
    if stretched and _near(theirs, plain, resolution):
        return _ignored_stretch(group, context)
    for bits, name in ((7, "bfloat16"), (10, "float16")):
        if _near(theirs, _rounded(ours, bits), resolution, 2e-5):
            return (f"the frequencies are rounded to {name}: model.to({name}) or .half() also "
                    f"rounded the buffer inv_freq{see(context.rotary_place())}")
    for other in context.reading.groups:
        if other is not group and other.rotates \
                and _near(theirs, np.asarray(other.frequencies), resolution):
            kind = other.layers or f"layers {list(other.layer_numbers or ())}"
            return f"these are the frequencies of the other layers ({kind})"
    if not stretched:
        factor = float(np.median(ours / np.maximum(theirs, 1e-300)))
        if _near(theirs * factor, ours, resolution * factor):
            return (f"all frequencies are divided by {factor:.4g}, as position interpolation does, "
                    f"or all positions are; the configuration has no stretch")
    if _near(np.sort(theirs)[::-1], np.sort(ours)[::-1], resolution):
        return "the same frequencies belong to other pairs of channels"
    still = int((theirs <= resolution).sum())
    if still and _near(theirs[:-still], ours[:-still], resolution):
        return f"the last {still} pairs do not rotate: only a part of the channels does"
    base = base_of(theirs, resolution)
    if base is not None:
        return _of_base(base, group, stretched, context)
    if stretched:
        return _of_other_stretch(group, theirs, resolution, context)
    if len(theirs) > 3 and abs(theirs[0] - 1) < NEAR and theirs[-1] < 0.99 * ours[-1]:
        return ("the slow pairs are slower than the configuration says, as with a stretch that it "
                f"does not have{see(context.rotary_place())}")
    return see(context.rotary_place()).removeprefix("; ")


def _of_base(base: float, group: Group, stretched: bool, context: Context) -> str:
    text = f"plain RoPE of base {base:.6g}"
    if stretched:
        text += f": neither the stretch ({group.method}) nor the base {group.base:g} has an effect"
    else:
        text += f"; the configuration has base {group.base:g}"
    if abs(base - 10000) < 1:
        text += " (10000 is the usual default of a rope_theta that is not read)"
    return text + _built(context, "a base")


def _of_other_stretch(group: Group, theirs: np.ndarray, resolution: float, context: Context) -> str:
    plain, ours = np.asarray(group.plain), np.asarray(group.frequencies)
    clear = np.nonzero(theirs > 100 * resolution)[0]
    if not len(clear):
        return see(context.rotary_place()).removeprefix("; ")
    at = int(clear[-1])
    live, wanted = plain[at] / theirs[at], plain[at] / ours[at]
    if abs(live - wanted**2) < 1e-3 * live and wanted > 1.01:
        return f"the stretch is applied twice: pair {at} is divided by {live:.4g}, not {wanted:.4g}"
    uniform = _near(theirs * live, plain, resolution * live)
    how = "all pairs are divided by" if uniform else f"pair {at} is divided by"
    return (f"another stretch: {how} {live:.4g} where {group.method} divides pair {at} by "
            f"{wanted:.4g}{see(context.rotary_place())}")


def of_gain(group: Group, gain: float, seen: Any, context: Context) -> str:
    expected = group.attention_factor
    if abs(gain - 1) < NEAR:
        return (f"the factor of {group.method} on cos and sin (attention_factor) is not applied"
                f"{see(context.rotary_place())}")
    if abs(gain - expected**2) < NEAR * gain:
        return f"the attention factor is applied twice{see(context.rotary_place())}"
    if abs(expected - 1) < NEAR:
        return ("queries or keys are multiplied by a factor that the configuration does not have"
                f"{see(context.rotary_place())}")
    default = 0.1 * math.log(group.factor) + 1 if group.factor > 1 else 1.0
    if abs(gain - default) < NEAR and default != 1.0:
        return f"YaRN's default 0.1 ln({group.factor:g}) + 1 in place of the configuration's factor"
    return see(context.rotary_place()).removeprefix("; ")


def of_scale(group: Group, live: float, expected: float, seen: Any, context: Context) -> str:
    plain = seen.head_dim**-0.5
    gains = group.attention_factor**2
    if abs(live - plain) < NEAR * plain:
        return (f"this is 1 / sqrt({seen.head_dim}) of the head alone; the configuration has a "
                "factor of its own (query_pre_attn_scalar, attention_multiplier, mscale_all_dim or "
                "the stretch's attention factor)")
    if group.score_factor != 1 and abs(live * group.score_factor - expected) < NEAR * expected:
        return f"the factor {group.score_factor:.6g} on all scores (mscale_all_dim) is not applied"
    if gains != 1 and abs(live * gains - expected) < NEAR * expected:
        return "the attention factor is missing from queries and keys"
    return f"{live / expected:.6g} times what the configuration means"


def of_rotates(group: Group, rotates: bool, name: str, seen: Any, context: Context) -> str:
    if not rotates and name == "keys" and seen.queries is not None and seen.queries.rotates:
        return ("keys reach the scores without a rotation, and queries with one"
                f"{see(context.apply_place())}")
    if rotates:
        return ("a layer without positions (NoPE) in the configuration rotates here; the model's "
                f"code decides by no_rope_layers, layer_types or its own rule"
                f"{see(context.apply_place())}")
    return ("the layer runs without positions; its code or a patch of it skips the rotation"
            f"{see(context.apply_place())}")


def of_part(expected: int, got: int, context: Context) -> str:
    if got == 2 * expected or got == expected // 2:
        how = "twice" if got > expected else "half"
        return (f"{how} the channels rotate: partial_rotary_factor (rotary_dim) has no effect or "
                f"has it twice{_built(context, 'a part')}")
    return f"partial_rotary_factor or rotary_dim is read differently{see(context.rotary_place())}"


def of_pairing(half_split: bool, context: Context) -> str:
    if half_split:
        text = ("channels are paired in halves where the weights need neighbours (2f, 2f + 1)")
    else:
        text = ("neighbouring channels are paired where the weights need halves (f, f + R/2), as "
                "with weights in the order of Meta's or GGUF's files")
    return text + see(context.apply_place())


def of_no_rotation(context: Context) -> str:
    return ("the code mixes pairs of channels that do not belong together, such as cos and sin in "
            f"halves with a rotation of neighbours{see(context.apply_place())}")


def of_direction(context: Context) -> str:
    return ("the sign of sin is the opposite: scores depend on minus the distance"
            f"{see(context.apply_place())}")


def of_positions(phases: np.ndarray, positions: tuple[int, ...], frequencies: np.ndarray,
                 bounds: np.ndarray, context: Context) -> str:
    """The cause if the angles are right for changed positions."""
    at = np.asarray(positions, float)

    def explain(changed: np.ndarray) -> bool:
        return bool((phase_errors(phases, tuple(changed), frequencies) <= bounds).all())
    for bits, name, first in ((7, "bfloat16", 257), (10, "float16", 2049)):
        if explain(_rounded(at, bits)):
            return f"positions are rounded to {name}, which has no whole numbers from {first} on"
    used = next(filter(explain, context.positions), None)
    if used is None:
        used = _positions_used(phases, at, frequencies)
        if not explain(used):
            return ""
        context.positions.append(used)
    for factor in (0.125, 0.25, 0.5, 2.0, 4.0, 8.0):
        if (used == at * factor).all():
            return f"positions are multiplied by {factor:g}"
        if (used == np.floor(at * factor)).all():
            return f"positions are multiplied by {factor:g} and rounded down"
    if used.max() < at[-1] and (used == np.minimum(at, used.max())).all():
        return f"positions end at about {used.max():g}: larger ones get the same angles"
    shift = used[-1] - at[-1]
    if shift and (used == np.maximum(at + shift, 0)).all():
        return (f"positions are shifted by {shift:+g}" + (", and the first ones are all 0"
                if shift < -1 or used[0] == used[1] else "") + "; padding may be counted wrongly")
    period = round(float(at[-1] - used[-1]))
    for turns in range(1, 65):
        if period % turns == 0 and period and (used == at % (period // turns)).all():
            return f"positions begin again after each {period // turns}"
    n = int((used != at).argmax())
    return f"the token at position {at[n]:g} gets the angles of position {used[n]:g}"


def _positions_used(phases: np.ndarray, at: np.ndarray, frequencies: np.ndarray) -> np.ndarray:
    """For each token the multiple of 1/2 whose angles are nearest to the phases."""
    grid = np.arange(0, 4 * at[-1] + 128) / 2
    angles = np.exp(1j * grid[:, None] * frequencies[None])
    return np.array([grid[int((angles * np.exp(-1j * row)).real.sum(1).argmax())]
                     for row in phases])


def shift_of(first: np.ndarray, frequencies: np.ndarray, noise: float) -> int:
    """The position whose angles the phases of position 0 are; 0 if it is no other small one."""
    return next((s for s in sorted(range(-64, 65), key=abs) if bool((np.abs(np.angle(np.exp(
        1j * (first - s * frequencies)))) <= 4 * noise).all())), 0)


def of_offset(context: Context) -> str:
    return ("queries and keys get different positions, as with a cache whose length is counted "
            f"wrongly{see(context.apply_place())}")


def of_tables(rotation: Rotation, context: Context) -> str:
    deviation = float(np.abs(rotation.gains / rotation.gain - 1).max())
    if 5e-4 < deviation < 8e-3:
        text = "cos and sin are rounded to bfloat16 (or float16) before they are applied"
    else:
        text = "angles or tables are computed in fewer bits than float32"
    return text + see(context.rotary_place())


def of_window(group: Group, live: int | None, seen: Any, context: Context) -> str:
    others = {g.window for g in context.reading.groups if g is not group}
    if live in others:
        return ("the window (or its absence) is that of the other layers: layer_types or their "
                "pattern")
    if live is None:
        return "the mask has no window here; sliding_window or use_sliding_window has no effect"
    if group.window and abs(live - group.window) == 1:
        return "the windows are counted with and without the query's own position"
    return ""
