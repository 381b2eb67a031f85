"""Rotations are recognised from arrays alone. Needs NumPy."""

import pathlib
import sys
import unittest

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import package  # noqa: F401 E402 pylint: disable=unused-import,wrong-import-position

from sextant.doctor.befores import befores  # noqa: E402
from sextant.doctor.rotation import (  # noqa: E402
    POSITIONS, frequencies_of, phase_errors, rotation_between, starts_alike)

WIDTH = 16
FREQUENCIES = 10000.0 ** (-np.arange(WIDTH // 2) / (WIDTH // 2))


def samples(seed=1, width=WIDTH):
    return np.random.default_rng(seed).standard_normal((8, len(POSITIONS), width))


def rotated(before, frequencies, pairing="half-split", gain=1.0, first=0):
    """The rotation by definition, in float64."""
    after, pairs = before.copy(), len(frequencies)
    for f, frequency in enumerate(frequencies):
        a, b = (first + f, first + f + pairs) if pairing == "half-split" else \
            (first + 2 * f, first + 2 * f + 1)
        angle = np.asarray(POSITIONS) * frequency
        c, s = gain * np.cos(angle), gain * np.sin(angle)
        after[..., a] = c * before[..., a] - s * before[..., b]
        after[..., b] = s * before[..., a] + c * before[..., b]
    return after


class Rotations(unittest.TestCase):
    """Pairing, part, gain and frequencies are found."""

    def found(self, after, expected=(0, WIDTH)):
        return rotation_between(samples(), after, expected, 1e-9)

    def test_both_pairings(self):
        for pairing in ("half-split", "interleaved"):
            found = self.found(rotated(samples(), FREQUENCIES, pairing))
            self.assertEqual((found.pairing, found.first, found.channels), (pairing, 0, WIDTH))
            self.assertLess(found.misfit, 1e-20)
            np.testing.assert_allclose(frequencies_of(found.phases, POSITIONS), FREQUENCIES,
                                       rtol=1e-9)

    def test_neighbours_written_as_halves_are_interleaved(self):
        after = rotated(samples(), FREQUENCIES, "interleaved")
        halves = np.concatenate([after[..., 0::2], after[..., 1::2]], -1)
        self.assertEqual(self.found(halves).pairing, "interleaved")

    def test_a_part_at_either_end(self):
        for first in (0, WIDTH // 2):
            found = self.found(rotated(samples(), FREQUENCIES[:WIDTH // 4], first=first))
            self.assertEqual((found.first, found.channels), (first, WIDTH // 2))

    def test_gain(self):
        found = self.found(rotated(samples(), FREQUENCIES, gain=1.25))
        self.assertAlmostEqual(found.gain, 1.25, places=12)

    def test_a_factor_on_all_channels_is_outside(self):
        after = 0.5 * rotated(samples(), FREQUENCIES[:WIDTH // 4], gain=1.25)
        found = self.found(after, (0, WIDTH // 2))
        self.assertAlmostEqual(found.outside, 0.5, places=12)
        self.assertAlmostEqual(found.gain, 0.625, places=12)

    def test_a_norm_after_the_rotation(self):
        after = rotated(samples(), FREQUENCIES)
        found = self.found(after / np.linalg.norm(after, axis=-1, keepdims=True))
        self.assertTrue(found.rotates and found.normalised)

    def test_values_that_stay_do_not_rotate(self):
        self.assertFalse(self.found(2 * samples()).rotates)
        self.assertLess(self.found(2 * samples()).misfit, 1e-20)

    def test_other_values_are_no_rotation(self):
        found = self.found(samples(2))
        self.assertGreater(found.misfit, 0.1)
        mixed = samples()
        mixed[..., ::2], mixed[..., 1::2] = -mixed[..., 1::2], mixed[..., ::2] + mixed[..., 1::2]
        self.assertGreater(self.found(mixed).misfit, 1e-9)

    def test_position_0_tells_the_array_before(self):
        self.assertTrue(starts_alike(samples(), rotated(samples(), FREQUENCIES), 1e-9))
        self.assertFalse(starts_alike(samples(), samples(2), 1e-9))


class Phases(unittest.TestCase):
    """Frequencies of phases with their sign."""

    def test_negative_frequencies(self):
        phases = -np.outer(POSITIONS, FREQUENCIES)
        phases = np.angle(np.exp(1j * phases))
        np.testing.assert_allclose(frequencies_of(phases, POSITIONS), -FREQUENCIES, rtol=1e-9)
        self.assertLess(phase_errors(phases, POSITIONS, -FREQUENCIES).max(), 1e-9)


class Befores(unittest.TestCase):
    """Layouts of projections."""

    def candidates(self, output, shape, other_heads, part=None):
        return list(befores([output], shape, other_heads, part))

    def test_layouts(self):
        batch, positions, channels = 2, 5, 4
        generator = np.random.default_rng(3)
        queries = generator.standard_normal((batch, 6, positions, channels))
        keys = generator.standard_normal((batch, 2, positions, channels))

        def rows(x):
            return x.transpose(0, 2, 1, 3).reshape(batch, positions, -1)
        together = np.concatenate([rows(queries), rows(keys), rows(keys)], -1)
        groups = np.concatenate([queries.reshape(batch, 2, 3, positions, channels),
                                 keys[:, :, None], keys[:, :, None]], 2)
        by_group = rows(groups.reshape(batch, 10, positions, channels))
        for output in (rows(queries), queries, queries.transpose(0, 2, 1, 3), together, by_group):
            self.assertTrue(any(np.array_equal(c, queries)
                                for c in self.candidates(output, queries.shape, 2)))
        for output in (together, by_group):
            self.assertTrue(any(np.array_equal(c, keys)
                                for c in self.candidates(output, keys.shape, 6)))

    def test_one_part_for_all_heads(self):
        output = np.random.default_rng(4).standard_normal((2, 5, 10))
        found = self.candidates(output, (2, 3, 5, 12), 3, (8, 4))
        self.assertTrue(any(np.array_equal(c[:, 1, :, 8:], output[..., -4:]) for c in found))


if __name__ == "__main__":
    unittest.main()
