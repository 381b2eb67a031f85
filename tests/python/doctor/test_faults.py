"""Faults planted in live models are found, in the right layers, with their cause."""

import re
import sys
import unittest

import faults
import faults_of_attention as attention
import tiny_models
import torch

import sextant.doctor

ALL = tuple(range(tiny_models.DEPTH))
FOUND = []  # faults whose tests pass
# Fault, model, the field of the finding, a part of its cause, its layers (None: not tested).
CASES = [
    (faults.wrong_base, "llama", "frequencies", "plain RoPE of base", ALL),
    (faults.wrong_base, "gpt_neox", "frequencies", "plain RoPE of base", ALL),
    (faults.default_base, "qwen3", "frequencies", "10000 is the usual default", ALL),
    (faults.stretch_ignored, "llama-yarn", "frequencies", "has no effect", ALL),
    (faults.stretch_ignored, "llama-3", "frequencies", "has no effect", ALL),
    (faults.stretched_twice, "llama-yarn", "frequencies", "twice", ALL),
    (faults.interpolated, "llama-yarn", "frequencies", "all pairs are divided by 4", ALL),
    (faults.divided, "qwen3", "frequencies", "divided by 2", ALL),
    (faults.reversed_order, "llama", "frequencies", "other pairs", ALL),
    (faults.half_of_pairs, "qwen3", "frequencies", "do not rotate", ALL),
    (faults.rounded_bfloat16, "llama", "frequencies", "rounded to bfloat16", ALL),
    (faults.rounded_float16, "llama", "frequencies", "rounded to float16", ALL),
    (faults.cast_bfloat16, "llama", "frequencies", "rounded to bfloat16", ALL),
    (faults.kinds_swapped, "gemma3", "frequencies", "of the other layers", None),
    (faults.factor_dropped, "llama-yarn", "attention factor", "not applied", ALL),
    (faults.factor_dropped, "gpt_oss", "attention factor", "not applied", ALL),
    (faults.factor_twice, "llama-yarn", "attention factor", "twice", ALL),
    (faults.other_scale, "qwen3", "softmax scale", "1.1 times", ALL),
    (faults.scale_of_head, "gemma3", "softmax scale", "of the head alone", None),
    (faults.scale_of_head, "deepseek_v3", "softmax scale", "of the head alone", ALL),
    (faults.scale_of_one_layer, "llama", "softmax scale", "2 times", (1,)),
    (faults.neighbours, "llama", "pairing", "neighbouring channels are paired", ALL),
    (faults.neighbours, "olmo2", "pairing", "neighbouring channels are paired", ALL),
    (faults.mixed_pairs, "llama", "pairing", "do not belong together", ALL),
    (faults.keys_still, "llama", "rotates", "keys reach the scores without", ALL),
    (faults.queries_still, "llama", "rotates", "skips the rotation", ALL),
    (faults.opposite_direction, "llama", "direction", "sign of sin", ALL),
    (faults.one_layer_still, "qwen3", "rotates", "without positions", (3,)),
    (faults.nope_rotates, "smollm3", "rotates", "NoPE", (3,)),
    (faults.nope_rotates, "cohere2", "rotates", "NoPE", (3,)),
    (faults.tables_rounded, "llama", "precision", "rounded to bfloat16", ALL),
    (faults.positions_rounded, "llama", "positions", "rounded to bfloat16", ALL),
    (faults.positions_halved, "gpt_neox", "frequencies", "divided by 2", ALL),
    (faults.positions_end, "llama", "positions", "end at about 1001", ALL),
    (faults.keys_behind, "llama", "positions", "different positions", ALL),
    (faults.window_ignored, "mistral", "window", "no window here", ALL),
    (faults.window_everywhere, "gpt_oss", "window", "of the other layers", (1, 3)),
    (faults.windows_swapped, "gemma3", "window", "of the other layers", None),
    (faults.window_one_less, "mistral", "window", "own position", ALL),
    (faults.stretch_set_later, "llama", "frequencies", "set in model.config afterwards", ALL),
    (faults.base_set_later, "llama", "frequencies", "a base set in model.config afterwards", ALL),
    (faults.part_set_later, "phi3", "rotated channels", "half the channels", ALL),
    (faults.part_set_smaller, "phi3", "rotated channels", "twice the channels", ALL),
    (attention.next_token_visible, "llama", "mask", "up to 1 later token", ALL),
    (attention.own_key_hidden, "llama", "mask", "own key", ALL),
    (attention.bidirectional, "llama", "mask", "no causal mask", ALL),
    (attention.bidirectional, "qwen3", "mask", "no causal mask", ALL),
    (attention.no_mask, "llama", "mask", "no causal mask", ALL),
    (attention.eager_without_mask, "llama", "mask", "no causal mask", ALL),
    (attention.mask_inverted, "llama", "mask", "no causal mask|later tokens", ALL),
    (attention.mask_that_hides_little, "llama", "mask", "no causal mask", ALL),
    (attention.mask_transposed, "llama", "mask", "later", ALL),
    (attention.first_key_hidden, "llama", "mask", "hides keys", ALL),
    (attention.padding_seen, "llama", "padding", "attention_mask has no effect", ALL),
    (attention.padding_on_the_wrong_side, "llama", "padding", "no effect", ALL),
    (attention.mask_of_one_layer, "llama", "mask", "no causal mask", (2,)),
    (attention.mask_ignored_by_function, "llama", "mask", "no causal mask", ALL),
    (attention.one_head_bidirectional, "llama", "mask", "no causal mask", ALL),
    (attention.small_window_ignored, "mistral-8", "mask", "window or chunk", ALL),
    (attention.chunks_ignored, "llama4", "chunk", "", None),
    (attention.position_repeated, "llama", "cache", "positions repeat", ALL),
    (attention.position_skipped, "llama", "cache", "are skipped", ALL),
    (attention.position_repeated_by_generate, "llama-head", "generation", "positions repeat", ALL),
    (attention.positions_begin_again, "llama", "cache", "positions repeat", ALL),
    (attention.new_keys_first, "llama", "cache", "another order", ALL),
    (attention.last_key_overwritten, "llama", "cache", "overwrites", ALL),
    (attention.first_key_lost, "llama", "cache", "loses", ALL),
    (attention.old_keys_lost, "llama", "cache", "loses", ALL),
    (attention.keys_of_cache_halved, "llama", "cache", "changes what it holds", ALL),
    (attention.values_shifted, "llama", "cache", "another order", ALL),
    (attention.keys_in_8_bits, "llama", "cache", "changes what it holds|differently", ALL),
    (attention.mask_of_cache_upper_left, "llama", "cache", "does not fit its length", ALL),
    (attention.softcap_dropped, "gemma2", "softcap", "does not cap", ALL),
    (attention.softcap_halved, "gemma2", "softcap", "", ALL),
    (attention.softcap_by_sdpa, "gemma2", "softcap", "does not cap", ALL),
    (attention.softcap_added, "llama", "softcap", "", ALL),
    (attention.scale_ignored_by_function, "gemma3", "softmax scale", "of the head alone", None),
    (attention.scale_of_one_head, "llama", "softmax scale", "2 times", ALL),
    (attention.heads_tiled, "llama-grouped", "key heads", "another order", ALL),
    (attention.heads_of_values_tiled, "llama-grouped", "key heads", "another order", ALL),
    (attention.too_few_groups, "llama-grouped", "attention", "attention fails", ALL),
    (attention.without_sinks, "gpt_oss", "sinks", "no effect", ALL),
    (attention.query_norm_dropped, "qwen3", "norms", "q_norm has no effect", ALL),
    (attention.key_norm_dropped, "qwen3", "norms", "k_norm has no effect", ALL),
    (attention.norm_does_nothing, "gemma3", "norms", "q_norm has no effect", None),
    (attention.norm_without_root, "qwen3", "norms", "k_norm has no effect", ALL),
    (attention.norm_of_one_layer_dropped, "olmo2", "norms", "q_norm has no effect", (1,)),
    (attention.latent_norm_dropped, "deepseek_v3", "norms", "kv_a_layernorm", ALL),
    (attention.positions_shifted, "llama", "positions", r"shifted by \+1", ALL),
    (attention.positions_one_behind, "llama", "positions", "shifted by -1", ALL),
    (attention.positions_halved_down, "llama", "positions", "0.5 and rounded down", ALL),
    (attention.positions_doubled, "llama", "positions", "gets the angles of", ALL),
    (attention.positions_wrap, "llama", "positions", "begin again after each 4096", ALL),
    (attention.positions_jump, "llama", "positions", "position 1001 gets", ALL),
    (attention.positions_counted_from_one_end, "llama", "positions", "position 4 gets", ALL),
    (attention.no_rotation_at_all, "llama", "rotates", "skips the rotation", ALL),
]
if tiny_models.VERSION_5:
    CASES.append((attention.causal_encoder, "modernbert", "mask", "attends to both sides", (0, 3)))


