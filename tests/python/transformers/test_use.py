"""sextant.transformers in use: stretches, caches, dropout, refusals."""

import copy
import pickle
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "python"))

import torch  # noqa: E402
import transformers  # noqa: E402

from cases import SHAPES, padding  # noqa: E402
from tiny import MODELS, build, inputs_of, result, tokens  # noqa: E402

import sextant  # noqa: E402
import sextant.transformers as ours  # noqa: E402


def ours_version():
    return int(transformers.__version__.split(".")[0])


ROTARY = ("llama", "mistral", "qwen3", "phi3", "gemma3_text", "cohere2", "glm", "gpt_neox",
          "gpt_oss", "smollm3", "olmo2", "llama4_text")
# Models whose attention asks transformers' interface from version 5 on.
SINCE_5 = ("stablelm", "bert")


def served(*names):
    """Those of `names` that this version of transformers lets us serve."""
    return [name for name in names if ours_version() >= 5 or name not in SINCE_5]


@torch.no_grad()
def logits(name, model, **more):
    return result(model, **inputs_of(name, tokens(), **more))


class Stretch(unittest.TestCase):
    def assert_close(self, a, b, tolerance=3e-5):
        self.assertLess((a - b).abs().max().item(), tolerance * max(a.abs().max().item(), 1))

    def test_the_models_own_positions(self):
        for name in served(*ROTARY, "stablelm"):
            with self.subTest(name):
                model = build(name)
                expected = logits(name, model)
                kept = logits(name, ours.stretch(model, "rope", layers=[]))
                self.assert_close(kept, expected, 2e-3)  # transformers' phases are float32
                ours.restore(model)
                self.assertTrue(torch.equal(logits(name, model), expected))
                self.assertFalse(hasattr(model.config, "sextant"))

    def test_a_stretch_is_that_of_the_configuration(self):
        yarn = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}
        model = build("llama")
        ours.stretch(model, "rope", stretch=yarn)
        config = copy.deepcopy(model.config)
        del config.sextant
        if ours_version() >= 5:
            config.rope_parameters = {**yarn, "rope_theta": 10000.0}
        else:
            config.rope_scaling = yarn
        config._attn_implementation = "eager"
        other = transformers.AutoModelForCausalLM.from_config(config).eval()
        other.load_state_dict(model.state_dict())
        self.assert_close(logits("llama", model), logits("llama", other), 2e-3)

    def test_methods_differ_from_the_model_and_over_its_cache_agree(self):
        model = build("llama")
        plain = logits("llama", model)
        for method, options in (("rerope", {"window": 8}), ("leaky-rerope", {"window": 8}),
                                ("self-extend", {"window": 8, "group": 4}),
                                ("streaming", {"recent": 8, "sinks": 2}),
                                ("rope", {"stretch": "yarn*4"}), ("alibi", {}), ("none", {})):
            with self.subTest(method):
                ours.stretch(model, method, **options)
                whole = logits("llama", model)
                self.assertGreater((whole - plain).abs().max().item(), 0.01)
                with torch.no_grad():
                    first = model(tokens()[:, :30], use_cache=True)
                    rest = model(tokens()[:, 30:], past_key_values=first.past_key_values)
                self.assert_close(torch.cat([first.logits, rest.logits], 1), whole)

    @torch.no_grad()
    def test_batches_of_unequal_length(self):
        model = build("llama")
        for method, options in (("self-extend", {"window": 8, "group": 4}),
                                ("rope", {"query_scale": {"law": "logn", "length": 16}})):
            with self.subTest(method):
                try:
                    ours.stretch(model, method, **options)
                except ours.ModelError as error:
                    self.skipTest(str(error))
                mask = torch.ones_like(tokens())
                mask[0, :9] = 0
                padded = model(tokens(), attention_mask=mask).logits
                alone = model(tokens()[:1, 9:]).logits
                self.assert_close(padded[:1, 9:], alone)

    @torch.no_grad()
    def test_equal_sizes(self):
        """As many entries as tokens, as heads, one entry, one token; padded where there is room."""
        own = build("llama")
        stretched = ours.stretch(copy.deepcopy(own), "rope")
        for shape in SHAPES:
            with self.subTest(shape):
                mask = padding(*shape, "left") if shape[1] > 1 else torch.ones(shape)
                given = dict(input_ids=tokens(*shape), attention_mask=mask)
                keep = mask.bool()
                self.assert_close(result(stretched, **given)[keep], result(own, **given)[keep],
                                  2e-3)  # transformers' phases are float32

    @torch.no_grad()
    def test_generate(self):
        model = ours.stretch(build("mistral"), "rerope", window=8, layers=None)
        ids = tokens(2, 20)
        for more in ({}, {"cache_implementation": "static"}, {"num_beams": 3}):
            with self.subTest(**more):
                given = dict(max_new_tokens=8, do_sample=False, pad_token_id=0, **more)
                cached = model.generate(ids, use_cache=True, **given)
                if "cache_implementation" in more:
                    given.pop("cache_implementation")
                self.assertTrue(torch.equal(cached, model.generate(ids, use_cache=False, **given)))

    def test_layers_with_windows_keep_their_positions(self):
        model = ours.stretch(build("gemma3_text"), "rope", stretch="linear*4")
        kinds = model.config.layer_types
        for module in model.modules():
            if hasattr(module, "_sextant_method"):
                self.assertEqual("stretch" in module._sextant_method[1],
                                 kinds[module.layer_idx] == "full_attention")
        with self.assertRaisesRegex(ours.ModelError, "layers: expected some of full_attention, sl"):
            ours.stretch(model, "rope", layers=["others"])

    def test_a_saved_stretch(self):
        model = ours.stretch(build("llama"), "rerope", window=8)
        with tempfile.TemporaryDirectory() as folder:
            model.save_pretrained(folder)
            again = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
            ours.stretch(again)
            self.assert_close(logits("llama", again), logits("llama", model))
        with self.assertRaisesRegex(ours.ModelError, "as config.json has no \"sextant\""):
            ours.stretch(build("llama"))

    def test_refused_models_are_unchanged(self):
        for name, reason in (("gpt2", "rotary positions|not known|layer_idx|rotary module"),
                             ("falcon", "asks transformers' attention interface")):
            with self.subTest(name):
                model = build(name)
                expected = logits(name, model)
                with self.assertRaisesRegex(ours.ModelError, reason):
                    ours.stretch(model, "rope", stretch="yarn*4")
                self.assertFalse(any(hasattr(m, "_sextant_method") for m in model.modules()))
                ours.restore(model)
                self.assertTrue(torch.equal(logits(name, model), expected))
        with self.assertRaisesRegex(ours.ModelError, "method: expected one of .*, but got 'ropes'"):
            ours.stretch(build("llama"), "ropes")
        with self.assertRaisesRegex(ours.ModelError, "windw: expected one of the options of rer"):
            ours.stretch(build("llama"), "rerope", windw=3)
        for wrong in ("yarn*0", "yarn", "yern*4"):
            with self.subTest(wrong), self.assertRaisesRegex(
                    ours.ModelError, "^rope: stretch: .*expected"):
                ours.stretch(build("llama"), "rope", stretch=wrong)

    def test_positions_that_are_not_consecutive_are_refused(self):
        model = ours.stretch(build("llama"), "rope")
        ids = tokens(1)
        for positions in (3 * torch.arange(48), torch.arange(48).flip(0)):
            with self.assertRaisesRegex(ours.ModelError, "position_ids: expected consecutive"):
                model(ids, position_ids=positions[None])
        packed = torch.cat([torch.arange(20), torch.arange(28)])[None]
        with self.assertRaisesRegex(ours.ModelError, "position_ids: .* but they begin again"):
            model(ids, position_ids=packed, attention_mask=torch.ones_like(ids))
        with torch.no_grad():
            whole = model(ids, position_ids=packed, use_cache=False).logits
            self.assert_close(whole[:, 20:], model(ids[:, 20:]).logits)

    def test_doctor_examines_the_own_positions(self):
        model = build("llama")
        self.assertEqual(sextant.doctor(ours.accelerate(model)).verdict, "sound")
        ours.stretch(model, "rerope", window=8)
        expected = logits("llama", model)
        report = sextant.doctor(model)
        self.assertEqual(report.verdict, "sound")
        self.assertIn("stretched by sextant.transformers (rerope", str(report))
        self.assertTrue(torch.equal(logits("llama", model), expected))

    def test_a_refused_stretch_keeps_the_one_before(self):
        model = build("llama")
        with self.assertRaises(ours.ModelError):
            ours.stretch(model, "rerope", windw=8)
        self.assertEqual(model.config._attn_implementation, "eager")
        ours.stretch(model, "rerope", window=8)
        expected, noted = logits("llama", model), dict(model.config.sextant)
        for method, options in (("rope", {"windw": 1}), ("t5", {}), ("clock", {})):
            with self.assertRaises(ours.ModelError):
                ours.stretch(model, method, **options)
        self.assertTrue(torch.equal(logits("llama", model), expected))
        self.assertEqual(model.config.sextant, noted)
        ours.stretch(model, "rope")
        ours.restore(model)
        self.assertFalse(hasattr(model.config, "sextant"))

    def test_parts_are_restored(self):
        model = build("llama")
        expected = logits("llama", model)
        ours.stretch(model.model, "rerope", window=8)
        ours.stretch(model, "self-extend", window=8, group=4)
        ours.restore(model)
        self.assertTrue(torch.equal(logits("llama", model), expected))
        self.assertEqual(model.config._attn_implementation, "eager")

    def test_a_models_own_stretch_is_kept(self):
        yarn = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}
        config = copy.deepcopy(build("llama").config)
        if ours_version() >= 5:
            config.rope_parameters = {**yarn, "rope_theta": 10000.0}
        else:
            config.rope_scaling = yarn
        model = transformers.AutoModelForCausalLM.from_config(config).eval()
        expected = logits("llama", model)
        self.assert_close(logits("llama", ours.stretch(model, "rope")), expected, 2e-3)

    def test_other_frequencies_than_the_configurations_are_refused(self):
        model = build("llama")
        for module in model.modules():
            if hasattr(module, "inv_freq"):
                module.inv_freq *= 1.01
        with self.assertRaisesRegex(ours.ModelError, "does something to positions"):
            ours.stretch(model, "rope")


