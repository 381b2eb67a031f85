"""Tensors and caches of bfloat16 and float16 give the float32 results, rounded once."""

import pathlib
import tempfile
import unittest

import torch

import sextant

from made_methods import HEADS, HEAD_DIM, LENGTH, inputs, layer_input, make


class Narrow(unittest.TestCase):
    """bfloat16 and float16: the same values give the float32 results, rounded once."""

    ROUNDING = {torch.bfloat16: 2.0**-8, torch.float16: 2.0**-11}  # half a unit in the last place

    def leaves(self, tensors, dtype):
        return [x.detach().to(dtype).requires_grad_() for x in tensors]

    def run_both(self, function, tensors, dtype):
        """Pairs: a result or gradient of narrow tensors, and that of the same values in float64."""
        narrow = self.leaves(tensors, dtype)
        wide = self.leaves(narrow, torch.float64)
        outs = [function(*narrow), function(*wide)]
        self.assertEqual(outs[0].dtype, dtype)
        torch.manual_seed(4)
        d_out = torch.randn(outs[0].shape, dtype=torch.float64).to(dtype)
        pairs = [[outs[0].detach(), outs[1].detach()]]
        if not outs[0].requires_grad:
            return pairs
        for out in outs:
            out.backward(d_out.to(out.dtype))
        for x, y in zip(narrow, wide):
            self.assertEqual(x.grad is None, y.grad is None)
            if x.grad is not None:
                self.assertEqual(x.grad.dtype, dtype)
                pairs.append([x.grad, y.grad])
        return pairs

    def check(self, function, tensors, dtype):
        """Results and gradients are rounded once. Gradients are computed from the rounded result,
        and in some (of a bias of all keys) the terms of the sum cancel, so the bound of all
        gradients is relative to the largest one."""
        u = self.ROUNDING[dtype]
        (got, exact), *gradients = self.run_both(function, tensors, dtype)
        self.assertLess(((got.double() - exact).abs() - u * exact.abs()).max().item(), 2e-5)
        gradients = [pair for pair in gradients if pair[0].numel() > 0]
        most = max((exact.abs().max().item() for _, exact in gradients), default=0)
        for n, (got, exact) in enumerate(gradients):
            wrong = (got.double() - exact).abs() - u * exact.abs()
            self.assertLess(wrong.max().item(), 3 * u * most + 2e-5, f"gradient {n}")

    def test_every_method(self):
        for name in sextant.methods():
            for dtype in self.ROUNDING:
                with self.subTest(name, dtype=dtype):
                    method = make(name)
                    identity = method.name, method.shape, method.options
                    q, k, v = inputs()
                    x = layer_input()
                    rows = method.queries(q, x), method.keys(k, x), v
                    tensors = *rows, *method.tensors()
                    self.check(
                        lambda q, k, v, *p: torch.ops.sextant.method_attend(
                            *identity, list(p), q, k, v, layer=1
                        ),
                        tensors,
                        dtype,
                    )
                    for last in (False, True):
                        self.check(
                            lambda x, *p: torch.ops.sextant.method_embed(
                                *identity, list(p), x, last=last
                            ),
                            [layer_input(), *method.tensors()],
                            dtype,
                        )

    def test_of_a_module_and_of_float32_parameters_alike(self):
        x = [t.bfloat16() for t in inputs()]
        for name in ("alibi", "t5", "transformer-xl", "rope", "deberta"):
            with self.subTest(name):
                method = make(name).bfloat16()
                out = method(*x)
                self.assertEqual(out.dtype, torch.bfloat16)
                self.assertTrue(torch.equal(out, method.float()(*x)))  # the same values

    def test_operands_may_differ(self):
        q, k, v = (t.detach().float() for t in inputs())
        narrow = k.bfloat16(), v.half()
        out = sextant.attention(q, *narrow, method="rope")
        self.assertEqual(out.dtype, torch.float32)
        wide = sextant.attention(q, *(t.float() for t in narrow), method="rope")
        self.assertTrue(torch.equal(out, wide))

    def test_strides_and_lse(self):
        torch.manual_seed(5)
        for dtype in self.ROUNDING:
            # q, k and v with the strides of a joint projection.
            x = torch.randn(2, 9, 3, HEADS, HEAD_DIM).to(dtype)
            q, k, v = (x[:, :, n].transpose(1, 2) for n in range(3))
            runs = torch.tensor([[[[0, i + 1] for i in range(9)]]])
            frames = torch.tensor([[-1, 0, 9, 0, 0, 9, 0]])
            out, lse = torch.ops.sextant.attend(q, k, v, 0.5, frames, runs)
            wide, wide_lse = torch.ops.sextant.attend(
                q.float(), k.float(), v.float(), 0.5, frames, runs
            )
            self.assertTrue(torch.equal(out, wide.to(dtype)))
            self.assertEqual(lse.dtype, torch.float32)
            self.assertTrue(torch.equal(lse, wide_lse))
            # lse has a gradient as well.
            leaves = self.leaves((q, k, v), dtype)
            torch.ops.sextant.attend(*leaves, 0.5, frames, runs)[1].sum().backward()
            exact = self.leaves(leaves, torch.float32)
            torch.ops.sextant.attend(*exact, 0.5, frames, runs)[1].sum().backward()
            for got, expected in zip(leaves[:2], exact):
                self.assertTrue(torch.equal(got.grad, expected.grad.to(dtype)))

    @torch.no_grad()
    def test_caches_hold_what_they_are_given_or_asked_for(self):
        q, k, v = (t.detach().float() for t in inputs())
        for dtype in self.ROUNDING:
            rounded = [t.to(dtype) for t in (q, k, v)]
            for name in ("none", "rope", "alibi", "transformer-xl", "skew"):
                with self.subTest(name, dtype=dtype):
                    method = make(name).float()
                    whole = method(rounded[0].float(), *(t.float() for t in rounded[1:]))
                    asked = sextant.Cache(page_rows=16, dtype=dtype)
                    given = sextant.Cache(page_rows=16)
                    for first, last in ((0, 4), (4, 5), (5, LENGTH)):
                        part = [t[:, :, first:last] for t in rounded]
                        exact = whole[:, :, first:last]
                        out = method(*(t.float() for t in part), cache=asked)
                        self.assertLess((out - exact).abs().max().item(), 1e-5)
                        out = method(*part, cache=given)
                        self.assertEqual(out.dtype, dtype)
                        bound = self.ROUNDING[dtype] * exact.abs() + 1e-5
                        self.assertTrue(((out.float() - exact).abs() < bound).all())
                    for cache in (asked, given):
                        self.assertEqual(cache.held.dtype(), str(dtype)[6:])
                        held = cache.read(cache.sequences[1])
                        self.assertTrue(torch.equal(held[0][0], rounded[1][1]))
                        self.assertTrue(torch.equal(held[1][0], rounded[2][1]))
                    with tempfile.TemporaryDirectory() as folder:
                        path = pathlib.Path(folder) / "text"
                        given.save(given.sequences[0], path)
                        again = sextant.Cache()
                        loaded = again.read(again.load(path))
                        saved = given.read(given.sequences[0])
                        self.assertTrue(torch.equal(loaded[0], saved[0]))
                        with self.assertRaisesRegex(RuntimeError, "heads, columns and format"):
                            sextant.Cache(dtype=torch.float32).load(path)
        with self.assertRaisesRegex(RuntimeError, "dtype: expected .* or int8, but got int16"):
            sextant.attention(q, k, v, cache=sextant.Cache(dtype=torch.int16))

    def test_autocast_needs_nothing(self):
        torch.manual_seed(6)
        project = torch.nn.Linear(HEADS * HEAD_DIM, 3 * HEADS * HEAD_DIM)
        x = torch.randn(2, LENGTH, HEADS * HEAD_DIM)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            q, k, v = project(x).view(2, LENGTH, 3, HEADS, HEAD_DIM).permute(2, 0, 3, 1, 4)
            out = make("t5").float()(q, k, v)
        self.assertEqual(out.dtype, torch.bfloat16)
        out.float().sum().backward()
        self.assertEqual(project.weight.grad.dtype, torch.float32)

    def test_turning_rounds_once(self):
        torch.manual_seed(7)
        x = torch.randn(1, 2, 5, 8).bfloat16()
        positions = torch.arange(5) + 1000
        rotated = sextant.rotate(x, positions)
        self.assertTrue(torch.equal(rotated, sextant.rotate(x.float(), positions).bfloat16()))

    def test_types_that_do_not_go_together(self):
        q, k, v = inputs()
        with self.assertRaisesRegex(RuntimeError, r"k: expected Double \[.*\], but got BFloat16"):
            sextant.attention(q, k.bfloat16(), v)
        with self.assertRaisesRegex(RuntimeError, "v: expected Float, BFloat16 or Half"):
            sextant.attention(q.bfloat16(), k.half(), v)
        with self.assertRaisesRegex(RuntimeError, "q: expected Float, BFloat16, Half or Double"):
            sextant.attention(q.int(), k.int(), v.int())


if __name__ == "__main__":
    unittest.main()
