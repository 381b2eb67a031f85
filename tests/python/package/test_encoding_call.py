"""An encoding of one's own is called with the keywords of ``sextant.attention``."""

import dataclasses
import unittest

import torch

import sextant
from sextant._call import Call

from test_encoding import BATCH, HEADS, KEY_HEADS, Everything, SIZES, heads

LENGTH = 7


class Alibi(sextant.Encoding):
    def __init__(self, **sizes):
        super().__init__(**sizes)
        self.slopes = sextant.tables.alibi_slopes(self.heads)

    def bias(self, distances):
        return -self.slopes[:, None].to(distances.dtype) * distances.abs()


class Rope(sextant.Encoding):
    def frequencies(self):
        return sextant.tables.rope_frequencies(6)


POSITIONS = torch.tensor([0, 1, 5, 6, 7, 20, 21])
SHOWN = torch.tensor([[True] * 7, [True, False, True, True, False, True, True]])
# The keywords of a call with values for it, beside those of a cache and of segments.
CALLS = {
    "layer": [0],
    "causal": [True, False],
    "first_query": [3],
    "first_key": [5],
    "mask": [SHOWN[1], SHOWN, SHOWN[:, None, None], torch.ones(7, 7).tril(1) > 0,
             torch.where(SHOWN[1], 0.5, -torch.inf)],
    "packed_queries": [[0, 3, 7], [[0, 3, 7], [0, 7, 7]], torch.tensor([0, 3, 7])],
    "scale": [0.3],
    "sink": [torch.tensor([0.7, -0.4, 0.0, 1.0], dtype=torch.float64)],
    "window": [3, (2, 1)],
    "key_bias": [torch.linspace(-1, 1, 7).double(), torch.where(SHOWN, 0.25, -torch.inf)],
    "return_lse": [True],
    "softcap": [0.9],
    "dropout_p": [0.4],
}


def both(x, own, method, **call):
    """The results of the encoding and of the method, with the gradients of q, k and v."""
    results = []
    for function in (own, lambda *x, **call: sextant.attention(*x, method=method, **call)):
        torch.manual_seed(4)  # of the dropout
        out = function(*x, **call)
        out = out if isinstance(out, tuple) else (out,)
        loss = sum((one * (n + 1)).nan_to_num(neginf=0).sin().sum() for n, one in enumerate(out))
        results.append([*out, *torch.autograd.grad(loss, x)])
    return zip(*results)


