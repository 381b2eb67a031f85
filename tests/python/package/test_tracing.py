"""torch.compile and opcheck accept every method."""

import json
import unittest

import torch

import sextant

from made_methods import TOKEN_IDS, inputs, layer_input, make, traced_token_methods


@unittest.skipIf(not hasattr(torch, "compile"), "this torch has no compiler")
class Tracing(unittest.TestCase):
    def check_op(self, op, method, *inputs, **keywords):
        """Runs opcheck with gradients only for tensors on which the result depends. For parameters
        of other layers eager gradients are None and compiled ones zeros, and opcheck has no option
        to allow this."""
        tensors = [p.detach().requires_grad_() for p in method.tensors()]
        out = op(method.name, method.shape, method.options, tensors, *inputs, **keywords)
        if out.requires_grad and tensors:
            grads = torch.autograd.grad(out.sum(), tensors, allow_unused=True)
            tensors = [t.detach().requires_grad_(g is not None) for t, g in zip(tensors, grads)]
        torch.library.opcheck(
            op, (method.name, method.shape, method.options, tensors, *inputs), keywords
        )

    def test_opcheck(self):
        x = layer_input()
        for name in sextant.methods():
            with self.subTest(name):
                method = make(name)
                q, k, v = inputs()
                q = method.queries(q, x).detach().requires_grad_()
                k = method.keys(k, x).detach().requires_grad_()
                self.check_op(torch.ops.sextant.method_attend.default, method, q, k, v)
                self.check_op(torch.ops.sextant.method_embed.default, method, x)
        for method in traced_token_methods():
            with self.subTest(method.options):
                embed = torch.ops.sextant.method_embed.default
                read = json.loads(method.options).get("amplitude") != "word"
                self.check_op(embed, method, x.detach().requires_grad_(read), token_ids=TOKEN_IDS)

    def test_opcheck_of_terms(self):
        q, k, v = inputs()
        for name in ("none", "t5", "shaw", "fox"):
            with self.subTest(name):
                method = make(name)
                # opcheck refuses parameters of other layers, whose eager gradients are None.
                tensors = [p.detach() for p in method.tensors()]
                wide = method.keys(k, layer_input()).detach().requires_grad_()
                terms = {"scale": 0.4, "window": [3, 0],
                         "sink": torch.randn(2, dtype=torch.float64, requires_grad=True),
                         "key_bias": torch.randn(2, 6, dtype=torch.float64, requires_grad=True)}
                torch.library.opcheck(
                    torch.ops.sextant.method_attend_with_lse.default,
                    (method.name, method.shape, method.options, tensors, q, wide, v), terms)

    def check_compiled(self, function, tensors):
        """Checks that the compiled function has the same result, and the same gradients of the sum
        of its squares."""
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
                x = layer_input()
                self.check_compiled(
                    lambda: method(method.queries(q, x), method.keys(k, x), v),
                    [x, q, k, v, *method.parameters()],
                )
                self.check_compiled(lambda: method.embed(x), [x, *method.parameters()])
        for method in traced_token_methods():
            with self.subTest(method.options):
                torch.compiler.reset()
                x = layer_input()
                self.check_compiled(
                    lambda: method.embed(x, token_ids=TOKEN_IDS), [x, *method.parameters()]
                )


if __name__ == "__main__":
    unittest.main()
