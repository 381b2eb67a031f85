#!/usr/bin/env python3
"""Python loads the library, calls its operators, differentiates and traces them.

    load_library_test.py LIBRARY [TORCH_VERSION]

Exits with 77, which CTest reports as skipped, if Python has no torch, or another version than the
library was built with: C++ symbols differ between versions.
"""
import sys
import unittest

SKIPPED = 77

try:
    import torch
except ImportError as error:
    print(f"skipped: {sys.executable} has no torch ({error})")
    sys.exit(SKIPPED)

BATCH, HEADS, KEY_HEADS, LENGTH, WIDTH = 2, 4, 2, 5, 6


def causal(length):
    """frames and runs of one causal sequence."""
    frames = torch.tensor([[-1, 0, length, 0, 0, length, 0]])
    runs = torch.stack([torch.zeros(length, dtype=torch.long), torch.arange(1, length + 1)], -1)
    return frames, runs[None, None]


def operands(dtype=torch.double, seed=0):
    generator = torch.Generator().manual_seed(seed)
    def normal(*sizes):
        return torch.randn(*sizes, generator=generator, dtype=torch.double).to(dtype)
    q, k, v = (normal(BATCH, heads, LENGTH, WIDTH) for heads in (HEADS, KEY_HEADS, KEY_HEADS))
    return [x.requires_grad_() for x in (q, k, v, normal(HEADS, LENGTH), normal(1, LENGTH, WIDTH))]


def attend(q, k, v, bias, on_value):
    frames, runs = causal(LENGTH)
    return torch.ops.sextant.attend(
        q, k, v, WIDTH**-0.5, frames, runs, farthest=LENGTH - 1, bias=bias, on_value=on_value)


def attend_plainly(q, k, v, bias, on_value):
    """The same with explicit matrices. Row n of a table is distance LENGTH - 1 - n."""
    row = LENGTH - 1 - torch.arange(LENGTH)[:, None] + torch.arange(LENGTH)
    hidden = row >= LENGTH
    row = row.clamp(max=LENGTH - 1)
    k, v = (x.repeat_interleave(HEADS // KEY_HEADS, 1) for x in (k, v))
    scores = q @ k.transpose(2, 3) * WIDTH**-0.5 + bias[:, row]
    weights = scores.masked_fill(hidden, -torch.inf).softmax(-1)
    return weights @ v + (weights[..., None] * on_value[0][row]).sum(3)


class LoadLibrary(unittest.TestCase):
    def test_agrees_with_plain_attention(self):
        x = operands()
        out, lse = attend(*x)
        self.assertEqual(lse.shape, (BATCH, HEADS, LENGTH))
        torch.testing.assert_close(out, attend_plainly(*x), rtol=0, atol=1e-13)

    def test_float32_runs(self):
        try:
            out, _ = attend(*operands(torch.float))
        except RuntimeError as error:
            if "expected one that serves float32" not in str(error):
                raise
            self.skipTest("the cpu backend does not serve float32 yet")
        self.assertEqual(out.dtype, torch.float)
        torch.testing.assert_close(out.double(), attend(*operands())[0], rtol=0, atol=2e-6)

    def test_backward_gives_every_gradient(self):
        x, y = operands(), operands()
        attend(*x)[0].square().sum().backward()
        attend_plainly(*y).square().sum().backward()
        for mine, plain in zip(x, y):
            torch.testing.assert_close(mine.grad, plain.grad, rtol=0, atol=1e-12)

    def test_gradcheck(self):
        self.assertTrue(torch.autograd.gradcheck(attend, operands(), atol=1e-7, rtol=1e-6))

    def test_what_has_no_gradient_says_so(self):
        q, *rest = operands()
        grad, = torch.autograd.grad(attend(q, *rest)[0].square().sum(), q, create_graph=True)
        with self.assertRaisesRegex(RuntimeError, "first derivatives only"):
            grad.sum().backward()

    def test_errors_name_the_argument(self):
        q, k, *rest = operands()
        message = r"attend: k: expected Double \[2, \*, \*, 6\], but got Float"
        with self.assertRaisesRegex(RuntimeError, message):
            attend(q, k.float(), *rest)

    def test_shapes_without_data(self):
        q, k, v, bias, on_value = (x.detach().to("meta").requires_grad_() for x in operands())
        q = q.transpose(1, 2).contiguous().transpose(1, 2)
        out, lse = attend(q, k, v, bias, on_value)
        self.assertEqual((out.shape, lse.shape), (q.shape, q.shape[:3]))
        self.assertEqual(out.stride(), q.stride())
        out.sum().backward()
        self.assertEqual(bias.grad.shape, bias.shape)

    def test_fake_tensors(self):
        from torch._subclasses import FakeTensorMode
        with FakeTensorMode() as mode:
            real = (*operands()[:3], *causal(LENGTH))
            q, k, v, frames, runs = (mode.from_tensor(x.detach()) for x in real)
            out, _ = torch.ops.sextant.attend(q, k, v, 1.0, frames, runs)
        self.assertEqual(out.shape, q.shape)
        self.assertEqual(out.device.type, "cpu")

    def test_traces_into_a_graph_that_runs(self):
        from torch.fx.experimental.proxy_tensor import make_fx
        def step(*x):
            out, _ = attend(*x)
            return torch.autograd.grad(out.square().sum(), x)
        x = operands()
        graph = make_fx(step)(*x)
        names = [str(node.target) for node in graph.graph.nodes]
        self.assertIn("sextant.attend_backward.default", names)
        for traced, called in zip(graph(*x), step(*x)):
            self.assertTrue(torch.equal(traced, called))

    @unittest.skipUnless(hasattr(torch.library, "opcheck"), "opcheck is of later torch")
    def test_opcheck(self):
        frames, runs = causal(LENGTH)
        q, k, v, bias, on_value = operands()
        torch.library.opcheck(torch.ops.sextant.attend.default, (q, k, v, 0.4, frames, runs),
                              {"farthest": LENGTH - 1, "bias": bias, "on_value": on_value})

    @unittest.skipUnless(int(torch.__version__.split(".")[0]) >= 2,
                         "torch.compile is of later torch")
    def test_compiles_into_one_graph(self):
        x, y = operands(), operands()
        compiled = torch.compile(lambda *x: attend(*x)[0].square().sum(), fullgraph=True,
                                 backend="aot_eager")
        compiled(*x).backward()
        attend(*y)[0].square().sum().backward()
        for mine, eager in zip(x, y):
            torch.testing.assert_close(mine.grad, eager.grad, rtol=0, atol=1e-14)


if __name__ == "__main__":
    library, *wanted = sys.argv[1:]
    if wanted and torch.__version__.split("+")[0].split("a")[0] != wanted[0]:
        print(f"skipped: {sys.executable} has torch {torch.__version__}, "
              f"the library was built with {wanted[0]}")
        sys.exit(SKIPPED)
    torch.ops.load_library(library)
    unittest.main(argv=sys.argv[:1])