class EveryKeyword(unittest.TestCase):
    def test_agrees_with_the_method(self):
        e = Alibi(heads=HEADS, key_heads=KEY_HEADS)
        for name, values in CALLS.items():
            for value in values:
                call = {name: value}
                if name == "packed_queries":
                    call["packed_keys"] = value
                for more in ({}, {"return_lse": True, "window": 4, "scale": 0.7, "softcap": 2.0}):
                    with self.subTest(**call, more=bool(more)):
                        for got, expected in both(heads(), e, "alibi", **{**more, **call}):
                            torch.testing.assert_close(got, expected, rtol=0, atol=1e-11)

    def test_equal_sizes(self):
        for n in (1, 2, 4):  # rows of the batch, heads, queries and keys
            x = [torch.randn(n, n, n, 6, dtype=torch.float64, requires_grad=True) for _ in "qkv"]
            ends = [[0, n]] * n
            for call in ({}, {"return_lse": True, "window": 1},
                         {"mask": torch.ones(n, n, n, n).tril() > 0},
                         {"mask": torch.arange(n) < max(n - 1, 1)},
                         {"key_bias": torch.randn(n, n, n).double()},
                         {"sink": torch.randn(n).double(), "causal": False},
                         {"packed_queries": ends, "packed_keys": ends}):
                with self.subTest(n=n, **call):
                    for got, expected in both(x, Alibi(heads=n), "alibi", **call):
                        torch.testing.assert_close(got, expected, rtol=0, atol=1e-11)
        k = torch.randn(2, 2, 3, 6, dtype=torch.float64)
        for empty in (k[:, :, :0], k[:0]):  # no queries; no rows of the batch
            own = Alibi(heads=2)(empty, k[:empty.size(0)], k[:empty.size(0)])
            self.assertEqual(own.shape, empty.shape)

    def test_none_is_left_out(self):
        elsewhere = {"cache", "sequences", "packed_keys", "query_segments", "key_segments",
                     "query_positions", "key_positions"}
        names = {field.name for field in dataclasses.fields(Call)}
        self.assertEqual(names, set(CALLS) | elsewhere)

    def test_positions_are_those_of_rotations(self):
        call = {"query_positions": POSITIONS, "key_positions": POSITIONS + 3}
        for got, expected in both(heads(), Rope(heads=HEADS, key_heads=KEY_HEADS), "rope", **call):
            torch.testing.assert_close(got, expected, rtol=0, atol=1e-11)
        with self.assertRaisesRegex(RuntimeError, "rotary_positions: expected none"):
            Alibi(heads=HEADS, key_heads=KEY_HEADS)(*heads(), query_positions=POSITIONS)

    def test_nested_tensors(self):
        if not hasattr(torch.nested, "nested_tensor_from_jagged"):
            self.skipTest("this torch has no jagged layout")
        rows = [torch.randn(3, HEADS, 6), torch.randn(5, HEADS, 6)]
        x = torch.nested.nested_tensor(rows, layout=torch.jagged).transpose(1, 2)
        out = Alibi(heads=HEADS)(x, x, x)
        for one, alone in zip(rows, out.unbind()):
            q = one.transpose(0, 1)[None]
            torch.testing.assert_close(alone, sextant.attention(q, q, q, "alibi")[0])

    def test_a_cache_takes_the_terms_of_the_score(self):
        class Gate(sextant.Encoding):  # its hook reads all keys
            def key_bias(self, k, positions):
                return k.sum((1, 3))[:, None].cumsum(2) / 9

        sink = torch.tensor([0.7, -0.4, 0.0, 1.0])
        for kind in (Alibi, Rope, Gate):
            e = kind(heads=HEADS, key_heads=KEY_HEADS)
            for call in ({"scale": 0.3}, {"window": 3}, {"window": (2, -1)}, {"softcap": 0.9},
                         {"sink": sink}):
                with self.subTest(kind.__name__, **call), torch.no_grad():
                    q, k, v = heads(dtype=torch.float32)
                    cache = sextant.Cache(page_rows=16)
                    parts = [e(*(x[:, :, rows] for x in (q, k, v)), cache=cache, **call)
                             for rows in (slice(0, 4), slice(4, 6), slice(6, 7))]
                    torch.testing.assert_close(torch.cat(parts, 2), e(q, k, v, **call), rtol=0,
                                               atol=2e-5)

    def test_scale_of_the_class_and_of_the_call(self):
        class Scaled(Alibi):
            scale = 0.2

        x = heads()
        e = Scaled(heads=HEADS, key_heads=KEY_HEADS)
        torch.testing.assert_close(e(*x), sextant.attention(*x, method="alibi", scale=0.2))
        torch.testing.assert_close(e(*x, scale=0.9), sextant.attention(*x, method="alibi",
                                                                       scale=0.9))

    def test_terms_beside_hooks(self):
        e = Everything(**SIZES)
        x = heads()
        bias = torch.linspace(-1, 1, LENGTH).double()
        both_biases = Everything(**SIZES)
        hook = both_biases.key_bias
        type(both_biases).key_bias, saved = (
            lambda self, k, positions: hook(k, positions) + bias, type(both_biases).key_bias)
        try:
            expected = both_biases(*x)
        finally:
            type(both_biases).key_bias = saved
        torch.testing.assert_close(e(*x, key_bias=bias), expected)
        with self.assertRaisesRegex(RuntimeError, "sink: expected none, as the method has a sink"):
            e(*x, sink=torch.zeros(HEADS))

    def test_arguments_that_it_does_not_have(self):
        e = Alibi(heads=HEADS, key_heads=KEY_HEADS)
        x = heads()
        segments = torch.zeros(BATCH, LENGTH, dtype=torch.long)
        for call, kind, message in (
                ({"query_segments": segments}, ValueError, "Alibi: query_segments: expected None"),
                ({"is_causal": True}, TypeError, r"is_causal: expected no .*\(see causal\)"),
                ({"method": "rope"}, TypeError, "method: expected no argument of this name"),
                ({"layer": 1}, RuntimeError, "layer: expected 0 to 0")):
            with self.subTest(**call), self.assertRaisesRegex(kind, message):
                e(*x, **call)


