"""A wrong hook or call of an encoding of one's own is an error that names it."""

import unittest

import torch

import sextant

from test_encoding import HEADS, KEY_HEADS, SIZES, heads


class Refusals(unittest.TestCase):
    def expect(self, message, hook, value, **call):
        kind = type("Mine", (sextant.Encoding,), {hook: lambda self, *_: value})
        x = heads(dtype=torch.float32)
        with self.assertRaisesRegex(RuntimeError, message):
            kind(heads=HEADS, key_heads=KEY_HEADS)(*x, **call)

    def test_a_wrong_shape_names_the_hook_and_both_shapes(self):
        z = torch.zeros
        self.expect(r"Mine.bias: expected \[1 or heads=4, distances=7\], but got \[3, 7\]",
                    "bias", z(3, 7))
        self.expect(r"Mine.bias: expected .*distances=7\], but got \[4, 6\]", "bias", z(4, 6))
        self.expect(r"Mine.weight: expected .*, but got \[1, 4, 7\]", "weight", z(1, 4, 7))
        self.expect(r"Mine.on_query: expected at most 6 columns, as q, but got 8",
                    "on_query", z(7, 8))
        self.expect(r"Mine.on_value: expected \[1 or heads=4, distances=7, columns=6\], but got "
                    r"\[7, 5\]", "on_value", z(7, 5))
        self.expect(r"Mine.key_bias: expected \[1 or batch=2, 1 or heads=4, keys=7\], but got "
                    r"\[2, 7\]", "key_bias", z(2, 7))
        self.expect(r"Mine.query_scale: expected .*queries=7\]", "query_scale", z(6))
        self.expect(r"Mine.sink: expected \[heads=4\], but got \[3\]", "sink", z(3))
        self.expect(r"Mine.phases: expected .*keys=7, pairs\], but got \[6, 2\]", "phases", z(6, 2))
        self.expect(r"Mine.phases: expected at most 3 pairs", "phases", z(7, 4))
        self.expect(r"Mine.frequencies: expected at most 3 pairs", "frequencies", z(4))

    def test_a_wrong_kind_of_value(self):
        self.expect(r"Mine.bias: expected a tensor of floating point numbers, but got float",
                    "bias", 1.0)
        self.expect(r"Mine.bias: expected a tensor of floating point numbers, but got torch.int64",
                    "bias", torch.zeros(7, dtype=torch.long))
        self.expect(r"Mine.on_query: expected a pair of a table and int64 \[distances=7\]",
                    "on_query", (torch.zeros(3, 6), torch.zeros(7)))
        self.expect(r"row_at.on_query: expected rows 0 to 2, but got 3",
                    "on_query", (torch.zeros(3, 6), torch.full((7,), 3)))
        self.expect("Mine.on_query: expected rows of the table, but got 4294967296", "on_query",
                    (torch.zeros(3, 6), torch.full((7,), 2**32)))
        self.expect(r"Mine.on_query: expected a pair .* got torch.bool", "on_query",
                    (torch.zeros(3, 6), torch.ones(7, dtype=torch.bool)))
        self.expect("Mine.frequencies: expected finite numbers", "frequencies",
                    torch.tensor([1.0, torch.nan]))
        self.expect("Mine.frequencies: expected constants", "frequencies",
                    torch.zeros(2, requires_grad=True))
        self.expect("Mine.phases: expected a key at the position of each query", "phases",
                    torch.zeros(7, 2), first_query=7)

    def test_a_table_in_the_place_of_a_hook(self):
        e = sextant.Encoding(heads=HEADS, key_heads=KEY_HEADS)
        e.bias = torch.zeros(4, 7)
        with self.assertRaisesRegex(RuntimeError, "Encoding.bias: expected a method of the class"):
            e(*heads(dtype=torch.float32))
        del e.bias
        e.bias = lambda distances: -distances[None]
        with self.assertRaisesRegex(RuntimeError, "Encoding.bias: expected a method of the class"):
            e(*heads(dtype=torch.float32))

    def test_another_pairing(self):
        kind = type("Mine", (sextant.Encoding,), {"bias": lambda self, d: -d, "pairing": "x"})
        with self.assertRaisesRegex(RuntimeError, "Mine.pairing: expected half-split or"):
            kind(heads=HEADS, key_heads=KEY_HEADS)(*heads(dtype=torch.float32))

    def test_a_class_without_a_hook(self):
        kind = type("Mine", (sextant.Encoding,), {"biases": lambda self, distances: distances})
        with self.assertRaisesRegex(RuntimeError, "Mine: expected at least one method of bias, "):
            kind(heads=HEADS)

    def test_a_call_of_other_sizes(self):
        q, k, v = heads(dtype=torch.float32)
        for sizes, message in (
                ({"heads": 2}, "q: expected 2 heads, as the encoding was made with heads=2"),
                ({"heads": HEADS}, "k: expected 4 heads"),
                ({**SIZES, "head_dim": 8}, "q: expected 8 columns, as head_dim is, but got 6")):
            with self.subTest(sizes), self.assertRaisesRegex(RuntimeError, message):
                sextant.Encoding(**sizes)(q, k, v)
        e = sextant.Encoding(heads=HEADS, key_heads=KEY_HEADS)
        for call, message in (
                ((q[0], k, v, {}), r"q: expected a tensor \[batch, heads, rows, columns\]"),
                ((q, k[..., :4], v, {}), "k: expected 6 columns, as q has, but got 4"),
                ((q, k[:, :, :3], v[:, :, :3], {}), "as there are 7 queries and only 3 keys"),
                ((q, k, v, {"packed_queries": [0, 8], "packed_keys": [0, 8]}), "end at 7"),
                ((q, k, v, {"causal": 1}), "causal: expected True, False or None, but got 1"),
                ((q, k, v, {"packed_queries": [0, 5, 7], "packed_keys": [0, 2, 7]}),
                 "as there are 5 queries and only 2 keys"),
                ((q, k, v, {"sequences": [0]}), "sequences: expected None without a cache")):
            with self.subTest(message), self.assertRaisesRegex(RuntimeError, message):
                e(*call[:3], **call[3])
        with self.assertRaisesRegex(RuntimeError, "heads: expected a multiple of key_heads=3"):
            sextant.Encoding(heads=4, key_heads=3)


if __name__ == "__main__":
    unittest.main()
