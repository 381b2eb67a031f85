"""Compares the measurements of a layer with explain's reading of the configuration."""

from __future__ import annotations

import numpy as np

from . import causes
from .causes import Context
from .facts import Facts
from .masks import FAR
from .probe import LayerSeen
from .reading import Group
from .report import Finding, Unjudged
from .rotation import (EXACT_BELOW, HALF_SPLIT, Rotation, frequencies_of, phase_bounds,
                       phase_errors)

GAIN_TOLERANCE = 1e-4
EVEN_GAIN = 5e-4  # between positions and pairs
SCALE_TOLERANCE = 1e-4
# Model types whose code, and therefore their weights, rotate by minus the angle.
BACKWARDS = {"nanochat"}  # models/nanochat/modeling_nanochat.py, rotate_half
FREQUENCY_TOLERANCE = 2e-4  # relative, of visible pairs


def _range(first: int, channels: int, width: int) -> str:
    return f"channels {first}-{first + channels - 1} of {width}" if channels else "none"


def _number(value: float) -> str:
    return f"{value:.6g}"


class LayerComparison:
    """The comparison of one layer. `findings` and `unjudged` are its results."""

    def __init__(self, seen: LayerSeen, group: Group, context: Context, facts: Facts) -> None:
        self.seen, self.group, self.context, self.facts = seen, group, context, facts
        self.layers = (seen.index,) if seen.index is not None else ()
        self.findings: list[Finding] = []
        self.unjudged: list[Unjudged] = []
        self.wide = 1.0 if seen.noise < 1e-3 else 40.0  # tolerances of measurements in 16 bits
        self.compare()

    def find(self, field: str, expected: str, got: str, cause: str = "") -> None:
        self.findings.append(Finding(self.layers, field, expected, got, cause))

    def compare(self) -> None:
        queries, keys = self.seen.queries, self.seen.keys
        if queries is not None and keys is not None and self.alike(queries, keys):
            self.compare_rotation("queries and keys", queries)
        else:
            for name, rotation in (("queries", queries), ("keys", keys)):
                if rotation is not None:
                    self.compare_rotation(name, rotation)
        if queries is not None or keys is not None:
            self.facts.see("rotation")
        if self.group.instead not in (None, "none"):
            self.facts.miss("positions", self.seen.index,
                            f"{self.group.instead} positions are not compared")
        if self.group.query_law is not None:
            self.facts.miss("query law", self.seen.index, "it is not compared")
        self.judge_unexplained()
        self.compare_keys()
        self.compare_scale()
        self.compare_window()

    def alike(self, a: Rotation, b: Rotation) -> bool:
        """Whether queries and keys are rotated alike."""
        if (a.first, a.channels, a.pairing, a.normalised) != \
                (b.first, b.channels, b.pairing, b.normalised):
            return False
        if a.pairing is None or self.group.query_law is not None:
            return a.pairing is None
        phases = np.abs(np.angle(np.exp(1j * (a.phases - b.phases)))).max()
        return bool(phases <= self.seen.noise
                    and np.abs(a.gains - b.gains).max() <= GAIN_TOLERANCE * self.wide)

    def judge_unexplained(self) -> None:
        """Queries or keys that are no rotation of the values before."""
        seen, part = self.seen, self.group.rotated_channels
        names = []
        if seen.queries is None:
            names.append(("queries", seen.queries_known))
        if seen.keys is None and not seen.shared_keys:
            names.append(("keys", seen.keys_known))
        faulty = " and ".join(name for name, known in names if known)
        unknown = " and ".join(name for name, known in names if not known)
        if faulty:
            expected = f"a rotation of channels {part[0]}-{part[1]}" if part else "no rotation"
            self.find("pairing", expected, f"{faulty}: no rotation in pairs of channels explains "
                      "their values", causes.of_no_rotation(self.context))
        if unknown:
            why = f"{unknown} before their rotation are not the output of a module inside the layer"
            self.unjudged.append(Unjudged(self.layers, "rotation", why))
            self.facts.miss("rotation", self.seen.index, why)

    # --- one of queries and keys ---

    def compare_rotation(self, name: str, rotation: Rotation) -> None:
        group, seen = self.group, self.seen
        if rotation.rotates != group.rotates:
            self.find("rotates", "rotates" if group.rotates else "does not rotate",
                      f"{name}: {'rotate' if rotation.rotates else 'do not rotate'}",
                      causes.of_rotates(group, rotation.rotates, name, seen, self.context))
            return
        if not rotation.rotates or group.rotated_channels is None:
            return
        first, last = group.rotated_channels
        channels = last - first + 1
        if (rotation.first, rotation.channels) != (first, channels):
            self.find("rotated channels", _range(first, channels, seen.head_dim),
                      f"{name}: {_range(rotation.first, rotation.channels, seen.head_dim)}",
                      causes.of_part(channels, rotation.channels, self.context))
            return
        if group.pairing and rotation.pairing != group.pairing:
            self.find("pairing", group.pairing, f"{name}: {rotation.pairing}",
                      causes.of_pairing(rotation.pairing == HALF_SPLIT, self.context))
        self.compare_phases(name, rotation)
        self.compare_gain(name, rotation)

    def compare_phases(self, name: str, rotation: Rotation) -> None:
        positions, noise = self.seen.positions, self.seen.noise
        phases = rotation.phases - rotation.phases[0]
        ours = np.asarray(self.group.frequencies)
        self.facts.see("positions")
        if len(ours) != phases.shape[1]:
            self.find("rotated channels", f"{len(ours)} pairs", f"{name}: {phases.shape[1]} pairs")
            return
        bounds = phase_bounds(positions, ours, noise)
        if bool((phase_errors(phases, positions, ours) <= bounds).all()):
            shift = causes.shift_of(rotation.phases[0], ours, noise)
            if shift and name == "queries and keys":
                self.find("positions", "position 0 without a rotation",
                          f"{name}: rotated as at position {shift}",
                          f"all positions are shifted by {shift:+d}; scores depend on differences "
                          "only, until positions are counted in another way, as over a cache")
            return
        backwards = bool((phase_errors(-phases, positions, ours) <= bounds).all())
        if backwards and self.context.model_type() in BACKWARDS:
            return
        if backwards:
            self.find("direction", "angles grow with the position", f"{name}: angles decrease",
                      causes.of_direction(self.context))
            return
        found = frequencies_of(phases, positions)
        uneven = self.uneven(phases, found)
        if uneven is None:
            self.find_frequencies(name, ours, np.abs(found))
            return
        cause = causes.of_positions(rotation.phases, positions, ours, bounds, self.context)
        if cause:
            at, error = self.uneven(phases, ours) or uneven
            self.find("positions", "angles proportional to positions",
                      f"{name}: off by {error:.2g} rad at position {at}", cause)
        else:
            at, error = uneven
            self.find("precision", "angles of float32",
                      f"{name}: off by {error:.2g} rad at position {at}",
                      causes.of_tables(rotation, self.context))

    def uneven(self, phases: np.ndarray, frequencies: np.ndarray) -> tuple[int, float] | None:
        """The position and the size of the largest error of angles, or None if there is none."""
        positions = self.seen.positions
        errors = phase_errors(phases, positions, frequencies)
        excess = errors - phase_bounds(positions, frequencies, self.seen.noise)
        excess[np.asarray(positions) > EXACT_BELOW] -= 0.2
        if not bool((excess > 0).any()):
            return None
        at = int(np.unravel_index(int(excess.argmax()), excess.shape)[0])
        return positions[at], float(errors[at].max())

    def find_frequencies(self, name: str, ours: np.ndarray, theirs: np.ndarray) -> None:
        resolution = self.seen.noise / max(self.seen.positions)
        off = np.abs(theirs - ours) / np.maximum(np.abs(ours), 1e-12)
        visible = np.abs(theirs - ours) > resolution
        if not bool((visible & (off > FREQUENCY_TOLERANCE * self.wide)).any()):
            return
        clear = np.abs(theirs - ours) > 1000 * resolution  # measured to four digits
        at = int(np.where(clear if clear.any() else visible, np.round(off, 3), 0).argmax())
        cause = causes.of_frequencies(self.group, theirs, resolution, self.seen, self.context)
        self.find("frequencies", f"pair {at} of {len(ours)}: {_number(ours[at])} rad a position",
                  f"{name}: {theirs[at]:.4g}", cause)

    def compare_gain(self, name: str, rotation: Rotation) -> None:
        if rotation.normalised:
            return
        expected = self.group.attention_factor
        tolerance = GAIN_TOLERANCE * self.wide
        if self.group.query_law is None:
            deviation = float(np.abs(rotation.gains / rotation.gain - 1).max())
            if deviation > EVEN_GAIN * self.wide and not self.said("precision"):
                self.find("precision", "one gain for all positions and pairs",
                          f"{name}: gains differ by up to {deviation:.2%}",
                          causes.of_tables(rotation, self.context))
                tolerance = max(tolerance, deviation)
        # A factor on all channels of queries belongs to the scale.
        gain = float(np.median(rotation.gains[0])) / (rotation.outside or 1.0)
        if abs(gain - expected) > tolerance * max(1.0, expected) and not self.scale_is_right():
            self.find("attention factor", _number(expected), f"{name}: {_number(gain)}",
                      causes.of_gain(self.group, gain, self.seen, self.context))

    def scale_is_right(self) -> bool:
        """Whether scores are scaled as expected, wherever the factors stand: some models multiply
        queries before the attention function, which explain counts to the scale or not."""
        expected = self.group.softmax_scale if self.group.rotates \
            else self.group.unrotated_softmax_scale
        return any(expected and abs(live - expected) <= SCALE_TOLERANCE * self.wide * expected
                   for live in self.live_scales())

    def live_scales(self) -> list[float]:
        """The factor of q k with the gains of queries and keys, and the same without factors on all
        channels; empty if one is not known."""
        queries, keys = self.seen.queries, self.seen.keys or self.seen.queries
        if self.seen.scale is None or queries is None or keys is None \
                or queries.normalised or keys.normalised:
            return []
        whole = self.seen.scale * float(np.median(queries.gains[0]) * np.median(keys.gains[0]))
        return [whole, whole / ((queries.outside or 1.0) * (keys.outside or 1.0))]

    def said(self, field: str) -> bool:
        return any(f.field == field for f in self.findings)

    # --- both ---

    def compare_keys(self) -> None:
        """Queries and keys must agree: equal positions have equal angles."""
        queries, keys = self.seen.queries, self.seen.keys
        if queries is None or keys is None or not (queries.rotates and keys.rotates):
            return
        if queries.phases.shape != keys.phases.shape or self.said("direction"):
            return
        between = np.abs(np.angle(np.exp(1j * (queries.phases[0] - keys.phases[0]))))
        if float(between.max()) > 10 * self.seen.noise:
            offset = np.angle(np.exp(1j * (keys.phases[0] - queries.phases[0])))[0]
            ours = self.group.frequencies[0] if self.group.frequencies else 1.0
            self.find("positions", "keys at the positions of queries",
                      f"keys are rotated by {offset / ours:+.3g} positions more than queries",
                      causes.of_offset(self.context))

    def compare_scale(self) -> None:
        group, scales = self.group, self.live_scales()
        expected = group.softmax_scale if group.rotates else group.unrotated_softmax_scale
        if not scales or not expected:
            self.facts.miss("scale", self.seen.index, "explain does not know it" if scales else
                            "a norm hides the factor of queries or keys, or it is not known")
            return
        self.facts.see("scale")
        if self.said("rotates") or self.scale_is_right():
            return
        # The effect of a wrong attention factor on the scale is no second finding.
        live = self.seen.scale * group.attention_factor**2 if self.said("attention factor") \
            else scales[0]
        if abs(live - expected) > SCALE_TOLERANCE * self.wide * expected:
            self.find("softmax scale", _number(expected), _number(live),
                      causes.of_scale(group, live, expected, self.seen, self.context))

    def compare_window(self) -> None:
        seen, group = self.seen, self.group
        if seen.mask is None:
            live, chunk = seen.flash_window, group.chunk
            if live is None:
                near = group.window or group.chunk
                if not near or near >= self.context.length:
                    self.facts.miss("window", seen.index, "its mask is not that of transformers' "
                                    f"mask functions; seen are {self.context.length} keys")
                return
        else:
            live, chunk = seen.mask.window, seen.mask.chunk
        self.facts.see("window")
        beyond = live is None and group.window is not None and group.window >= FAR
        if live != group.window and not beyond:
            self.find("window", f"{group.window} keys" if group.window else "all keys",
                      f"{live} keys" if live else "all keys",
                      causes.of_window(group, live, seen, self.context))
        if chunk != group.chunk:
            self.find("chunk", f"chunks of {group.chunk}" if group.chunk else "no chunks",
                      f"chunks of {chunk}" if chunk else "no chunks")


def compare_layers(layers: list[LayerSeen], context: Context, facts: Facts
                   ) -> tuple[list[Finding], list[Unjudged]]:
    """The comparison of each layer with its group. What was measured goes to `facts`."""
    findings: list[Finding] = []
    unjudged: list[Unjudged] = []
    for seen in layers:
        group = context.reading.group_of(seen.index, seen.kind)
        if group is None:
            unjudged.append(Unjudged((seen.index or 0,), "layer", "explain has no entry for it"))
            continue
        result = LayerComparison(seen, group, context, facts)
        findings += result.findings
        unjudged += result.unjudged
    return findings, unjudged
