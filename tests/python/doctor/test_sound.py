"""Sound models have no findings, and doctor leaves them as they were."""

import unittest
import weakref

import tiny_models
import torch

import sextant.doctor


class Sound(unittest.TestCase):
    """Models of transformers as they are."""

    def test_default_models_are_sound(self):
        for name in tiny_models.MODELS:
            with self.subTest(name):
                report = sextant.doctor.doctor(tiny_models.build(name))
                self.assertEqual(report.findings, [])
                self.assertEqual(report.unjudged, [])
                self.assertEqual(report.exit_status, 0)
                self.assertTrue(report.rows)

    def test_a_model_in_bfloat16_with_float32_frequencies_is_sound(self):
        model = tiny_models.build("llama-yarn")
        kept = {n: b.clone() for n, b in model.named_buffers()}
        model.bfloat16()
        for name, buffer in kept.items():
            owner, _, last = name.rpartition(".")
            model.get_submodule(owner)._buffers[last] = buffer
        report = sextant.doctor.doctor(model)
        self.assertEqual((report.findings, report.unjudged), ([], []))

    def test_the_model_can_be_freed(self):
        model = tiny_models.build("llama")
        kept = weakref.ref(model.layers[0].self_attn.q_proj.weight)
        sextant.doctor.doctor(model)
        del model
        self.assertIsNone(kept())

    def test_only_models_of_transformers_are_accepted(self):
        with self.assertRaisesRegex(TypeError, "expected a PreTrainedModel .* but got Linear"):
            sextant.doctor.doctor(torch.nn.Linear(2, 2))

    def test_the_model_is_left_as_it_was(self):
        model = tiny_models.build("llama-3").bfloat16()
        model.train()
        model.layers[0].eval()
        before = {n: (t, t.clone(), t.dtype) for n, t in
                  [*model.named_parameters(), *model.named_buffers()]}
        used = model.config._attn_implementation
        sextant.doctor.doctor(model)
        for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
            same, values, dtype = before[name]
            self.assertIs(tensor, same, name)
            self.assertEqual(tensor.dtype, dtype)
            self.assertTrue(torch.equal(tensor, values), name)
        self.assertEqual(model.config._attn_implementation, used)
        self.assertTrue(model.training)
        self.assertFalse(model.layers[0].training)
        for module in model.modules():
            self.assertFalse(module._forward_hooks)
            self.assertFalse(module._forward_pre_hooks)

    def test_the_package_can_be_called(self):
        self.assertEqual(sextant.doctor(tiny_models.build("llama")).verdict, "sound")
        with self.assertRaisesRegex(TypeError, "expected a PreTrainedModel of .*, but got int"):
            sextant.doctor(3)


if __name__ == "__main__":
    unittest.main()