def with_fault(fault, name):
    model = tiny_models.build(name)
    with torch.no_grad():
        undo = fault(model, tiny_models.modeling_of(model))
    try:
        return sextant.doctor.doctor(model)
    finally:
        if undo:
            undo()


class Faults(unittest.TestCase):
    """Each planted fault is found."""


def add(fault, name, field, cause, layers):
    def test(self):
        report = with_fault(fault, name)
        self.assertEqual(report.exit_status, 1, report.to_json())
        found = [f for f in report.findings if f.field == field and re.search(cause, f.cause)]
        self.assertTrue(found, report.findings)
        if layers is not None:
            self.assertEqual(found[0].layers, layers, found)
        FOUND.append(fault)
    setattr(Faults, f"test_{fault.__name__}_{name.replace('-', '_')}", test)


for case in CASES:
    add(*case)


def tearDownModule():  # noqa: N802 pylint: disable=invalid-name
    """Prints the counts for docs/audit/doctor.md, which tests/check_doctor.sh writes."""
    print(f"\n{len(CASES)} | {len({case[0] for case in CASES})} | {len(FOUND)} found",
          file=sys.stderr)


class Doubts(unittest.TestCase):
    """Configurations that the model follows and that are doubtful are warnings."""

    def test_a_length_beyond_the_stretch(self):
        config = tiny_models.config_of("llama-yarn")
        config.max_position_embeddings = 131072
        report = sextant.doctor.doctor(tiny_models.subject.build(config, False))
        self.assertEqual([(f.field, f.severity, f.got) for f in report.findings],
                         [("configuration", "warning", "131072")])
        self.assertIn("up to 32768", report.findings[0].expected)
        self.assertEqual(report.exit_status, 0)


class Named(unittest.TestCase):
    """Faults in quantities that are not measured: the report names these."""

    def test_the_law_of_queries(self):
        for fault in (lambda model, _: None, attention.query_law_dropped):
            report = with_fault(fault, "llama4")
            self.assertIn(("query law", "not measured", (3,)),
                          [(f.fact, f.status, f.layers) for f in report.facts])

    def test_functions_that_cannot_run_here(self):
        report = with_fault(attention.flash_without_mask, "llama")
        self.assertIn("mask", [f.fact for f in report.facts if f.status == "not measured"])


class Kinds(unittest.TestCase):
    """The list has as many kinds as docs/doctor.md says."""

    def test_there_are_many_kinds(self):
        self.assertGreaterEqual(len({fault for fault, *_ in CASES}), 60)


if __name__ == "__main__":
    unittest.main()
