"""The rotation between two arrays: queries (or keys) before and after it, pair by pair.

A pair of channels (a, b) is the complex number z = x_a + i x_b. A rotary encoding multiplies it at
position p by gain * exp(i p f), with the frequency f of the pair in radians a position. The ratio
z_after / z_before therefore shows everything: the pairing is the one for which all samples of a
position and a pair have one ratio, the phase of the ratio is p f, and its absolute value the gain.
Channels that do not rotate keep their values. No code of the model is interpreted.

Arrays are float64 [samples, positions, channels]; samples are heads of several sequences. With four
samples or more, a wrong pairing cannot fit by chance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Iterator

import numpy as np

# Gaps grow so that phases determine a frequency without ambiguity: the error at one position,
# divided by it, times the next position stays below pi.
POSITIONS = (0, 1, 2, 3, 5, 11, 29, 71, 173, 257, 613, 1001, 4099, 16411)
EXACT_BELOW = 1500  # positions up to which an angle computed in float32 is judged by itself
FLOAT32 = 2.0**-24

HALF_SPLIT, INTERLEAVED = "half-split", "interleaved"


@dataclass(frozen=True)
class Rotation:
    """What happened between two arrays.

    first, channels: the range of channels that rotate. pairing: HALF_SPLIT or INTERLEAVED; None if
    nothing visibly rotates. phases, gains: [positions, pairs], of the ratio. misfit: the part of
    the power that the rotation does not explain. normalised: whether a norm after the rotation
    hides the gain. outside: the factor of the channels that do not rotate at position 0; 1 if
    there are none.
    """

    first: int
    channels: int
    pairing: str | None
    phases: np.ndarray
    gains: np.ndarray
    misfit: float
    normalised: bool = False
    outside: float = 1.0

    @property
    def rotates(self) -> bool:
        return self.pairing is not None

    @property
    def gain(self) -> float:
        return float(np.median(self.gains))


def _pairs(first: int, channels: int) -> Iterator[tuple[str, tuple, tuple]]:
    """Pairings: the name, and the channels (a, b) before and after. Some models rotate neighbours
    and write them as halves; that is the same rotation, since queries and keys agree."""
    one = np.arange(first, first + channels // 2)
    two = one + channels // 2
    near = np.arange(first, first + channels, 2)
    yield HALF_SPLIT, (one, two), (one, two)
    yield INTERLEAVED, (near, near + 1), (near, near + 1)
    yield INTERLEAVED, (near, near + 1), (one, two)


def _unexplained_outside(before: np.ndarray, after: np.ndarray, first: int, channels: int
                         ) -> tuple[float, float, float]:
    """The power of the other channels that one factor a position does not explain, their power, and
    the factor at the first position. NaN before: not known, not counted."""
    outside = np.ones(before.shape[-1], bool)
    outside[first:first + channels] = False
    outside &= ~np.isnan(before[0, 0])
    x, y = before[..., outside], after[..., outside]
    if not x.size:
        return 0.0, 0.0, 1.0
    factor = (x * y).sum((0, 2)) / np.maximum((x * x).sum((0, 2)), 1e-300)
    lost = float(((y - factor[:, None] * x) ** 2).sum())
    return lost, float((y * y).sum()), float(factor[0])


def _fit(before: np.ndarray, after: np.ndarray, first: int, channels: int) -> Iterator[Rotation]:
    lost, power, outside = _unexplained_outside(before, after, first, channels)
    for name, (a, b), (c, d) in _pairs(first, channels):
        if np.isnan(before[0, 0, first:first + channels]).any():
            return
        z0 = before[..., a] + 1j * before[..., b]
        z1 = after[..., c] + 1j * after[..., d]
        weight = (np.abs(z0) ** 2).sum(0)
        ratio = (z1 * z0.conj()).sum(0) / np.maximum(weight, 1e-300)
        inside = float((np.abs(z1 - ratio * z0) ** 2).sum())
        misfit = (inside + lost) / max(float((np.abs(z1) ** 2).sum()) + power, 1e-300)
        yield Rotation(first, channels, name, np.angle(ratio), np.abs(ratio), misfit,
                       outside=outside)


def _spans(width: int, expected: tuple[int, int] | None) -> list[tuple[int, int]]:
    """Ranges (first, channels) that may rotate: the expected one, then others."""
    spans = []
    if expected:
        first, channels = expected
        spans = [(first, channels), (first, 2 * channels), (first, channels // 2),
                 (width - channels, channels), (0, channels)]
    spans += [(0, width), (0, width // 2), (width // 2, width // 2), (0, width // 4)]
    good = [(f, c) for f, c in spans if c >= 2 and c % 2 == 0 and f >= 0 and f + c <= width]
    return list(dict.fromkeys(good))


def _without_norm(array: np.ndarray) -> np.ndarray:
    norm = np.sqrt(np.nansum(array**2, axis=-1, keepdims=True))
    return array / np.maximum(norm, 1e-300)


def _visible(rotation: Rotation, tolerance: float) -> bool:
    return bool(np.abs(rotation.phases).max() > max(20 * np.sqrt(tolerance), 1e-5))


def _still(before: np.ndarray, after: np.ndarray, normalised: bool) -> Rotation:
    """The fit of a layer that multiplies all channels by one factor a position."""
    known = ~np.isnan(before[0, 0])
    x, y = before[..., known], after[..., known]
    factor = (x * y).sum((0, 2)) / np.maximum((x * x).sum((0, 2)), 1e-300)
    misfit = float(((y - factor[:, None] * x) ** 2).sum() / max(float((y * y).sum()), 1e-300))
    return Rotation(0, 0, None, np.zeros((len(factor), 1)), np.abs(factor)[:, None], misfit,
                    normalised)


def rotation_between(before: np.ndarray, after: np.ndarray, expected: tuple[int, int] | None,
                     tolerance: float) -> Rotation:
    """The rotation that explains `after` best.

    expected: first channel and number of channels that should rotate; it is preferred where several
    ranges fit, as where the slowest pairs do not move visibly. tolerance: the largest misfit of
    a rotation, 1e-9 for float32. A result with a larger misfit is no rotation.
    """
    best: Rotation | None = None
    for normalised in (False, True):
        if normalised:
            before, after = _without_norm(before), _without_norm(after)
        fit = _still(before, after, normalised)
        if fit.misfit <= tolerance:
            return fit
        best = min(best or fit, fit, key=lambda r: r.misfit)
        for first, channels in _spans(after.shape[-1], expected):
            for fit in _fit(before, after, first, channels):
                fit = replace(fit, normalised=normalised)
                if fit.misfit <= tolerance and _visible(fit, tolerance):
                    return fit
                best = min(best, fit, key=lambda r: r.misfit)
    assert best is not None
    return replace(best, misfit=max(best.misfit, 2 * tolerance))


def starts_alike(before: np.ndarray, after: np.ndarray, tolerance: float) -> bool:
    """Whether the values of the first position, 0, are the same up to a factor, as before any
    rotation: then `before` is the right array, whatever happened at the other positions."""
    return _still(before[:, :1], after[:, :1], False).misfit <= tolerance


def frequencies_of(phases: np.ndarray, positions: tuple[int, ...]) -> np.ndarray:
    """Frequencies [pairs] from phases [positions, pairs], in radians a position and with their
    sign, by counting full rotations from each position to the next larger one."""
    at = np.asarray(positions, float)
    moved = phases - phases[0]
    first = 1 if len(at) > 1 else 0
    found = np.angle(np.exp(1j * moved[first])) / (at[first] - at[0])
    for n in range(2, len(at)):
        span = at[n] - at[0]
        turns = np.round((found * span - moved[n]) / (2 * np.pi))
        found = (moved[n] + 2 * np.pi * turns) / span
    return found


def phase_errors(phases: np.ndarray, positions: tuple[int, ...], frequencies: np.ndarray
                 ) -> np.ndarray:
    """|phase - position * frequency|, modulo a full rotation, [positions, pairs]."""
    wanted = np.asarray(positions, float)[:, None] * np.asarray(frequencies)[None]
    return np.abs(np.angle(np.exp(1j * (phases - wanted))))


def phase_bounds(positions: tuple[int, ...], frequencies: np.ndarray, noise: float) -> np.ndarray:
    """The error of a phase that float32 arithmetic explains, [positions, pairs]: the angle itself,
    its frequency and the measurement."""
    angle = np.asarray(positions, float)[:, None] * np.abs(np.asarray(frequencies))[None]
    return noise + 8 * FLOAT32 * angle
