"""Faults planted in live models are found, in the right layers, with their cause."""

import re
import unittest

import faults
import tiny_models
import torch

import sextant.doctor

ALL = tuple(range(tiny_models.DEPTH))
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
]


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
    setattr(Faults, f"test_{fault.__name__}_{name.replace('-', '_')}", test)


for case in CASES:
    add(*case)


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


class Kinds(unittest.TestCase):
    """The list has as many kinds as docs/doctor.md says."""

    def test_there_are_many_kinds(self):
        self.assertGreaterEqual(len({fault for fault, *_ in CASES}), 30)


if __name__ == "__main__":
    unittest.main()
