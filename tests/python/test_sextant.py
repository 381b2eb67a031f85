"""The Python package: every method's gradients, golden cases, tracing, and what errors say."""

import pathlib
import subprocess
import sys
import types
import unittest

import torch

import sextant
from sextant.conformance import run_case

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
HEADS, HEAD_DIM, LENGTH = 2, 4, 6
# Binary needs as many bits as the model is wide; a clamp that lets gradients through is not what finite
# differences see; small tables save time.
OPTIONS = {
    "binary": {"bits": 8},
    "deberta": {"buckets": 4, "max_positions": 8},
    "emd": {"options": {"buckets": 4, "max_positions": 8}},
    "kerple-log": {"clamp": "smooth"},
    "kerple-power": {"clamp": "smooth"},
}


def make(name, **options):
    torch.manual_seed(1)
    method = sextant.method(name, heads=HEADS, head_dim=HEAD_DIM, layers=2, train_length=LENGTH,
                            dtype=torch.float64, **OPTIONS.get(name, {}), **options)
    for parameter in method.parameters():  # away from zeros, where a gradient may hide
        parameter.data += 0.3 * torch.randn_like(parameter)
    return method


def inputs():
    torch.manual_seed(2)
    return [torch.randn(2, HEADS, LENGTH, HEAD_DIM, dtype=torch.float64, requires_grad=True)
            for _ in range(3)]


def call(method, q, k, v, parameters):
    return torch.ops.sextant.method_attend(
        method.name, method.shape, method.options, list(parameters), q, k, v, layer=1
    )


class EveryMethod(unittest.TestCase):
    def test_gradients_agree_with_finite_differences(self):
        for name in sextant.methods():
            with self.subTest(name):
                method = make(name)
                parameters = [p.detach().requires_grad_() for p in method.tensors()]
                self.check(lambda *t: call(method, *t[:3], t[3:]), [*inputs(), *parameters])
                x = torch.randn(2, LENGTH, HEADS * HEAD_DIM, dtype=torch.float64, requires_grad=True)
                for last in (False, True):
                    self.check(
                        lambda x, *p: torch.ops.sextant.method_embed(
                            method.name, method.shape, method.options, list(p), x, last=last
                        ),
                        [x, *parameters],
                    )

    def check(self, function, tensors):
        # Central differences over 1e-5 are right to about 1e-10.
        torch.autograd.gradcheck(function, tensors, eps=1e-5, atol=1e-7, rtol=1e-7)

    def test_float32_agrees_with_float64(self):
        for name in sextant.methods():
            with self.subTest(name):
                method = make(name)
                q, k, v = inputs()
                out = method(q, k, v)
                single = method.float()(q.float(), k.float(), v.float())
                self.assertLess((out - single).abs().max().item(), 2e-5)

    def test_queries_may_come_in_parts(self):
        for name in sextant.methods():
            with self.subTest(name):
                method = make(name)
                q, k, v = inputs()
                whole = method(q, k, v)
                last = method(q[:, :, 4:], k, v)
                self.assertLess((whole[:, :, 4:] - last).abs().max().item(), 1e-12)


class Errors(unittest.TestCase):
    def message(self, *arguments, **options):
        with self.assertRaises(RuntimeError) as caught:
            sextant.attention(*arguments, **options)
        return str(caught.exception)

    def test_name_what_is_wrong(self):
        q, k, v = inputs()
        self.assertIn("alibi", self.message(q, k, v, method="alibbi"))
        self.assertIn("slant", self.message(q, k, v, method="alibi", slant=2))
        self.assertIn("attend: k:", self.message(q, k[..., :3], v))
        self.assertIn("parameters", self.message(q, k, v, method="shaw"))


class Conformance(unittest.TestCase):
    def run_on(self, path):
        return subprocess.run([sys.executable, "-m", "sextant.conformance", str(path)],
                              capture_output=True, text=True, check=False)

    def test_golden_cases(self):
        folders = [ROOT / "tests" / "golden" / "data"]
        shared = ROOT.parent / "shared" / "golden"
        folders += [shared / "relative", shared / "rotary"] if shared.is_dir() else []
        for folder in folders:
            with self.subTest(folder):
                done = self.run_on(folder)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertRegex(done.stdout, r"(?m)^[1-9]\d* passed, 0 failed")

    def test_float32_off_by_more_than_roundings_fails(self):
        path = ROOT / "tests" / "golden" / "data" / "nope_causal.npz"

        def attention(q, k, v, **options):
            return sextant.attention(q, k, v, **options) * (1 + error * (q.dtype == torch.float32))

        library = types.SimpleNamespace(attention=attention)
        for error, status in ((0, "pass"), (2e-5, "FAIL")):
            self.assertEqual(run_case(path, library).status, status)

    def test_what_float32_may_does_not_change_from_run_to_run(self):
        path = ROOT / "tests" / "golden" / "data" / "shaw_bidir.npz"
        shares = {run_case(path, sextant).share for _ in range(2)}
        self.assertEqual(len(shares), 1)

    def test_a_path_that_is_not_there(self):
        done = self.run_on("no-such-folder")
        self.assertEqual(done.returncode, 2)
        self.assertIn("no-such-folder", done.stderr)


@unittest.skipIf(not hasattr(torch, "compile"), "this torch has no compiler")
class Tracing(unittest.TestCase):
    def check_op(self, op, method, *inputs):
        """opcheck, with gradients of what the result depends on: eager ones are None for the parameters of
        other layers, and compiled ones zeros, for which opcheck knows no allowance."""
        tensors = [p.detach().requires_grad_() for p in method.tensors()]
        out = op(method.name, method.shape, method.options, tensors, *inputs)
        if out.requires_grad and tensors:
            grads = torch.autograd.grad(out.sum(), tensors, allow_unused=True)
            tensors = [t.detach().requires_grad_(g is not None) for t, g in zip(tensors, grads)]
        torch.library.opcheck(op, (method.name, method.shape, method.options, tensors, *inputs))

    def test_opcheck(self):
        x = torch.randn(2, LENGTH, HEADS * HEAD_DIM, dtype=torch.float64, requires_grad=True)
        for name in sextant.methods():
            with self.subTest(name):
                method = make(name)
                self.check_op(torch.ops.sextant.method_attend.default, method, *inputs())
                self.check_op(torch.ops.sextant.method_embed.default, method, x)

    def check_compiled(self, function, tensors):
        """The same result, and the same gradients of its sum of squares."""
        compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
        found = []
        for one in (function, compiled):
            out = one()
            grads = torch.autograd.grad(out.square().sum(), tensors, allow_unused=True)
            found.append([out.detach(), *(torch.zeros(1) if g is None else g for g in grads)])
        for a, b in zip(*found):
            self.assertLess((a - b).abs().max().item(), 1e-12)

    def test_compiles_whole_with_the_same_gradients(self):
        for name in sextant.methods():
            with self.subTest(name):
                torch.compiler.reset()
                method = make(name)
                q, k, v = inputs()
                self.check_compiled(lambda: method(q, k, v), [q, k, v, *method.parameters()])
                x = torch.randn(2, LENGTH, HEADS * HEAD_DIM, dtype=torch.float64, requires_grad=True)
                self.check_compiled(lambda: method.embed(x), [x, *method.parameters()])


if __name__ == "__main__":
    unittest.main()
