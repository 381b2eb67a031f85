"""What accelerate() accepts, says and leaves, and arguments of the attention interface."""

import ast
import contextlib
import io
import pathlib
import sys
import unittest
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "python"))

import torch  # noqa: E402
import transformers  # noqa: E402

import swept  # noqa: E402
from tiny import LENGTH, VERSION, build, inputs_of, result, tokens  # noqa: E402

import sextant.transformers as ours  # noqa: E402
from sextant.transformers import interface, trial  # noqa: E402

# Arguments that models hand to the interface and that Sextant refuses by name: sparse attention,
# and a factor for each head before transformers 5.
REFUSED = {"block_indices", "head_mask", "indices", "sinks"}


def names_of_models():
    """The names of all arguments with which transformers' models call the interface."""
    found = set()
    folder = pathlib.Path(transformers.__file__).parent / "models"
    for path in sorted(folder.glob("*/modeling_*.py")):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "attention_interface":
                found |= {keyword.arg for keyword in call.keywords if keyword.arg}
    return found


class Arguments(unittest.TestCase):
    def test_every_argument_of_the_interface_is_known(self):
        found = names_of_models()
        self.assertGreater(len(found), 10)
        typed = set()
        for name in ("TransformersKwargs", "FlashAttentionKwargs"):
            for module in (transformers.utils, transformers.utils.generic,
                           transformers.modeling_flash_attention_utils):
                typed |= set(getattr(getattr(module, name, None), "__annotations__", ()))
        self.assertIn("cu_seq_lens_q", typed)
        self.assertEqual((found | typed) - interface.KNOWN - REFUSED, set())
        self.assertEqual(REFUSED & interface.KNOWN, set())

    @torch.no_grad()
    def test_refused_arguments_are_named(self):
        model = ours.accelerate(build("llama"))
        for name in REFUSED:
            with self.assertRaisesRegex(ours.ModelError, f"{name}: expected None"):
                result(model, input_ids=tokens(), **{name: torch.zeros(1)})

    @torch.no_grad()
    def test_cumulative_lengths_separate_sequences(self):
        """With position_ids, without, and beside a stretch; windows too."""
        sums = torch.tensor([0, 15, 40], dtype=torch.int32)
        given = dict(cu_seq_lens_q=sums, cu_seq_lens_k=sums, max_length_q=25, max_length_k=25)
        ids = tokens(1, 40)
        positions = torch.cat([torch.arange(15), torch.arange(25)])[None]
        for name, change in (("llama", ours.accelerate), ("mistral", ours.accelerate),
                             ("gemma3_text", ours.accelerate),
                             ("llama", lambda m: ours.stretch(m, "rerope", window=8))):
            model = change(build(name))
            apart = torch.cat([result(model, input_ids=part) for part in
                               (ids[:, :15], ids[:, 15:])], 1)
            for more in ({}, {"position_ids": positions}, {"use_cache": False},
                         {"use_cache": False, "position_ids": positions}):
                with self.subTest(name, **more):
                    if more.keys() == {"position_ids"} and change is not ours.accelerate:
                        continue
                    packed = result(model, input_ids=ids, **given, **more)
                    self.assertLess((packed - apart).abs().max().item(), 1e-4)

    @unittest.skipIf(VERSION < 5, "BERT does not ask the interface")
    @torch.no_grad()
    def test_cumulative_lengths_of_encoders(self):
        sums = torch.tensor([0, 15, 40], dtype=torch.int32)
        ids = tokens(1, 40)
        for name in ("bert", "modernbert"):
            model = ours.accelerate(build(name))
            positions = torch.cat([torch.arange(15), torch.arange(25)])[None]
            if name == "bert":
                self.assertLess(self._apart(model, ids, sums, position_ids=positions), 1e-4)
            else:
                self.assertLess(self._apart(model, ids, sums), 1e-4)

    def _apart(self, model, ids, sums, **more):
        apart = torch.cat([result(model, input_ids=part) for part in (ids[:, :15], ids[:, 15:])], 1)
        packed = result(model, input_ids=ids, cu_seq_lens_q=sums, cu_seq_lens_k=sums, **more)
        return (packed - apart).abs().max().item()

    @torch.no_grad()
    def test_cumulative_lengths_that_do_not_fit(self):
        model = ours.accelerate(build("llama"))
        for sums, more in (([0, 15, 39], {}), ([0, 20, 10, 40], {}), ([3, 40], {})):
            with self.assertRaisesRegex(ours.ModelError, "cu_seq_lens_q, cu_seq_lens_k: expected"):
                sums = torch.tensor(sums, dtype=torch.int32)
                result(model, input_ids=tokens(1, 40), cu_seq_lens_q=sums, cu_seq_lens_k=sums)
        with self.assertRaisesRegex(ours.ModelError, "a batch of 1"):
            sums = torch.tensor([0, 15, 40], dtype=torch.int32)
            mask = torch.ones(2, 40, dtype=torch.long)
            mask[0, :5] = 0
            result(model, input_ids=tokens(2, 40), cu_seq_lens_q=sums, cu_seq_lens_k=sums,
                   attention_mask=mask)


