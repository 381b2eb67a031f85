"""Encodings of one's own: they agree with explicit matrices, forward and backward, packed, cached
and compiled."""

import unittest
import unittest.mock

import torch

import sextant

BATCH, HEADS, KEY_HEADS, LENGTH, COLUMNS = 2, 4, 2, 7, 6
SIZES = {"heads": HEADS, "key_heads": KEY_HEADS, "head_dim": COLUMNS, "train_length": LENGTH}
FREQUENCIES = torch.tensor([1.0, 0.1], dtype=torch.float64)


class Everything(sextant.Encoding):
    """All hooks at once."""

    def __init__(self, pairing="half-split", without=(), **sizes):
        super().__init__(**sizes)
        torch.manual_seed(3)
        self.pairing, self.without = pairing, without
        def parameter(*shape):
            return torch.nn.Parameter(torch.randn(*shape, dtype=torch.float64) / 2)
        self.slopes, self.factor = parameter(self.heads), parameter(self.heads)
        self.vectors, self.values = parameter(self.heads, 5, 4), parameter(5, COLUMNS)
        self.of_keys, self.gate = parameter(COLUMNS), parameter(self.key_heads, COLUMNS)
        self.angle, self.logits = parameter(COLUMNS), parameter(self.heads)

    def bias(self, distances):
        if "bias" not in self.without:
            return -self.slopes[:, None] * distances.abs().sqrt()

    def weight(self, distances):
        return 1 + 0.1 * self.factor[:, None] * distances

    def on_query(self, distances):  # clipped, four of six columns
        return self.vectors, distances.clamp(-2, 2).long() + 2

    def on_key(self, distances):  # shared by heads
        return self.of_keys * distances[:, None].cos()

    def on_value(self, distances):
        return self.values, distances.clamp(-2, 2).long() + 2

    def key_bias(self, k, positions):
        if "key_bias" in self.without:
            return None
        kept = torch.nn.functional.logsigmoid((k * self.gate[:, None]).sum(3) + 0.01 * positions)
        return -kept.cumsum(2).repeat_interleave(self.heads // self.key_heads, 1)

    def query_scale(self, q, positions):
        return (positions + 2).log() + 0.1 * q.mean(3)

    def frequencies(self):
        if "frequencies" not in self.without:
            return FREQUENCIES

    def phases(self, k, positions):
        if "phases" not in self.without:
            return ((k * self.angle).sum(3, keepdim=True) * positions[:, None]).cumsum(2)

    def sink(self):
        return self.logits


def plain_rotated(x, angles, pairing):
    pairs = angles.size(-1)
    x = x.clone()
    first = torch.arange(pairs) * (2 if pairing == "interleaved" else 1)
    second = first + (1 if pairing == "interleaved" else pairs)
    a, b = x[..., first], x[..., second]
    x[..., first] = a * angles.cos() - b * angles.sin()
    x[..., second] = a * angles.sin() + b * angles.cos()
    return x


def plainly(e, q, k, v, causal=True, first=None):
    """The same with explicit matrices, for one sequence; query 0 has position `first`."""
    queries, keys = q.size(2), k.size(2)
    first = keys - queries if first is None else first
    at_query = torch.arange(first, first + queries)
    at_key = torch.arange(keys)
    distance = (at_query[:, None] - at_key).double()
    c = e.key_bias(k, at_key.double())
    phases = e.phases(k, at_key.double())
    factor = e.query_scale(q, at_query.double())
    k, v = (x.repeat_interleave(HEADS // KEY_HEADS, 1) for x in (k, v))
    if phases is not None:
        of_queries = phases[:, :, first:first + queries]
        q, k = (plain_rotated(x, a.repeat_interleave(HEADS // a.size(1), 1), e.pairing)
                for x, a in ((q, of_queries), (k, phases)))
    q = q * factor[..., None]
    row = distance.clamp(-2, 2).long() + 2
    plain_q, plain_k = q, k
    if e.frequencies() is not None:
        q = plain_rotated(q, at_query[:, None] * FREQUENCIES, e.pairing)
        k = plain_rotated(k, at_key[:, None] * FREQUENCIES, e.pairing)
    p = q @ k.transpose(2, 3)
    p = p + torch.einsum("bhqc,hqkc->bhqk", plain_q[..., :4], e.vectors[:, row])
    p = p + torch.einsum("bhkc,qkc->bhqk", plain_k, e.of_keys * distance[..., None].cos())
    w = 1 + 0.1 * e.factor[:, None, None] * distance
    s = COLUMNS**-0.5 * w * p + c[:, :, None]
    if "bias" not in e.without:
        s = s - e.slopes[:, None, None] * distance.abs().sqrt()
    if causal:
        s = s.masked_fill(distance < 0, -torch.inf)
    s = torch.cat((s, e.logits.view(1, -1, 1, 1).expand(q.size(0), -1, queries, 1)), 3)
    weights = s.softmax(3)[..., :-1]
    return weights @ v + torch.einsum("bhqk,qkc->bhqc", weights, e.values[row])


def heads(rows=LENGTH, seed=1, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(BATCH, count, rows, COLUMNS, generator=generator, dtype=torch.float64)
            .to(dtype).requires_grad_() for count in (HEADS, KEY_HEADS, KEY_HEADS)]


class OwnEncoding(unittest.TestCase):
    def close(self, a, b, bound=1e-11):
        self.assertEqual(a.shape, b.shape)
        self.assertLess((a - b).abs().max().item(), bound)

    def check_both(self, encoding, ours, plain, tensors):
        """The results and their gradients in all tensors and parameters."""
        tensors = [*tensors, *encoding.parameters()]
        found = []
        for function in (ours, plain):
            out = function()
            generator = torch.Generator().manual_seed(9)
            towards = torch.randn(out.shape, generator=generator, dtype=out.dtype)
            grads = torch.autograd.grad((out * towards).sum(), tensors, allow_unused=True)
            found.append([out.detach(), *(torch.zeros(1) if g is None else g for g in grads)])
        for a, b in zip(*found):
            self.close(a, b)

    def test_all_hooks_agree_with_explicit_matrices(self):
        for pairing in ("half-split", "interleaved"):
            for causal in (True, False):
                with self.subTest(pairing=pairing, causal=causal):
                    e = Everything(pairing, **SIZES)
                    x = heads()
                    self.check_both(e, lambda: e(*x, causal=causal),
                                    lambda: plainly(e, *x, causal), x)

    def test_gradients_agree_with_finite_differences(self):
        e = Everything(**SIZES)
        x = [t[:1, :, :4].detach().requires_grad_() for t in heads()]
        self.assertTrue(torch.autograd.gradcheck(lambda *t: e(*t), x, atol=1e-7, rtol=1e-5))

    def test_queries_of_the_last_rows(self):
        e = Everything(**SIZES)
        q, k, v = heads()
        last = q[:, :, 4:].detach().requires_grad_()
        self.check_both(e, lambda: e(last, k, v), lambda: plainly(e, last, k, v), [last, k, v])
        self.close(e(last, k, v), e(q, k, v)[:, :, 4:])

    def test_packed_sequences_equal_each_alone(self):
        e = Everything(**SIZES)
        x = heads()
        for packed in ([0, 3, 3, 7], torch.tensor([0, 3, 3, 7], dtype=torch.int32)):
            self.check_both(
                e, lambda: e(*x, packed_queries=packed, packed_keys=packed),
                lambda: torch.cat([plainly(e, *(t[:, :, a:b] for t in x))
                                   for a, b in ((0, 3), (3, 7))], 2), x)

    def test_decoding_row_by_row_equals_prefill(self):
        for without in ((), ("phases",), ("phases", "frequencies")):
            with self.subTest(without=without), torch.no_grad():
                e = Everything(without=without, **SIZES)
                q, k, v = heads()
                whole = e(q, k, v)
                rows = [e(q[:, :, n:n + 1], k[:, :, :n + 1], v[:, :, :n + 1])
                        for n in range(LENGTH)]
                self.close(torch.cat(rows, 2), whole)
                single = e.float()
                q, k, v = (t.float() for t in (q, k, v))
                cache = sextant.Cache(page_rows=16)
                cached = [single(q[:, :, a:b], k[:, :, a:b], v[:, :, a:b], cache=cache)
                          for a, b in ((0, 3), (3, 4), (4, 6), (6, 7))]
                self.close(torch.cat(cached, 2).double(), whole, 2e-5)

    def test_a_cache_holds_sequences_of_unequal_length(self):
        class Gate(sextant.Encoding):
            def key_bias(self, k, positions):
                return k.sum((1, 3))[:, None].cumsum(2)

        class Decay(sextant.Encoding):
            def bias(self, distances):
                return -0.3 * distances

        for kind in (Gate, Decay):
            with self.subTest(kind.__name__), torch.no_grad():
                e = kind(heads=HEADS, key_heads=KEY_HEADS)
                q, k, v = heads(rows=40, dtype=torch.float32)
                cache = sextant.Cache(page_rows=16)
                e(*(t[:1, :, :20] for t in (q, k, v)), cache=cache)
                second = cache.add()
                e(*(t[1:, :, :33] for t in (q, k, v)), cache=cache, sequences=[second])
                out = e(*(torch.stack((t[0, :, 20:23], t[1, :, 33:36])) for t in (q, k, v)),
                        cache=cache)
                whole = [e(*(t[n:n + 1, :, :rows] for t in (q, k, v)))[:, :, -3:]
                         for n, rows in ((0, 23), (1, 36))]
                self.close(out, torch.cat(whole), 2e-5)

    def test_an_error_leaves_the_cache_unchanged(self):
        class Wrong(sextant.Encoding):
            def bias(self, distances):
                return torch.zeros(3, distances.numel())

        with torch.no_grad():
            q, k, v = heads(dtype=torch.float32)
            cache = sextant.Cache()
            with self.assertRaisesRegex(RuntimeError, "Wrong.bias"):
                Wrong(heads=HEADS, key_heads=KEY_HEADS)(q, k, v, cache=cache)
            self.assertEqual(cache.sequences, [])
            e = sextant.Encoding(heads=HEADS, key_heads=KEY_HEADS)
            e(q, k, v, cache=cache)
            with self.assertRaisesRegex(RuntimeError, "Wrong.bias"):
                Wrong(heads=HEADS, key_heads=KEY_HEADS)(q, k, v, cache=cache)
            self.assertEqual([cache.rows(s) for s in cache.sequences], [LENGTH, LENGTH])
            with self.assertRaisesRegex(RuntimeError, "causal: expected True, as a cache is there"):
                e(q, k, v, cache=cache, causal=False)

    def test_sequences_of_a_cache_that_do_not_fit(self):
        with torch.no_grad():
            q, k, v = heads(dtype=torch.float32)
            e, cache = sextant.Encoding(heads=HEADS, key_heads=KEY_HEADS), sextant.Cache()
            e(q, k, v, cache=cache)
            with self.assertRaisesRegex(RuntimeError, "expected each once, but got 0 twice"):
                e(q, k, v, cache=cache, sequences=[0, 0])
            self.assertEqual([cache.rows(s) for s in cache.sequences], [LENGTH, LENGTH])
            with self.assertRaisesRegex(RuntimeError, "cache: expected one without rotated_keys"):
                e(q, k, v, cache=sextant.Cache(rotated_keys=True))

    def test_16_bit_tensors_and_parameters(self):
        e = Everything(**SIZES)
        with torch.no_grad():
            x = [t.bfloat16() for t in heads()]
            exact = e(*(t.double() for t in x))
            out = e(*x)
            self.assertEqual(out.dtype, torch.bfloat16)
            self.close(out.double(), exact, 0.02)
            self.close(e.float()(*(t.float() for t in x)).double(), exact, 2e-5)

    def test_frequencies_are_those_of_rope(self):
        class Rope(sextant.Encoding):
            def frequencies(self):
                return sextant.tables.rope_frequencies(COLUMNS)

        x = heads(dtype=torch.float32)
        far = {"first_query": 10**6, "first_key": 10**6}
        ours = Rope(heads=HEADS, key_heads=KEY_HEADS)(*x, **far)
        self.close(ours, sextant.attention(*x, method="rope", **far), 1e-6)

    def test_no_hook_is_attention_without_positions(self):
        x = heads(dtype=torch.float32)
        e = sextant.Encoding(heads=HEADS, key_heads=KEY_HEADS)
        self.assertTrue(torch.equal(e(*x), sextant.attention(*x)))

    def test_autocast_casts_no_table(self):
        class Network(sextant.Encoding):
            def __init__(self, **sizes):
                super().__init__(**sizes)
                self.layer = torch.nn.Linear(1, self.heads)

            def bias(self, distances):
                return self.layer(distances[:, None] / 7).T

        torch.manual_seed(0)
        x, e = heads(dtype=torch.float32), Network(heads=HEADS, key_heads=KEY_HEADS)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            cast = e(*x)
        self.assertTrue(torch.equal(cast, e(*x)))

    @unittest.skipIf(not hasattr(torch, "compile"), "this torch has no compiler")
    def test_compiles_whole_with_the_same_gradients(self):
        e = Everything(**SIZES)
        x = heads()
        compiled = torch.compile(lambda: e(*x), fullgraph=True, backend="aot_eager")
        self.check_both(e, compiled, lambda: e(*x), x)
        packed = torch.compile(lambda: e(*x, packed_queries=[0, 3, 7], packed_keys=[0, 3, 7]),
                               fullgraph=True, backend="aot_eager")
        self.check_both(e, packed, lambda: e(*x, packed_queries=[0, 3, 7],
                                             packed_keys=[0, 3, 7]), x)

    @unittest.skipIf(not hasattr(torch.library, "opcheck"), "this torch has no opcheck")
    def test_opcheck_of_the_operator_with_all_operands(self):
        e = Everything(**SIZES)
        calls = []
        real = torch.ops.sextant.method_attend

        def record(*arguments, **named):
            calls.append((arguments, named))
            return real(*arguments, **named)

        with unittest.mock.patch.object(torch.ops.sextant, "method_attend", record):
            e(*heads())
        arguments, named = calls[0]

        def leaf(x):
            if isinstance(x, list) and x and isinstance(x[0], torch.Tensor):
                return [leaf(one) for one in x]
            if isinstance(x, torch.Tensor):
                return x.detach().requires_grad_(x.requires_grad)
            return x

        torch.library.opcheck(real.default, tuple(map(leaf, arguments)),
                              {name: leaf(x) for name, x in named.items()})


if __name__ == "__main__":
    unittest.main()
