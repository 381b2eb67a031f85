"""Dropout of attention weights and softcap, as PyTorch users call them."""

import math
import unittest

import torch
from torch.utils.checkpoint import checkpoint

import sextant

from made_methods import inputs, layer_input, make

SEED = torch.tensor([123])


def call(method, x, q, k, v, parameters, **options):
    """Attention of layer 1 with a seed of one's own, and the columns that the method adds."""
    identity = method.name, method.shape, method.options, list(parameters)
    k = torch.cat((k, torch.ops.sextant.method_key_columns(*identity, x, layer=1)), 3)
    q = torch.cat((q, torch.ops.sextant.method_query_columns(*identity, x, layer=1)), 3)
    return torch.ops.sextant.method_attend(*identity, q, k, v, layer=1, **options)


def factors(batch, heads, queries, keys, p):
    """The factors of dropout, [batch, heads, queries, keys]: equal weights times unit vectors."""
    q = torch.zeros(batch, heads, queries, 2)
    units = torch.eye(keys).expand(batch, heads, keys, keys)
    return keys * sextant.attention(q, torch.zeros(batch, heads, keys, 2), units, causal=False,
                                    dropout_p=p)


class Dropout(unittest.TestCase):
    def test_keeps_the_share_that_it_is_told_and_scales_it(self):
        torch.manual_seed(0)
        for p in (0.1, 0.5, 0.9):
            found = factors(2, 3, 100, 200, p)
            kept, count = (found != 0).sum().item(), found.numel()
            self.assertLess(abs(kept - count * (1 - p)), 5 * math.sqrt(count * p * (1 - p)))
            self.assertLess((found[found != 0] - 1 / (1 - p)).abs().max().item() * (1 - p), 1e-5)

    def test_is_that_of_the_materialised_weights(self):
        q, k, v = inputs()
        torch.manual_seed(3)
        out = sextant.attention(q, k, v, causal=False, dropout_p=0.4)
        torch.manual_seed(3)
        kept = factors(2, 2, 6, 6, 0.4) != 0
        weights = torch.softmax(q @ k.transpose(2, 3) / 2, -1) * kept / 0.6
        self.assertLess((out - weights @ v).abs().max().item(), 1e-12)

    def test_follows_torchs_generator(self):
        q, k, v = inputs()
        outs = []
        for seed in (1, 1, 2):
            torch.manual_seed(seed)
            outs.append(sextant.attention(q, k, v, dropout_p=0.5))
        again = sextant.attention(q, k, v, dropout_p=0.5)
        self.assertTrue(torch.equal(outs[0], outs[1]))
        self.assertFalse(torch.equal(outs[0], outs[2]))
        self.assertFalse(torch.equal(outs[2], again))
        torch.manual_seed(1)
        state = torch.get_rng_state()
        sextant.attention(q, k, v)  # draws nothing
        self.assertTrue(torch.equal(state, torch.get_rng_state()))

    def test_every_method_on_both_backends_with_gradients(self):
        options = {"dropout_p": 0.3, "dropout_seed": SEED, "softcap": 1.5}
        for name in sextant.methods():
            with self.subTest(name):
                method = make(name)
                double = [layer_input(), *inputs(), *method.tensors()]
                single = [t.detach().float().requires_grad_() for t in double]
                found = []
                for x, q, k, v, *parameters in (double, single):
                    out = call(method, x, q, k, v, parameters, **options)
                    grads = torch.autograd.grad(out.square().sum(), [x, q, k, v, *parameters],
                                                allow_unused=True)
                    found.append([out, *grads])
                for a, b in zip(*found):
                    if a is not None:
                        bound = 1e-3 * (1 + a.abs().max().item())
                        self.assertLess((a - b).abs().max().item(), bound)
                plain = call(method, *double[:4], double[4:])
                self.assertGreater((found[0][0] - plain).abs().max().item(), 1e-3)

    def test_gradients_agree_with_finite_differences(self):
        for name in ("none", "rope", "t5", "shaw", "nezha", "fire", "transformer-xl", "deberta"):
            with self.subTest(name):
                method = make(name)
                parameters = [p.detach().requires_grad_() for p in method.tensors()]
                torch.autograd.gradcheck(
                    lambda *t: call(method, *t[:4], t[4:], dropout_p=0.3, dropout_seed=SEED,
                                    softcap=1.5),
                    [layer_input(), *inputs(), *parameters], eps=1e-5, atol=1e-7, rtol=1e-7)

    def test_checkpointing_repeats_it(self):
        method = make("fire")  # whose long biases are made for some queries at a time
        for reentrant in (True, False):
            grads = []
            for through in (lambda f, *t: f(*t),
                            lambda f, *t: checkpoint(f, *t, use_reentrant=reentrant)):
                q, k, v = inputs()
                torch.manual_seed(5)
                out = through(lambda q, k, v: method(q, k, v, dropout_p=0.5), q, k, v)
                torch.rand(3)  # other draws between the passes
                out.square().sum().backward()
                grads.append([x.grad for x in (q, k, v)])
            for a, b in zip(*grads):
                self.assertTrue(torch.equal(a, b))

    def test_does_not_depend_on_threads(self):
        torch.manual_seed(4)
        q, k, v = (torch.randn(2, 4, 700, 32) for _ in range(3))
        threads, outs = torch.get_num_threads(), []
        try:
            for count in (1, 2, 3):
                torch.set_num_threads(count)
                torch.manual_seed(6)
                outs.append(sextant.attention(q, k, v, "alibi", dropout_p=0.2))
        finally:
            torch.set_num_threads(threads)
        self.assertTrue(torch.equal(outs[0], outs[1]) and torch.equal(outs[0], outs[2]))

    def test_packed_sequences_and_shared_key_heads(self):
        q = torch.randn(1, 4, 50, 8)
        k, v = torch.randn(1, 2, 50, 8), torch.randn(1, 2, 50, 8)
        both = []
        for dtype in (torch.float32, torch.float64):
            torch.manual_seed(7)
            both.append(sextant.attention(q.to(dtype), k.to(dtype), v.to(dtype), "rope",
                                          packed_queries=[0, 13, 50], packed_keys=[0, 13, 50],
                                          dropout_p=0.4))
        self.assertLess((both[0] - both[1]).abs().max().item(), 1e-5)

    def test_errors(self):
        q, k, v = inputs()
        for p in (-0.1, 1, 1.5, float("nan"), "0.1", None, True):
            with self.assertRaisesRegex(RuntimeError, "dropout_p: expected at least 0 and below 1"):
                sextant.attention(q, k, v, dropout_p=p)
        for softcap in (0, -1, float("inf"), float("nan"), 1e39, 1e-46, True, "3"):
            with self.assertRaisesRegex(RuntimeError, "softcap: expected a number from 1e-30"):
                sextant.attention(q, k, v, softcap=softcap)
        with self.assertRaisesRegex(RuntimeError, "dropout_p: expected 0.0, as a cache is there"):
            sextant.attention(q, k, v, cache=sextant.Cache(), dropout_p=0.1)