class Use(unittest.TestCase):
    def test_the_name_in_from_config(self):
        model = build("llama")
        config = copy.deepcopy(model.config)
        named = transformers.AutoModelForCausalLM.from_config(
            config, attn_implementation=ours.interface.NAME).eval()
        named.load_state_dict(model.state_dict())
        difference = (logits("llama", named) - logits("llama", model)).abs().max().item()
        self.assertLess(difference, 1e-4)

    def test_names_that_would_have_no_effect_are_refused(self):
        for name in ("bloom", "mpt", "falcon", "mpnet", "deberta-v2"):
            with self.subTest(name):
                model = build(name)
                with self.assertRaisesRegex(ours.ModelError, "asks transformers' attention inter"):
                    model.set_attn_implementation("sextant")
                with self.assertRaisesRegex(ours.ModelError, "asks transformers' attention inter"):
                    type(model)._from_config(model.config, attn_implementation="sextant")

    def test_models_before_transformers_5_are_refused(self):
        for name in SINCE_5 if ours_version() < 5 else ():
            with self.subTest(name), self.assertRaisesRegex(
                    ours.ModelError, "asks transformers' attention interface"):
                ours.accelerate(build(name))

    def test_weights_are_refused(self):
        for name in served("llama", "bert", "t5", "deberta-v2"):
            with self.subTest(name), self.assertRaisesRegex(ours.ModelError, "output_attentions"):
                model = ours.accelerate(build(name))
                logits(name, model, output_attentions=True)

    def test_unknown_arguments_are_refused(self):
        model = ours.accelerate(build("llama"))
        with self.assertRaisesRegex(ours.ModelError, "indices: expected None"):
            logits("llama", model, indices=torch.zeros(1))

    def test_dropout(self):
        model = build("llama")
        for module in model.modules():
            if hasattr(module, "attention_dropout"):
                module.attention_dropout = 0.5
        ours.accelerate(model)
        kept = logits("llama", model)
        model.train()
        torch.manual_seed(0)
        one, other = logits("llama", model), logits("llama", model)
        self.assertGreater((one - other).abs().max().item(), 0.01)
        torch.manual_seed(0)
        self.assertTrue(torch.equal(logits("llama", model), one))
        model.eval()
        self.assertTrue(torch.equal(logits("llama", model), kept))

    def test_a_bias_by_query_and_key_is_refused(self):
        if ours_version() < 5:
            self.skipTest("T5 does not ask the interface")
        model = build("t5")
        model.set_attn_implementation("sextant")
        with self.assertRaisesRegex(ours.ModelError, "position_bias: .*accelerate"):
            logits("t5", model)

    def test_t5_makes_no_bias_of_queries_and_keys(self):
        if ours_version() < 5:
            self.skipTest("T5 does not ask the interface")
        model = ours.accelerate(build("t5"))
        sizes = []
        hooks = [module.register_forward_hook(lambda m, i, o: sizes.append(o[1].numel()))
                 for module in model.modules() if hasattr(module, "compute_bias")]
        logits("t5", model)
        self.assertEqual(len(hooks), 9)
        self.assertLessEqual(max(sizes), 8 * 4)

    def test_another_implementation_needs_restore(self):
        for name in ("llama", "t5") if ours_version() >= 5 else ("llama",):
            model = ours.accelerate(build(name))
            with self.assertRaisesRegex(ours.ModelError, "restore.model. undoes both"):
                model.set_attn_implementation("eager")
            ours.restore(model).set_attn_implementation("eager")

    def test_copies_are_models_of_their_own(self):
        for name in ("llama", "deberta-v2", *(("t5",) if ours_version() >= 5 else ())):
            with self.subTest(name):
                model = ours.accelerate(build(name))
                if name == "llama":
                    ours.stretch(model, "rerope", window=8)
                expected = logits(name, model)
                again = pickle.loads(pickle.dumps(model))
                other = copy.deepcopy(model)
                with torch.no_grad():
                    for parameter in model.parameters():
                        parameter.zero_()
                for one in (other, again):
                    self.assertTrue(torch.equal(logits(name, one), expected))
                ours.restore(other)
                self.assertEqual(other.config._attn_implementation, "eager")
                self.assertFalse(any("forward" in m.__dict__ for m in other.modules()))

    def test_masks_are_not_computed_with(self):
        model = ours.accelerate(build("llama"))
        attention = model.model.layers[0].self_attn
        own = type(attention).forward
        attention.forward = lambda *given, attention_mask=None, **named: own(
            attention, *given, attention_mask=attention_mask * 2, **named)
        with self.assertRaisesRegex(ours.ModelError, "hands its mask on .* computes with it"):
            logits("llama", model)
        del attention.forward
        mask = torch.ones(4, 4).tril().long()[None, None]
        with self.assertRaises(RuntimeError):
            model(tokens(1, 4), attention_mask=mask)

    def test_checkpointing(self):
        for name in ("llama", *(("t5",) if ours_version() >= 5 else ())):
            for reentrant in (False, True):
                with self.subTest(name, reentrant=reentrant):
                    gradients = []
                    for change in (lambda m: m, ours.accelerate):
                        model = change(build(name)).train()
                        model.gradient_checkpointing_enable({"use_reentrant": reentrant})
                        result(model, **inputs_of(name, tokens())).square().mean().backward()
                        gradients.append([p.grad for p in model.parameters()])
                    for a, b in zip(*gradients):
                        self.assertLess((a - b).abs().max().item(), 1e-4)

    def test_models_that_are_none(self):
        with self.assertRaisesRegex(ours.ModelError, "model: expected a transformers.PreTrained"):
            ours.accelerate(torch.nn.Linear(2, 2))

    def test_all_models_are_named(self):
        self.assertGreaterEqual(len(MODELS), 30)


if __name__ == "__main__":
    unittest.main()
