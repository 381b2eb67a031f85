"""scale, sink, window, key_bias and return_lse beside every method, and queries that see no key."""

import contextlib
import unittest
import warnings

import torch

import sextant

from made_methods import HEAD_DIM, HEADS, LENGTH, inputs, layer_input, make

# Which of the keys belong to the first of two parts.
PART = torch.tensor([True, False, False, True, False, True])


def calls(causal=True):
    """(name, method, q, k, v) of every method."""
    for name in sextant.methods():
        method = make(name, **({"unmasked": True} if name == "skew" and not causal else {}))
        q, k, v = inputs()
        x = layer_input()
        yield name, method, method.queries(q, x), method.keys(k, x), v


def close(got, expected):
    torch.testing.assert_close(got, expected, rtol=0, atol=1e-11)


class EveryMethod(unittest.TestCase):
    def test_a_sink_takes_its_share_of_the_sum(self):
        sink = torch.tensor([0.7, -0.4], dtype=torch.float64)
        for causal in (True, False):
            for name, method, q, k, v in calls(causal):
                with self.subTest(name, causal=causal):
                    if name == "sink":
                        with self.assertRaisesRegex(RuntimeError, "sink: expected none"):
                            method(q, k, v, causal=causal, sink=sink)
                        continue
                    out, lse = method(q, k, v, causal=causal, return_lse=True)
                    got, whole = method(q, k, v, causal=causal, return_lse=True, sink=sink)
                    close(whole, torch.logaddexp(lse, sink[:, None]))
                    close(got, out * (lse - whole).exp()[..., None])

    def test_a_bias_by_key_weights_its_keys(self):
        for causal in (True, False):
            for name, method, q, k, v in calls(causal):
                if name == "sink":  # its sink belongs to no part
                    continue
                with self.subTest(name, causal=causal):
                    _, first = method(q, k, v, causal=causal, mask=PART, return_lse=True)
                    _, other = method(q, k, v, causal=causal, mask=~PART, return_lse=True)
                    bias = 1.5 * PART.double()
                    _, lse = method(q, k, v, causal=causal, key_bias=bias, return_lse=True)
                    close(lse, torch.logaddexp(first + 1.5, other))
                    hides = torch.where(PART, 0.0, -torch.inf)
                    out, lse = method(q, k, v, causal=causal, key_bias=hides, return_lse=True)
                    close(lse, first)
                    close(out, method(q, k, v, causal=causal, mask=PART))

    def test_a_window_is_a_mask_by_distance(self):
        distance = torch.arange(LENGTH)[:, None] - torch.arange(LENGTH)
        for causal, window, shown in [
            (True, 3, distance < 3),
            (False, 3, distance.abs() < 3),
            (False, (1, 2), (distance <= 1) & (distance >= -2)),
            (False, (-1, 1), distance >= -1),
        ]:
            for name, method, q, k, v in calls(causal):
                with self.subTest(name, window=window):
                    close(method(q, k, v, causal=causal, window=window),
                          method(q, k, v, causal=causal, mask=shown))

    def test_a_scale_multiplies_products(self):
        for name, method, q, k, v in calls():
            with self.subTest(name):
                self.assertFalse(torch.allclose(method(q, k, v, scale=0.9), method(q, k, v)))
        q, k, v = inputs()
        for name in ("none", "alibi", "rope", "sink"):
            with self.subTest(name):
                method = make(name)
                close(method(q, k, v, scale=0.9), method(0.9 * HEAD_DIM**0.5 * q, k, v))
        close(make("t5")(q, k, v, scale=0.9), make("t5")(0.9 * q, k, v))
        close(make("t5")(q, k, v, scale=HEAD_DIM**-0.5), make("t5", scaled=True)(q, k, v))

    def test_gradients_agree_with_finite_differences(self):
        for causal in (True, False):
            for name, method, q, k, v in calls(causal):
                with self.subTest(name, causal=causal):
                    def call(q, k, v, key_bias, *sink):
                        terms = {"sink": sink[0]} if sink else {}
                        return method(q, k, v, causal=causal, key_bias=key_bias, scale=0.8,
                                      window=4, return_lse=True, **terms)

                    tensors = [x.detach().requires_grad_() for x in (q, k, v)]
                    tensors.append(torch.randn(2, LENGTH, dtype=torch.float64, requires_grad=True))
                    if name != "sink":
                        tensors.append(torch.randn(HEADS, dtype=torch.float64, requires_grad=True))
                    torch.autograd.gradcheck(call, tensors, eps=1e-5, atol=1e-6, rtol=1e-6,
                                             fast_mode=True)

    def test_a_cache_gives_the_result_of_one_call(self):
        sink = torch.tensor([0.7, -0.4])
        for name, method, q, k, v in calls():
            with self.subTest(name), torch.no_grad():
                method = method.float()
                q, k, v = q.float(), k.float(), v.float()
                terms = {"scale": 0.6, "window": 3, "sink": None if name == "sink" else sink}
                whole = method(q, k, v, **terms)
                cache = sextant.Cache()
                parts = [method(*(x[:, :, rows] for x in (q, k, v)), cache=cache, **terms)
                         for rows in (slice(0, 4), slice(4, 6))]
                torch.testing.assert_close(torch.cat(parts, 2), whole, rtol=0, atol=2e-5)