class Acceptance(unittest.TestCase):
    def test_models_that_fail_by_sextant_are_refused_at_once(self):
        """They are the same afterwards, and the sentence does not ask for accelerate()."""
        for kind in ("git", "doge", "parakeet_encoder", "wav2vec2-bert", "layoutlmv3"):
            if kind not in swept.MODEL_MAPPING_NAMES:
                continue
            with self.subTest(kind):
                try:
                    model, inputs = swept.build(kind)
                except ValueError as error:
                    self.skipTest(str(error))
                with torch.no_grad():
                    before = swept.first_tensor(model(**inputs))
                try:
                    ours.accelerate(model)
                except ours.ModelError:
                    pass
                with torch.no_grad():
                    after = swept.first_tensor(model(**inputs))
                self.assertLess((before - after).abs().max().item(), 1e-4)

    def test_inputs_of_ones_own(self):
        model = build("llama")
        with self.assertRaisesRegex(ours.ModelError, "inputs: expected arguments that LlamaFor"):
            ours.accelerate(model, inputs={"input_ids": torch.full((1, 4), 10**6)})
        with self.assertRaisesRegex(ours.ModelError, "on trial it raises output_attentions"):
            ours.accelerate(model, inputs={"input_ids": tokens(), "output_attentions": True})
        self.assertEqual(model.config._attn_implementation, "eager")
        ours.accelerate(model, inputs={"input_ids": tokens()})

    def test_a_model_that_cannot_run_is_judged_by_its_code(self):
        with torch.device("meta"):
            model = type(build("llama"))(build("llama").config)
        ours.accelerate(model)
        self.assertEqual(model.config._attn_implementation, "sextant")
        own = build("llama")
        modules = {"attention": own.model.layers[0].self_attn}
        trial.refuse_unknown(own, modules)
        kind = type(own.model.layers[0].self_attn)

        class Other(kind):
            def forward(self, hidden_states, attention_mask=None):
                attention_interface = None
                attention_mask = attention_mask * 2
                return attention_interface(self, 1, 2, 3, attention_mask)
        own.model.layers[0].self_attn.__class__ = Other
        with self.assertRaisesRegex(ours.ModelError, "does not hand its mask on as it is"):
            trial.refuse_unknown(own, modules)

    def test_a_trial_leaves_no_trace(self):
        model = build("llama").train()
        torch.manual_seed(3)
        expected = torch.rand(1)
        torch.manual_seed(3)
        ours.accelerate(model)
        self.assertTrue(torch.equal(torch.rand(1), expected))
        self.assertTrue(all(module.training for module in model.modules()))

    def test_served_layers(self):
        model = build("llama")
        self.assertEqual([layer.by for layer in ours.served(model)], [None] * 3)
        text = io.StringIO()
        with contextlib.redirect_stdout(text):
            ours.accelerate(model, verbose=True)
        self.assertEqual([layer.by for layer in ours.served(model)], ["none"] * 3)
        self.assertIn("3 of 3 layers of attention by Sextant", text.getvalue())
        ours.stretch(model, "rerope", window=8)
        self.assertEqual([layer.by for layer in ours.served(model)], ["rerope"] * 3)
        self.assertEqual(ours.served(ours.accelerate(build("deberta-v2")))[0].by, "deberta")
        if VERSION >= 5:
            found = ours.served(ours.accelerate(build("t5")))
            self.assertEqual({layer.by for layer in found}, {"t5", "none"})

    def test_layers_that_are_left_are_a_warning(self):
        model, _ = swept.build("pegasus_x")
        with self.assertWarnsRegex(UserWarning, "layers of attention keep their own code .*Global"):
            ours.accelerate(model)
        left = ours.served(model).left
        self.assertTrue(left and all(layer.kind.startswith("PegasusX") for layer in left))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            ours.accelerate(build("llama"))

    def test_configurations_of_all_parts_are_restored(self):
        model, inputs = swept.build("sam")
        with torch.no_grad():
            before = swept.first_tensor(model(**inputs))
        layers = ours.served(ours.accelerate(model))
        self.assertEqual({layer.by for layer in layers}, {"none", "sam"})
        ours.restore(model)
        inner = (model.config, model.config.mask_decoder_config, model.config.vision_config,
                 model.config.prompt_encoder_config)
        self.assertEqual({config._attn_implementation for config in inner}, {"eager"})
        with torch.no_grad():
            self.assertTrue(torch.equal(swept.first_tensor(model(**inputs)), before))

    @torch.no_grad()
    @torch.no_grad()
    def test_layers_that_cannot_be_served_beside_others_keep_their_own_code(self):
        """Phi-4's audio tower, whose numbers for each query and key are no terms of ours."""
        from transformers.models.phi4_multimodal import configuration_phi4_multimodal as configs
        from transformers.models.phi4_multimodal import modeling_phi4_multimodal as theirs
        small = dict(hidden_size=32, intermediate_size=48, num_attention_heads=4)
        audio = configs.Phi4MultimodalAudioConfig(
            **small, num_blocks=2, depthwise_separable_out_channel=32, ext_pw_out_channel=32,
            input_size=40, chunk_size=8, left_chunk=2, bias_max_distance=10)
        model = theirs.Phi4MultimodalModel(configs.Phi4MultimodalConfig(
            **small, num_hidden_layers=2, num_key_value_heads=2, vocab_size=99, pad_token_id=0,
            max_position_embeddings=128, original_max_position_embeddings=128, bos_token_id=1,
            eos_token_id=2, audio_config=audio,
            vision_config=configs.Phi4MultimodalVisionConfig(
                **small, num_hidden_layers=2, image_size=28, patch_size=14))).eval()
        tower = model.embed_tokens_extend.audio_embed.encoder
        implementation = tower.config._attn_implementation
        frames = torch.randn(1, 120, 40)
        before = tower(frames, None)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            ours.accelerate(model)
        self.assertTrue(any("Phi4MultimodalAudioAttention" in str(x.message) for x in said))
        self.assertEqual(len([x for x in ours.served(model) if x.by]), 4)
        self.assertTrue(torch.equal(tower(frames, None), before))
        ours.restore(model)
        with self.assertRaisesRegex(ours.ModelError, "but all keep their own code"):
            ours.accelerate(tower, inputs={"hidden_states": frames, "mask": None})
        self.assertEqual(tower.config._attn_implementation, implementation)

    def test_wrapped_models(self):
        class Wrapper(torch.nn.Module):
            def __init__(self, *models):
                super().__init__()
                self.inner = torch.nn.ModuleList(models)

        model = build("llama")
        expected = result(model, **inputs_of("llama", tokens()))
        wrapper = Wrapper(model)
        self.assertIs(ours.accelerate(wrapper), wrapper)
        self.assertEqual({layer.by for layer in ours.served(wrapper)}, {"none"})
        ours.stretch(wrapper, "rope", stretch="yarn*4")
        self.assertEqual({layer.by for layer in ours.served(wrapper)}, {"rope"})
        ours.restore(wrapper)
        self.assertTrue(torch.equal(result(model, **inputs_of("llama", tokens())), expected))
        two = Wrapper(build("llama"), build("udop"))  # which cannot be served
        with self.assertRaisesRegex(ours.ModelError, "UdopModel"):
            ours.accelerate(two)
        self.assertEqual(two.inner[0].config._attn_implementation, "eager")
        with self.assertRaisesRegex(ours.ModelError, "expected one PreTrainedModel, but .* with 2"):
            ours.stretch(two, "rope")
        with self.assertRaisesRegex(ours.ModelError, "inputs: expected None"):
            ours.accelerate(two, inputs={})


class Alibi(unittest.TestCase):
    @torch.no_grad()
    def test_keys_with_gaps(self):
        """BLOOM and Falcon count the tokens that are shown, MPT counts all."""
        mask = torch.ones(2, LENGTH, dtype=torch.long)
        mask[0, 10:15], mask[1, :4], mask[1, 30:33] = 0, 0, 0
        for name in ("bloom", "falcon", "falcon, alibi", "mpt"):
            with self.subTest(name):
                model = build(name)
                run = lambda m: result(m, **inputs_of(name, tokens(), attention_mask=mask))
                expected = run(model)[mask.bool()]
                found = run(ours.accelerate(model))[mask.bool()]
                self.assertLess((found - expected).abs().max(), 3e-5 * expected.abs().max())

    def test_falcons_eager_code_is_refused(self):
        model = build("falcon, alibi")
        model.config._attn_implementation_internal = "eager"
        with self.assertRaisesRegex(ours.ModelError, 'expected "sdpa", .* but got "eager"'):
            ours.accelerate(model)


if __name__ == "__main__":
    unittest.main()
