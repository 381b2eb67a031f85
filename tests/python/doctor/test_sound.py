"""Sound models have no findings, and doctor leaves them as they were."""

import io
import logging
import unittest
import weakref

import tiny_models
import torch
import transformers

import sextant.doctor


def functions():
    return transformers.AttentionInterface._global_mapping


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
        two = torch.nn.ModuleDict({name: tiny_models.build("llama") for name in "ab"})
        with self.assertRaisesRegex(TypeError, "one inside, but got ModuleDict with a, b"):
            sextant.doctor.doctor(two)

    def test_a_model_inside_a_module_is_judged(self):
        class Wrapped(torch.nn.Module):
            """As PeftModel has it."""

            def __init__(self, model):
                super().__init__()
                self.base_model = torch.nn.ModuleDict({"model": model})
        report = sextant.doctor.doctor(Wrapped(tiny_models.build("llama")))
        self.assertEqual((report.subject, report.verdict), ("LlamaModel", "sound"))

    def test_the_report_names_what_was_measured(self):
        report = sextant.doctor.doctor(tiny_models.build("gemma2"))
        facts = {fact.fact: fact.status for fact in report.facts}
        self.assertEqual(set(facts.values()), {"as configured"})
        self.assertLessEqual({"rotation", "positions", "scale", "window", "mask", "padding",
                              "cache", "key heads", "softcap"}, set(facts))
        self.assertRegex(" ".join(str(report).split()), r"verdict: sound \(rotation, .* softcap: "
                         r"as configured\)$")

    def test_what_was_not_measured_is_named(self):
        model = tiny_models.build("llama")
        original = functions().pop("sdpa")
        functions()["unknown"] = original
        model.config._attn_implementation_internal = "unseen"
        try:
            report = sextant.doctor.doctor(model)
        finally:
            functions()["sdpa"] = functions().pop("unknown")
        self.assertEqual(report.verdict, "sound")
        missing = {fact.fact: fact.why for fact in report.facts if fact.status == "not measured"}
        self.assertLessEqual({"mask", "key heads", "softcap"}, set(missing))
        self.assertIn("unseen is not found", missing["mask"])
        self.assertIn("softcap: not measured)", " ".join(str(report).split()))

    def test_encoders_and_decoders_are_judged_by_themselves(self):
        config = transformers.AutoConfig.for_model(
            "bart", d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
            decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, vocab_size=512)
        model = tiny_models.subject.build(config, False)
        report = sextant.doctor.doctor(model)
        self.assertEqual(report.verdict, "cannot be judged")
        self.assertEqual(report.unjudged[0].why, "BartModel has an encoder and a decoder, and "
                         "doctor judges one stack of layers: give it model.get_encoder() or "
                         "model.get_decoder()")
        for part in (model.get_encoder(), model.get_decoder()):
            report = sextant.doctor.doctor(part)
            self.assertEqual(report.findings, [])
            self.assertIn(("mask", "as configured"), [(f.fact, f.status) for f in report.facts])

    def test_transformers_says_nothing(self):
        transformers.logging.set_verbosity_warning()
        err = io.StringIO()
        handler = logging.StreamHandler(err)
        logging.getLogger("transformers").addHandler(handler)
        try:
            model = transformers.AutoModelForCausalLM.from_config(tiny_models.config_of("llama"))
            err.truncate(0)
            err.seek(0)
            sextant.doctor.doctor(model)
            self.assertEqual(transformers.logging.get_verbosity(), logging.WARNING)
        finally:
            transformers.logging.set_verbosity_error()
            logging.getLogger("transformers").removeHandler(handler)
        self.assertEqual(err.getvalue(), "")

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