class Results(unittest.TestCase):
    def test_lse_is_float32(self):
        for dtype in (torch.float32, torch.bfloat16, torch.float16):
            q = torch.randn(1, 2, 4, 8, dtype=dtype)
            out, lse = sextant.attention(q, q, q, return_lse=True)
            self.assertEqual((out.dtype, lse.dtype, list(lse.shape)),
                             (dtype, torch.float32, [1, 2, 4]))

    def test_lse_has_gradients_under_a_dispatch_mode(self):
        if not hasattr(torch.utils, "_python_dispatch"):
            self.skipTest("this torch has no dispatch modes")

        class Mode(torch.utils._python_dispatch.TorchDispatchMode):
            def __torch_dispatch__(self, function, types, arguments=(), named=None):
                return function(*arguments, **(named or {}))

        q, k, v = torch.randn(3, 1, 2, 5, 4, dtype=torch.float64)
        q.requires_grad_()
        gradients = []
        for mode in (contextlib.nullcontext(), Mode()):
            with mode:
                out, lse = sextant.attention(q, k, v, "rope", key_bias=torch.arange(5.0).double(),
                                             return_lse=True)
                gradients.append(torch.autograd.grad(lse.sum() + out.sum(), q)[0])
        close(*gradients)

    def test_parts_of_keys_join_by_lse(self):
        q, k, v = (torch.randn(1, 2, rows, 8) for rows in (3, 7, 7))
        out, _ = sextant.attention(q, k, v, causal=False, return_lse=True)
        parts = [sextant.attention(q, k[:, :, rows], v[:, :, rows], causal=False, return_lse=True)
                 for rows in (slice(0, 4), slice(4, 7))]
        weights = torch.stack([lse for _, lse in parts]).softmax(0)
        torch.testing.assert_close(sum(w[..., None] * o for w, (o, _) in zip(weights, parts)), out)

    def test_terms_that_do_not_fit_are_errors(self):
        q = torch.randn(2, 4, 5, 8)
        for arguments, message in [
            ({"scale": 0.0}, "scale: expected a finite number above 0, but got 0"),
            ({"scale": float("nan")}, "scale: expected a finite number"),
            ({"sink": torch.zeros(3)}, r"sink: expected floating \[4\].*but got Float \[3\]"),
            ({"key_bias": torch.zeros(4)}, r"key_bias: expected floating \[keys\].*keys 5"),
            ({"key_bias": torch.full((5,), torch.nan)}, "key_bias: expected numbers or -infinity"),
            ({"sink": torch.tensor([0, 0, 0, torch.nan])}, "sink: expected numbers or -infinity"),
            ({"sink": torch.full((4,), torch.inf)}, "sink: expected numbers or -infinity"),
            ({"causal": "no"}, "causal: expected True, False or None, but got 'no'"),
            ({"sequences": [0]}, "sequences: expected None without a cache"),
            ({"cache": 3}, "cache: expected a sextant.Cache, but got int"),
            ({"window": (True, False)}, r"window: expected a number of keys or \(left, right\)"),
            ({"window": 0}, "window: expected at least 1 key, but got 0"),
            ({"window": (1, 2, 3)}, r"window: expected a number of keys or \(left, right\)"),
            ({"window": (-2, 0)}, "window: expected at least 0 on each side"),
            ({"need_weights": True}, r"need_weights: expected no .*\(see return_lse.*but got one. "
                                     "Arguments: parameters, .*causal, .*Options of the method "
                                     "alibi, for options={...}: .*length"),
        ]:
            with self.subTest(**arguments), self.assertRaisesRegex(RuntimeError, message):
                sextant.attention(q, q, q, method="alibi", **arguments)
        with self.assertRaisesRegex(RuntimeError, "attn_mask: expected no .*see mask.*layer"):
            sextant.method("alibi", heads=4, head_dim=8)(q, q, q, attn_mask=None)
        with self.assertRaisesRegex(TypeError, "options: expected no argument of this name"):
            sextant.method("alibi", heads=4, head_dim=8)(q, q, q, options={})
        with self.assertRaisesRegex(RuntimeError, "method: expected the name .* but got Method"):
            sextant.attention(q, q, q, method=sextant.method("alibi", heads=4, head_dim=8))
        for term in ({"key_bias": torch.zeros(5)}, {"return_lse": True}):
            with self.subTest(**term), self.assertRaisesRegex(RuntimeError, "as a cache is there"):
                sextant.attention(q, q, q, cache=sextant.Cache(), **term)


