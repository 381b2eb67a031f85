"""Every method refuses tensors and layers that do not fit it, in terms of the argument."""

import unittest

import torch

import sextant

from made_methods import HEAD_DIM, HEADS, LENGTH, inputs, layer_input, make

# Methods that add vectors of head_dim columns to values.
ADD_TO_VALUES = {"floater", "nezha", "shaw"}


def twice(x, dim):
    return torch.cat((x, x), dim)


def wrong_calls(q, k, v):
    """(what is wrong, q, k, v, layer, the error) for a method with two layers."""
    yield ("head_dim", twice(q, 3), k, v, 0,
           f"q: expected {q.size(3)} columns, the head_dim of the .*, but got {2 * q.size(3)}")
    yield ("half of head_dim", q[..., :2], k, v, 0, f"q: expected {q.size(3)} columns")
    yield ("k's columns", q, twice(k, 3), v, 0, r"k: expected \d+ columns, the head_dim of the")
    yield ("more heads", twice(q, 1), k, v, 0,
           f"q: expected {HEADS} heads, the heads of the method .*, but got {2 * HEADS}")
    yield "one head", q[:, :1], k[:, :1], v[:, :1], 0, f"q: expected {HEADS} heads"
    yield ("key_heads", q, k[:, :1], v[:, :1], 0,
           f"k: expected {HEADS} heads, the key_heads of the method .*, but got 1")
    yield "v's heads", q, k, v[:, :1], 0, f"v: expected {HEADS} heads, the key_heads of the method"
    yield "v's rows", q, k, v[:, :, :2], 0, f"v: expected {LENGTH} rows, as k, but got 2"
    yield "layer", q, k, v, 2, r"layer: expected 0 to 1, as the method .* has 2 layers .*but got 2"
    yield "layer below 0", q, k, v, -1, "layer: expected 0 to 1, .*but got -1"


class Sizes(unittest.TestCase):
    def test_every_method_refuses_what_does_not_fit(self):
        for name in sextant.methods():
            method = make(name)
            q, k, v = inputs()
            q = method.queries(q, layer_input())
            k = method.keys(k, layer_input())
            for wrong, *tensors, layer, message in wrong_calls(q, k, v):
                with self.subTest(name, wrong=wrong):
                    with self.assertRaisesRegex(RuntimeError, message):
                        method(*tensors, layer=layer)

    def test_every_method_refuses_it_through_a_cache(self):
        for name in sextant.methods():
            method = make(name).float()
            with torch.no_grad():
                q, k, v = (x.float() for x in inputs())
                q = method.queries(q, layer_input().float())
                k = method.keys(k, layer_input().float())
                for wrong, *tensors, layer, message in wrong_calls(q, k, v):
                    cache = sextant.Cache()
                    with self.subTest(name, wrong=wrong):
                        with self.assertRaisesRegex(RuntimeError, message):
                            method(*tensors, layer=layer, cache=cache)
                        self.assertEqual(cache.sequences, [])

    def test_values_have_columns_of_their_own_or_are_refused(self):
        for name in sextant.methods():
            method = make(name)
            q, k, v = inputs()
            q = method.queries(q, layer_input())
            k = method.keys(k, layer_input())
            wide = torch.cat((v, v[..., :1]), 3)
            with self.subTest(name):
                if name in ADD_TO_VALUES:
                    message = f"v: expected {HEAD_DIM} columns, .* adds vectors to values.*got 5"
                    with self.assertRaisesRegex(RuntimeError, message):
                        method(q, k, wide)
                    continue
                out = method(q, k, wide)
                torch.testing.assert_close(out[..., :HEAD_DIM], method(q, k, v))
                torch.testing.assert_close(out[..., HEAD_DIM], out[..., 0])

    def test_options_decide_whether_vectors_are_added(self):
        q, k, v = inputs()
        with self.assertRaisesRegex(RuntimeError, "v: expected 4 columns.*adds vectors to values"):
            make("skew", add_relative_to_values=True)(q, k, v[..., :2])
        with self.assertRaisesRegex(RuntimeError, "v: expected 4 columns.*adds vectors to values"):
            make("window", of="nezha")(q, k, v[..., :2])
        self.assertEqual(make("shaw", values=False)(q, k, v[..., :2]).size(3), 2)

    def test_the_input_has_the_width_of_the_method(self):
        x = torch.randn(2, LENGTH, 6, dtype=torch.float64)
        message = "x: expected 8 columns, the width of the method .*, but got 6"
        for name in sextant.methods():
            method = make(name)
            with self.subTest(name):
                with self.assertRaisesRegex(RuntimeError, message):
                    method.embed(x)
                with self.assertRaisesRegex(RuntimeError, message):
                    method.keys(inputs()[1], x)

    def test_sizes_of_a_call_by_name_fit_each_other(self):
        q, k, v = (torch.randn(2, heads, 4, 8) for heads in (4, 2, 2))
        for name, arguments, message in [
            ("none", (twice(q, 1)[:, :3], k, v), "q: expected a multiple of the 2 heads of k"),
            ("rope", (q, k[..., :4], v), "k: expected 8 columns, the head_dim of the method rope"),
            ("alibi", (q, k, v[:, :1]), "v: expected 2 heads, the key_heads of the method alibi"),
            ("nezha", (q, k, v[..., :5]), "v: expected 8 columns, .* adds vectors to values"),
        ]:
            with self.subTest(name), self.assertRaisesRegex(RuntimeError, message):
                sextant.attention(*arguments, method=name)
        with self.assertRaisesRegex(RuntimeError, "layer: expected 0 to 2, .* but got 3"):
            sextant.attention(q, k, v, method="alibi", layer=3, layers=3)


if __name__ == "__main__":
    unittest.main()
