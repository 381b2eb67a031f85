"""Transforms of torch.func: they agree with autograd and with loops."""

import unittest

import torch

import sextant

from made_methods import TOKEN_IDS, inputs, layer_input, make

HAS_FUNC = hasattr(torch, "func") and hasattr(torch._C, "_are_functorch_transforms_active")


@unittest.skipUnless(HAS_FUNC, "torch.func needs torch 2.1")
class Transforms(unittest.TestCase):
    def test_grad_agrees_with_autograd(self):
        for name in sextant.methods():
            method = make(name)
            q, k, v = inputs()
            q = method.queries(q, layer_input()).detach().requires_grad_()
            k = method.keys(k, layer_input()).detach().requires_grad_()

            def loss(q, k, v):
                out, lse = method(q, k, v, return_lse=True)
                return out.square().sum() + lse.sin().sum()

            with self.subTest(name):
                expected = torch.autograd.grad(loss(q, k, v), (q, k, v))
                got = torch.func.grad(loss, argnums=(0, 1, 2))(q, k, v)
                torch.testing.assert_close(got, expected)

    def test_vmap_agrees_with_a_loop(self):
        q, k, v = (x.detach() for x in inputs())
        many = torch.stack([q, 2 * q, 3 * q])
        for name in ("none", "t5", "shaw", "floater"):
            method = make(name)
            with self.subTest(name):
                got = torch.func.vmap(lambda q: method(q, k, v))(many)
                torch.testing.assert_close(got, torch.stack([method(x, k, v) for x in many]))
        shown = torch.rand(6) < 0.8
        masked = torch.func.vmap(lambda q: sextant.attention(q, k, v, mask=shown, causal=False))
        torch.testing.assert_close(
            masked(many),
            torch.stack([sextant.attention(x, k, v, mask=shown, causal=False) for x in many]))

    def test_gradients_of_each_sample(self):
        for name in sextant.methods():
            method = make(name)
            parameters = dict(method.named_parameters())
            q, k, v = (x.detach() for x in inputs())
            q = method.queries(q, layer_input()).detach()
            k = method.keys(k, layer_input()).detach()

            def loss(parameters, q, k, v):
                batch = q[None], k[None], v[None]
                return torch.func.functional_call(method, parameters, batch).square().sum()

            with self.subTest(name):
                each = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0, 0))
                got = each(parameters, q, k, v)
                for n in range(q.size(0)):
                    expected = torch.func.grad(loss)(parameters, q[n], k[n], v[n])
                    for key in parameters:
                        torch.testing.assert_close(got[key][n], expected[key])

    def test_embeddings_too(self):
        for name in ("learned", "recursive", "binary", "complex"):
            method = make(name)
            x = layer_input()
            with self.subTest(name):
                expected, = torch.autograd.grad(method.embed(x).square().sum(), x)
                got = torch.func.grad(lambda x: method.embed(x).square().sum())(x)
                torch.testing.assert_close(got, expected)
                many = torch.stack([x.detach(), 2 * x.detach()])
                torch.testing.assert_close(torch.func.vmap(method.embed)(many),
                                           torch.stack([method.embed(x) for x in many]))
        method = make("complex", phase="word", vocabulary=5)
        x = layer_input().detach()
        got = torch.func.vmap(lambda x: method.embed(x, token_ids=TOKEN_IDS))(x[None])
        torch.testing.assert_close(got[0], method.embed(x, token_ids=TOKEN_IDS))

    def test_second_derivatives_are_refused(self):
        q, k, v = (x.detach() for x in inputs())
        gradient = torch.func.grad(lambda q: sextant.attention(q, k, v).square().sum())
        with self.assertRaisesRegex(RuntimeError, "first derivatives only"):
            torch.func.grad(lambda q: gradient(q).sum())(q)

    def test_operators_refuse_wrapped_tensors(self):
        q, k, v = (x.detach() for x in inputs())
        shape = [1, 2, 2, 4, 8, 6]
        with self.assertRaisesRegex(RuntimeError, "without transforms of torch.func"):
            torch.func.grad(lambda q: torch.ops.sextant.method_attend(
                "none", shape, "{}", [], q, k, v).sum())(q)


if __name__ == "__main__":
    unittest.main()
