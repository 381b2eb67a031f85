"""Tables of sextant.tables: rotation frequencies of a stretch alone."""

import unittest

import torch
from sextant import tables


class StretchedFrequencies(unittest.TestCase):
    def test_are_those_of_interpolated_positions(self):
        plain, gain, factor = tables.stretched_frequencies(8)
        self.assertTrue(torch.equal(plain, 10000.0 ** (-torch.arange(4, dtype=torch.float64) / 4)))
        self.assertEqual((gain, factor), (1.0, 1.0))
        slow, _, _ = tables.stretched_frequencies(8, stretch="pi*8", train_length=128, length=1024)
        self.assertLess((slow * 8 - plain).abs().max().item(), 1e-15)

    def test_refuse_what_is_not_of_the_stretch(self):
        pi = {"rope_type": "pi", "factor": 8}
        for more, named in (({"partial_rotary_factor": 0.5}, "dim is the rotated part"),
                            ({"mrope_section": [2, 1, 1]}, "mrope_section"),
                            ({"turns": 3}, "turns")):
            with self.assertRaisesRegex(RuntimeError, named):
                tables.stretched_frequencies(8, stretch={**pi, **more}, train_length=128)


if __name__ == "__main__":
    unittest.main()