class Options(unittest.TestCase):
    """options={...} are those of the method; scale and window are those of the call."""

    def setUp(self):
        self.q = torch.randn(1, 2, 6, 8)

    def attend(self, method, **arguments):
        return sextant.attention(self.q, self.q, self.q, method, **arguments)

    def test_window_of_the_method_and_of_the_call(self):
        module = sextant.method("window", heads=2, head_dim=8, window=4)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for window in (None, 2):
                close(self.attend("window", options={"window": 4}, window=window),
                      module(self.q, self.q, self.q, window=window))
            close(self.attend("rerope", options={}, window=2),
                  sextant.method("rerope", heads=2, head_dim=8, train_length=6)(
                      self.q, self.q, self.q, window=2))
            close(self.attend("alibi", options={"max_bias": 4.0}, scale=0.5),
                  sextant.method("alibi", heads=2, head_dim=8, max_bias=4.0)(
                      self.q, self.q, self.q, scale=0.5))

    def test_the_old_spelling_has_the_old_meaning_and_a_warning(self):
        inner = {"base": 100.0}
        for method, old, options in (
                ("window", {"window": 4}, {"window": 4}),
                ("alibi", {"max_bias": 4.0}, {"max_bias": 4.0}),
                ("rerope", {"window": 2, "base": 100.0}, {"window": 2, "base": 100.0}),
                ("window", {"window": 4, "of": "rope", "options": inner},
                 {"window": 4, "of": "rope", "options": inner})):
            with self.subTest(method, **old), warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                got = self.attend(method, **old)
                self.assertEqual([w.category for w in caught], [FutureWarning])
                self.assertEqual(caught[0].filename, __file__)
                self.assertIn(f"pass the options of the method {method} as options={{...}}",
                              str(caught[0].message))
                close(got, self.attend(method, options=options))

    def test_options_that_do_not_fit(self):
        with self.assertRaisesRegex(TypeError, "slant: expected no argument of this name.*Options"):
            self.attend("alibi", options={"slant": 1})
        with warnings.catch_warnings(), self.assertRaisesRegex(TypeError, "max_bias: expected it"):
            warnings.simplefilter("ignore")
            self.attend("alibi", max_bias=4.0, options={"flavour": "press"})
        with self.assertRaisesRegex(ValueError, "alibbi"):
            self.attend("alibbi")
        with self.assertRaisesRegex(ValueError, "alibbi"):
            sextant.method("alibbi", heads=2, head_dim=8)

    @unittest.skipIf(not hasattr(torch, "compile"), "this torch has no compiler")
    def test_the_old_spelling_compiles(self):
        compiled = torch.compile(lambda q: sextant.attention(q, q, q, "window", window=2),
                                 fullgraph=True, backend="aot_eager")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            close(compiled(self.q), self.attend("window", options={"window": 2}))


class MoreQueriesThanKeys(unittest.TestCase):
    def test_need_causal_or_first_query(self):
        q, k = torch.randn(1, 2, 30, 8), torch.randn(1, 2, 7, 8)
        message = "causal: expected True, False, or first_query, as there are 30 queries and only 7"
        with self.assertRaisesRegex(RuntimeError, message):
            sextant.attention(q, k, k)
        with self.assertRaisesRegex(RuntimeError, message):
            sextant.method("alibi", heads=2, head_dim=8)(q, k, k)
        self.assertTrue(sextant.attention(q, k, k, causal=False).ne(0).all())
        self.assertTrue(sextant.attention(q, k, k, first_query=0).ne(0).all())
        seen = sextant.attention(q, k, k, causal=True).ne(0).any(3)
        self.assertTrue(seen[:, :, 23:].all() and not seen[:, :, :23].any())

    def test_need_it_in_a_packed_sequence(self):
        q, k = torch.randn(1, 2, 6, 8), torch.randn(1, 2, 6, 8)
        with self.assertRaisesRegex(RuntimeError, "as there are 4 queries and only 2 keys"):
            sextant.attention(q, k, k, packed_queries=[0, 2, 6], packed_keys=[0, 4, 6])
        out = sextant.attention(q, k, k, packed_queries=[0, 2, 6], packed_keys=[0, 4, 6],
                                causal=False)
        self.assertTrue(out.ne(0).all())

    def test_fewer_queries_are_the_last_ones(self):
        q, k = torch.randn(1, 2, 7, 8), torch.randn(1, 2, 7, 8)
        torch.testing.assert_close(sextant.attention(q[:, :, 5:], k, k),
                                   sextant.attention(q, k, k)[:, :, 5:])


if __name__ == "__main__":
    unittest.main()