@unittest.skipIf(not hasattr(torch, "compile"), "this torch has no compiler")
class Traced(unittest.TestCase):
    def test_compiled_calls_draw_as_eager_ones(self):
        for name in ("t5", "fire"):
            torch.compiler.reset()
            method = make(name)
            q, k, v = inputs()

            def attend():
                return method(q, k, v, dropout_p=0.5, softcap=3.0)

            compiled = torch.compile(attend, fullgraph=True, backend="aot_eager")
            found = []
            for one in (attend, compiled):
                torch.manual_seed(8)
                out = one()
                tensors = [q, k, v, *method.parameters()]
                grads = torch.autograd.grad(out.square().sum(), tensors, allow_unused=True)
                found.append([out, *(torch.zeros(1) if g is None else g for g in grads)])
            for a, b in zip(*found):
                self.assertLess((a - b).abs().max().item(), 1e-12)
            self.assertFalse(torch.equal(compiled(), compiled()))

    def test_opcheck(self):
        method = make("t5")
        parameters = [p.detach().requires_grad_(n == 0) for n, p in enumerate(method.tensors())]
        torch.library.opcheck(
            torch.ops.sextant.method_attend.default,
            (method.name, method.shape, method.options, parameters, *inputs()),
            {"dropout_p": 0.5, "dropout_seed": SEED, "softcap": 2.0})


class Softcap(unittest.TestCase):
    def test_is_tanh_of_the_scaled_product(self):
        q, k, v = inputs()
        scores = q @ k.transpose(2, 3) / 2
        weights = torch.softmax(0.7 * torch.tanh(scores / 0.7), -1)
        out = sextant.attention(q, k, v, causal=False, softcap=0.7)
        self.assertLess((out - weights @ v).abs().max().item(), 1e-12)

    def test_biases_are_added_after_it(self):
        q, k, v = inputs()
        slopes = torch.tensor([1 / 16, 1 / 256], dtype=torch.float64).view(2, 1, 1)
        distance = torch.arange(6).view(-1, 1) - torch.arange(6)
        scores = 0.7 * torch.tanh(q @ k.transpose(2, 3) / 2 / 0.7) - slopes * distance
        weights = torch.softmax(scores.masked_fill(distance < 0, -math.inf), -1)
        out = sextant.attention(q, k, v, "alibi", softcap=0.7)
        self.assertLess((out - weights @ v).abs().max().item(), 1e-12)

    def test_decoding_gives_what_the_whole_gives(self):
        q, k, v = (x.detach().float() for x in inputs())
        for name in ("none", "rope", "alibi"):
            cache = sextant.Cache()
            parts = [sextant.attention(q[:, :, n:n + 1], k[:, :, n:n + 1], v[:, :, n:n + 1], name,
                                       cache=cache, softcap=0.9) for n in range(6)]
            whole = sextant.attention(q, k, v, name, softcap=0.9)
            self.assertLess((torch.cat(parts, 2) - whole).abs().max().item(), 1e-6)


if __name__ == "__main__":
    unittest.main()
