"""Every method: its gradients agree with finite differences, and its float32 with float64."""

import unittest

import torch

import sextant

from made_methods import TOKEN_IDS, inputs, layer_input, make, token_methods


def call(method, x, q, k, v, parameters):
    """Attention of layer 1, with the columns that the method adds to keys."""
    identity = method.name, method.shape, method.options, list(parameters)
    k = torch.cat((k, torch.ops.sextant.method_key_columns(*identity, x, layer=1)), 3)
    q = torch.cat((q, torch.ops.sextant.method_query_columns(*identity, x, layer=1)), 3)
    return torch.ops.sextant.method_attend(*identity, q, k, v, layer=1)


class EveryMethod(unittest.TestCase):
    def test_gradients_agree_with_finite_differences(self):
        for name in sextant.methods():
            with self.subTest(name):
                method = make(name)
                parameters = [p.detach().requires_grad_() for p in method.tensors()]
                x = layer_input()
                self.check(lambda *t: call(method, *t[:4], t[4:]), [x, *inputs(), *parameters])
                for last in (False, True):
                    self.check(
                        lambda x, *p: torch.ops.sextant.method_embed(
                            method.name, method.shape, method.options, list(p), x, last=last
                        ),
                        [x, *parameters],
                    )

    def test_gradients_of_tables_by_word(self):
        for method in token_methods():
            with self.subTest(method.options):
                parameters = [p.detach().requires_grad_() for p in method.tensors()]
                self.check(
                    lambda x, *p: torch.ops.sextant.method_embed(
                        method.name, method.shape, method.options, list(p), x, token_ids=TOKEN_IDS
                    ),
                    [layer_input(), *parameters],
                )

    def test_words_that_nobody_reads_are_an_error(self):
        with self.assertRaisesRegex(RuntimeError, "token_ids: expected none"):
            make("learned").embed(layer_input(), token_ids=TOKEN_IDS)
        with self.assertRaisesRegex(RuntimeError, r"token_ids: expected int64 \[2, 6\]"):
            make("complex", phase="word", vocabulary=5).embed(layer_input())

    def test_a_parameter_says_whose_projection_it_is(self):
        specs = {s["name"]: s.get("same_as") for s in make("deberta", version=3).specs}
        self.assertEqual(specs["layer.1.attention.self.query_proj.bias"],
                         {"of": "query", "layer": 1, "bias": True})
        self.assertEqual(specs["layer.0.attention.self.key_proj.weight"],
                         {"of": "key", "layer": 0, "bias": False})
        self.assertIsNone(specs["rel_embeddings.weight"])

    def check(self, function, tensors):
        # Central differences with a step of 1e-5 have an error of about 1e-10.
        torch.autograd.gradcheck(function, tensors, eps=1e-5, atol=1e-7, rtol=1e-7)

    def test_float32_agrees_with_float64(self):
        for name in sextant.methods():
            with self.subTest(name):
                method = make(name)
                q, k, v = inputs()
                q = method.queries(q, layer_input())
                k = method.keys(k, layer_input())
                out = method(q, k, v)
                single = method.float()(q.float(), k.float(), v.float())
                self.assertLess((out - single).abs().max().item(), 2e-5)

    def test_queries_may_come_in_parts(self):
        for name in sextant.methods():
            with self.subTest(name):
                method = make(name)
                q, k, v = inputs()
                q = method.queries(q, layer_input())
                k = method.keys(k, layer_input())
                whole = method(q, k, v)
                last = method(q[:, :, 4:], k, v)
                self.assertLess((whole[:, :, 4:] - last).abs().max().item(), 1e-12)


if __name__ == "__main__":
    unittest.main()
