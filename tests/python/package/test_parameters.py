"""Initial values, groups for optimizers, and modules that were made without memory."""

import unittest

import torch

import sextant

from made_methods import make, options_of


class Parameters(unittest.TestCase):
    def test_reset_gives_the_initial_values(self):
        for name in sextant.methods():
            sizes = {"heads": 2, "head_dim": 4, "layers": 2, "train_length": 6}
            torch.manual_seed(3)
            method = sextant.method(name, **sizes, **options_of(name))
            torch.manual_seed(3)
            again = sextant.method(name, **sizes, **options_of(name))
            with torch.no_grad():
                for parameter in again.parameters():
                    parameter.fill_(7)
            torch.manual_seed(3)
            again.reset_parameters()
            with self.subTest(name):
                torch.testing.assert_close(again.state_dict(), method.state_dict())

    @unittest.skipUnless(hasattr(torch.nn.Module, "to_empty"), "needs to_empty")
    def test_a_module_on_the_meta_device_gets_its_values_later(self):
        for name in ("t5", "fire", "transformer-xl", "kerple-log", "alibi"):
            options = {"train": "one"} if name == "alibi" else {}
            torch.manual_seed(3)
            made = sextant.method(name, heads=2, head_dim=4, **options)
            meta = sextant.method(name, heads=2, head_dim=4, **options).to("meta")
            self.assertTrue(all(p.is_meta for p in meta.parameters()))
            meta.reset_parameters()  # does nothing there
            meta.to_empty(device="cpu")
            torch.manual_seed(3)
            meta.reset_parameters()
            with self.subTest(name):
                torch.testing.assert_close(meta.state_dict(), made.state_dict())

    @unittest.skipUnless(hasattr(torch, "compiler"), "needs torch.device as a context")
    def test_a_module_is_made_on_the_meta_device(self):
        with torch.device("meta"):
            method = sextant.method("t5", heads=2, head_dim=4)
        self.assertTrue(method.relative_attention_bias_weight.is_meta)

    def test_groups_have_the_rates_of_their_parameters(self):
        t5 = make("t5")
        self.assertEqual(t5.parameter_groups(0.01, weight_decay=0.1),
                         [{"params": t5.tensors(), "lr": 0.1, "weight_decay": 0.0}])
        deberta = make("deberta")
        groups = deberta.parameter_groups(0.01, weight_decay=0.1)
        self.assertEqual({(g["lr"], g["weight_decay"]) for g in groups}, {(0.01, 0.0), (0.01, 0.1)})
        self.assertEqual(sum(len(g["params"]) for g in groups), len(deberta.tensors()))
        torch.optim.AdamW(groups).step()
        self.assertEqual(make("rope").parameter_groups(0.01), [])


if __name__ == "__main__":
    unittest.main()
