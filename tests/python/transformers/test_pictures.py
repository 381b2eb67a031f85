"""Models of pictures whose positions lie on a grid: sizes, uses and refusals of their own."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "python"))

import torch  # noqa: E402
import transformers  # noqa: E402

import pictures  # noqa: E402
from cases import counted_calls  # noqa: E402
from swept import POSITIONS  # noqa: E402
from tiny import MODELS, VERSION, build, inputs_of, result  # noqa: E402

import sextant.transformers as ours  # noqa: E402

NAMES = [name for name, (kind, *_) in MODELS.items() if kind in pictures.CONFIGS]
SWINS = [name for name in ("swin", "swinv2", "donut-swin", "maskformer-swin") if name in NAMES]


def accelerated(name):
    """Also where the trial finds no inputs by itself."""
    return ours.accelerate(build(name), inputs=inputs_of(name, None))


def compared(test, name, **inputs):
    """Both results, of a model and by Sextant."""
    model = build(name)
    before = result(model, **inputs)
    ours.accelerate(model)
    with counted_calls() as count:
        after = result(model, **inputs)
    test.assertTrue(count)
    test.assertLess((after - before).abs().max().item(), 3e-5 * before.abs().max().item())


class Pictures(unittest.TestCase):
    @torch.no_grad()
    def test_other_sizes_than_the_configurations(self):
        """Padded windows, pictures that are not square, interpolated tables."""
        for name in SWINS:
            for size in ((36, 20), (64, 64)):
                with self.subTest(name, size=size):
                    compared(self, name, pixel_values=pictures.normal(3, 3, *size))
        for size in ((32, 16), (48, 40), (20, 20)):
            with self.subTest("vitdet", size=size):
                compared(self, "vitdet", pixel_values=pictures.normal(2, 3, *size))
        for name in ("beit", "beit, shared", "data2vec-vision", "beit, 3 x 5 places"):
            for size in ((48, 48), (24, 40)):
                for interpolate in (False, True):
                    with self.subTest(name, size=size, interpolate=interpolate):
                        try:
                            compared(self, name, pixel_values=pictures.normal(2, 3, *size),
                                     interpolate_pos_encoding=interpolate)
                        except ValueError as error:  # transformers' own, without interpolation
                            self.assertRegex(str(error), "size")

    @torch.no_grad()
    def test_positions_matter(self):
        """Otherwise a term that is left out would not show."""
        for name in NAMES:
            model = accelerated(name)
            before = result(model, **inputs_of(name, None))
            tables = [x for path, x in model.named_parameters() if POSITIONS.search(path) or
                      "continuous_position_bias_mlp.2" in path]
            with self.subTest(name):
                self.assertEqual(bool(tables), "absolute" not in name)
                for x in tables:
                    x.zero_()
                    after = result(model, **inputs_of(name, None))
                    difference = (after - before).abs().max() / before.abs().max()
                    self.assertGreater(difference.item(), 1e-4)
                    before = after

    def test_gradient_checkpointing(self):
        for name in ("swin", "sam_vision_model", "beit", "beit, shared", "swinv2"):
            for reentrant in (False, True):
                found = []
                for on in (False, True):
                    model = ours.accelerate(build(name)).train()
                    if on:
                        model.gradient_checkpointing_enable({"use_reentrant": reentrant})
                    for part in model.modules():
                        if isinstance(part, torch.nn.Dropout) or "DropPath" in type(part).__name__:
                            part.eval()
                    x = inputs_of(name, None)["pixel_values"].clone().requires_grad_()
                    result(model, pixel_values=x).square().mean().backward()
                    found.append({path: p.grad for path, p in model.named_parameters()
                                  if p.grad is not None})
                with self.subTest(name, reentrant=reentrant):
                    self.assertEqual(found[0].keys(), found[1].keys())
                    for path, gradient in found[0].items():
                        torch.testing.assert_close(found[1][path], gradient, rtol=1e-4, atol=1e-6)

    @torch.no_grad()
    def test_generate(self):
        """Layers for a picture beside a language model, which asks the interface; twice, as a
        second change of implementations must have all effects of the first."""
        torch.manual_seed(0)
        model = transformers.GotOcr2ForConditionalGeneration._from_config(
            pictures.CONFIGS["got_ocr2"](), attn_implementation="eager").eval()
        for x in model.parameters():
            if x.dim() == 2:
                x.normal_(0, 0.2)
        inputs = pictures.INPUTS["got_ocr2"]
        for more in ({}, {"cache_implementation": "static"}, {"num_beams": 2}):
            found = []
            for change in (ours.restore, ours.accelerate):
                self.assertFalse(ours.served(change(model)).left and change is ours.accelerate)
                out = model.generate(**inputs, attention_mask=torch.ones_like(inputs["input_ids"]),
                                     max_new_tokens=6, min_new_tokens=6, do_sample=False, **more,
                                     output_scores=True, return_dict_in_generate=True)
                found.append(torch.stack(out.scores).nan_to_num(neginf=0.0))
            before, after = found
            self.assertLess((after - before).abs().max().item(), 3e-5 * before.abs().max().item())

    @torch.no_grad()
    def test_compiled_for_more_sizes(self):
        for name, sizes in (("swin", (32, 64)), ("vitdet", (32, 48)),
                            ("beit", (32, 64)) if VERSION >= 5 else ("swinv2", (32, 64))):
            torch._dynamo.reset()
            model = ours.accelerate(build(name))
            compiled = torch.compile(model, backend="aot_eager")
            for size in sizes:
                x = pictures.normal(2, 3, size, size)
                more = {"interpolate_pos_encoding": True} if name == "beit" else {}
                with self.subTest(name, size=size):
                    torch.testing.assert_close(result(compiled, pixel_values=x, **more),
                                               result(model, pixel_values=x, **more))

    @torch.no_grad()
    def test_weights_are_refused(self):
        for name in NAMES:
            with self.subTest(name), self.assertRaisesRegex(ours.ModelError, "output_attentions"):
                accelerated(name)(**inputs_of(name, None), output_attentions=True)

    @unittest.skipIf(VERSION >= 5, "it has no head_mask")
    @torch.no_grad()
    def test_factors_of_heads_are_refused(self):
        for name in (*SWINS, "beit", "data2vec-vision"):
            if name in ("donut-swin", "maskformer-swin"):
                continue
            with self.subTest(name), self.assertRaisesRegex(ours.ModelError, "head_mask"):
                accelerated(name)(**inputs_of(name, None), head_mask=torch.ones(4))

    @unittest.skipIf(VERSION < 5, "it has no attention_mask")
    @torch.no_grad()
    def test_a_mask_of_places_is_refused(self):
        with self.assertRaisesRegex(ours.ModelError, "attention_mask: expected None"):
            accelerated("beit")(**inputs_of("beit", None), attention_mask=torch.ones(2, 17))


if __name__ == "__main__":
    unittest.main()