@unittest.skipUnless(hasattr(torch, "func"), "torch.func needs torch 2.0")
@unittest.skipUnless(hasattr(torch._C, "_are_functorch_transforms_active"), "it needs torch 2.1")
class Transforms(unittest.TestCase):
    def test_gradients_of_each_sample(self):
        e = Everything(**SIZES)
        parameters = dict(e.named_parameters())
        q, k, v = (x.detach() for x in heads())

        def loss(parameters, q, k, v):
            return torch.func.functional_call(
                e, parameters, (q[None], k[None], v[None])).square().sum()

        got = torch.func.vmap(torch.func.grad(loss, argnums=(0, 1)), in_dims=(None, 0, 0, 0))(
            parameters, q, k, v)
        for n in range(BATCH):
            expected = torch.func.grad(loss, argnums=(0, 1))(parameters, q[n], k[n], v[n])
            torch.testing.assert_close(got[1][n], expected[1])
            for key in parameters:
                torch.testing.assert_close(got[0][key][n], expected[0][key])

    def test_grad_agrees_with_autograd_and_vmap_with_a_loop(self):
        e = Everything(**SIZES)
        x = heads()
        expected = torch.autograd.grad(e(*x).square().sum(), x)
        got = torch.func.grad(lambda *x: e(*x).square().sum(), argnums=(0, 1, 2))(*x)
        torch.testing.assert_close(got, expected)
        q, k, v = (t.detach() for t in x)
        many = torch.stack([q, 2 * q])
        torch.testing.assert_close(torch.func.vmap(lambda q: e(q, k, v))(many),
                                   torch.stack([e(one, k, v) for one in many]))

    def test_what_has_no_rule_is_refused_in_a_sentence(self):
        e = Alibi(heads=HEADS, key_heads=KEY_HEADS)
        q, k, v = (x.detach() for x in heads())
        gradient = torch.func.grad(lambda q: e(q, k, v).square().sum())
        with self.assertRaisesRegex(sextant.Error, "first derivatives only"):
            torch.func.grad(lambda q: gradient(q).sum())(q)
        for function in (e, lambda *x, **call: sextant.attention(*x, **call)):
            with self.assertRaisesRegex(sextant.Error, "cache: expected None inside a transform"):
                torch.func.grad(lambda q: function(q, k, v, cache=sextant.Cache()).sum())(q)


@unittest.skipIf(not hasattr(torch, "compile"), "this torch has no compiler")
class Lengths(unittest.TestCase):
    """A graph for one length, and one for all others."""

    def graphs(self, function, gradients=True):
        from torch._dynamo.utils import counters
        torch.compiler.reset()
        counters.clear()
        compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
        for rows in range(4, 16):
            x = heads(rows)
            found = []
            for one in (function, compiled):
                out = one(*x)
                grads = torch.autograd.grad(out.square().sum(), x) if gradients else ()
                found.append((out, *grads))
            for got, expected in zip(*found):
                torch.testing.assert_close(got, expected, rtol=0, atol=1e-11)
        return counters["stats"]["unique_graphs"]

    def test_an_encoding_of_ones_own(self):
        sink = torch.zeros(HEADS, dtype=torch.float64)
        for e, call in ((Everything(**SIZES), {}),
                        (Everything(without=("frequencies", "phases"), **SIZES), {"causal": False}),
                        (Alibi(heads=HEADS, key_heads=KEY_HEADS),
                         {"window": 5, "scale": 0.5, "sink": sink, "softcap": 3.0})):
            with self.subTest(type(e).__name__, **call):
                self.assertLessEqual(self.graphs(lambda *x, e=e, call=call: e(*x, **call)), 2)
        e = Alibi(heads=HEADS, key_heads=KEY_HEADS)
        self.assertLessEqual(self.graphs(lambda *x: e(*x, return_lse=True)[1]), 2)

    def test_a_method_and_a_module(self):
        module = sextant.method("rope", heads=HEADS, key_heads=KEY_HEADS, head_dim=6)
        for function in (module, lambda *x: sextant.attention(*x, method="alibi"),
                         lambda *x: sextant.attention(*x, method="rerope")):
            self.assertLessEqual(self.graphs(function), 2)


if __name__ == "__main__":
    unittest.main()
