"""Uses of models with vectors by distance that the matrix does not try: generation from a signal,
memory, permutations and segments."""

import unittest

import torch
import transformers

import swept
from cases import both, worst

import sextant.transformers as ours


def small(model_class, kind, **fields):
    """A model of a class, with the configuration and the large terms of ``swept.build``."""
    swept.MODEL_CLASSES[kind] = model_class
    return swept.build(kind, **fields)


class Relative(unittest.TestCase):
    def check(self, model, run):
        with torch.no_grad():
            difference, _ = worst(*both(model, run))
        self.assertLess(difference, 3e-5)

    def test_text_from_speech(self):
        for model_class, kind in (("SpeechT5ForSpeechToText", "speecht5"),
                                  ("SeamlessM4TForSpeechToText", "seamless_m4t"),
                                  ("SeamlessM4Tv2ForSpeechToText", "seamless_m4t_v2")):
            model, inputs = small(model_class, kind)
            given = {model.main_input_name: inputs[model.main_input_name]}
            mask = torch.ones(given[model.main_input_name].shape[:2], dtype=torch.long)
            mask[1, mask.size(1) // 2:] = 0

            def run(model):
                found = []
                for more in ({}, {"num_beams": 3}, {"attention_mask": mask}, {"use_cache": False}):
                    out = transformers.GenerationMixin.generate(
                        model, **given, **more, max_new_tokens=6, min_new_tokens=6,
                        do_sample=False, output_scores=True, return_dict_in_generate=True)
                    found.append(torch.stack(out.scores).nan_to_num(neginf=0.0))
                return found
            with self.subTest(kind):
                self.check(model, run)

    def test_xlnet(self):
        model, inputs = small("XLNetModel", "xlnet", bi_data=False)
        ids = inputs["input_ids"]
        batch, rows = ids.shape
        generator = torch.Generator().manual_seed(1)
        segments = torch.randint(0, 4, (batch, rows), generator=generator)
        order = torch.rand(batch, rows, generator=generator)
        order[:, 0] = -1  # each query but one sees a key, so that no row depends on what is hidden
        later = (order[:, None] >= order[:, :, None]).float()
        later[:, 0, 0] = 0
        picked = torch.nn.functional.one_hot(torch.tensor([[0, 5, 9], [3, 4, 31]]), rows).float()
        mask = torch.ones(batch, rows)
        mask[0, :7] = 0
        calls = ({"token_type_ids": segments}, {"attention_mask": mask, "token_type_ids": segments},
                 {"perm_mask": later, "target_mapping": picked, "token_type_ids": segments})

        def run(model):
            memory = model(ids, use_mems=True).mems
            found = [model(ids, **more)[0] for more in calls]
            return [*found, *(model(ids[:, :9], mems=memory, use_mems=True,
                                    token_type_ids=segments[:, :9])[0:1])]
        self.check(model, run)

    def test_xlnet_generates(self):
        model, inputs = small("XLNetLMHeadModel", "xlnet")
        self.check(model, lambda m: [m.generate(
            inputs["input_ids"][:, :9], max_new_tokens=5, min_new_tokens=5, do_sample=False,
            num_beams=beams).float() for beams in (1, 2)])

    @torch.no_grad()
    def test_a_layer_of_xlnet_alone_has_no_segments(self):
        model, _ = small("XLNetModel", "xlnet")
        ours.accelerate(model)
        with self.assertRaisesRegex(ours.ModelError, "token_type_ids: expected a layer in the"):
            model.layer[0].rel_attn(torch.zeros(5, 1, model.config.d_model), None, None, None,
                                    torch.zeros(10, 1, model.config.d_model), None)

    def test_xlnet_gradients_of_segments(self):
        model, inputs = small("XLNetModel", "xlnet")
        model = model.double().train()
        segments = torch.arange(32).expand(2, -1) // 12
        for module in model.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0

        def run(model):
            model.zero_grad()
            model(**inputs, token_type_ids=segments)[0].square().mean().backward()
            return [p.grad.clone() for p in model.parameters() if p.grad is not None]
        before, after = both(model, run)
        for x, y in zip(before, after):
            self.assertLess((x - y).abs().max().item(), 1e-8 * (x.abs().max().item() + 1e-3))

    def test_dropout_of_sinusoids_differs_by_entry(self):
        model, inputs = small("XLNetModel", "xlnet", dropout=0.5)
        ours.accelerate(model).train()
        self.assertTrue(bool(torch.isfinite(model(**inputs)[0]).all()))

    def test_arguments_without_a_term(self):
        model, inputs = small("SpeechT5ForSpeechToText", "speecht5")
        ours.accelerate(model)
        with self.assertRaisesRegex(ours.ModelError, "output_attentions"):
            model(**inputs, output_attentions=True)

    def test_bert_decoder(self):
        if "position_embedding_type" not in transformers.BertConfig().to_dict():
            self.skipTest("transformers 5 has no such BERT")
        for kind in ("relative_key", "relative_key_query"):
            config = transformers.BertConfig(
                hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96,
                vocab_size=99, max_position_embeddings=40, is_decoder=True, use_cache=False,
                add_cross_attention=True, position_embedding_type=kind,
                attn_implementation="sdpa")
            torch.manual_seed(0)
            model = transformers.BertLMHeadModel(config).eval()
            for name, x in model.named_parameters():
                if "distance_embedding" in name:
                    torch.nn.init.normal_(x)
            ids = torch.arange(40).view(2, 20) + 3
            more = {"encoder_hidden_states": torch.randn(2, 9, 64)}
            self.check(model, lambda m: [m(ids).logits, m(ids, **more).logits])
            with self.assertRaisesRegex(ours.ModelError, "use_cache"):
                model(ids, use_cache=True)
            with self.assertRaisesRegex(ours.ModelError, "max_position_embeddings=40"):
                model(torch.ones(1, 41, dtype=torch.long),
                      token_type_ids=torch.zeros(1, 41, dtype=torch.long))

    @unittest.skipUnless(hasattr(transformers, "NemotronAsrStreamingForRNNT"), "transformers 5")
    def test_streaming(self):
        model, inputs = small("NemotronAsrStreamingForRNNT", "nemotron_asr_streaming")
        signal = inputs["input_features"]

        def run(model):
            found, more = [], {}
            for part in signal.split(100, 1):
                out = model.encoder(part, use_cache=True, num_lookahead_tokens=0, **more)
                more = {"padding_cache": out.padding_cache,
                        "cache": getattr(out, "cache", None)}
                found.append(out.last_hidden_state)
            return [*found, model.encoder(signal, num_lookahead_tokens=3).last_hidden_state]
        self.check(model, run)

    @unittest.skipUnless(hasattr(transformers, "Gemma4AudioModel"), "transformers 5")
    def test_gradients_in_float32(self):
        """The model computes attention in float32 alone."""
        model, inputs = small("Gemma4AudioModel", "gemma4_audio")

        def run(model):
            model.zero_grad()
            model(**inputs)[0].square().mean().backward()
            return [p.grad.clone() for p in model.parameters() if p.grad is not None]
        before, after = both(model, run)
        for x, y in zip(before, after):
            self.assertLess((x - y).abs().max().item(), 3e-5 * (x.abs().max().item() + 1e-3))

    @unittest.skipUnless(hasattr(transformers, "Gemma4AudioModel"), "transformers 5")
    def test_gemma4(self):
        text = dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, head_dim=16,
                    num_key_value_heads=2, intermediate_size=96, vocab_size=99, global_head_dim=16,
                    vocab_size_per_layer_input=99, hidden_size_per_layer_input=16,
                    layer_types=["sliding_attention", "full_attention"], num_kv_shared_layers=0)
        config = transformers.Gemma4Config(
            text_config=text, vision_config=None, audio_config=swept.CONFIGS["gemma4_audio"](),
            audio_token_id=90, image_token_id=91, video_token_id=92)
        torch.manual_seed(0)
        model = transformers.Gemma4ForConditionalGeneration._from_config(
            config, attn_implementation="eager").eval()
        signal = swept.MORE_INPUTS["gemma4_audio"]["input_features"]
        mask = torch.ones(2, 240, dtype=torch.bool)
        mask[1, 160:] = False
        ids = torch.full((2, 64), 90)
        ids[:, 60:] = 5
        ids[1, 40:] = 5
        self.check(model, lambda m: [m(input_ids=ids, input_features=signal,
                                       input_features_mask=mask).logits])
        self.assertFalse(ours.served(model).left)


if __name__ == "__main__":
    unittest.main()
