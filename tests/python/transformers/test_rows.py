"""Positions over a cache of a stretched model: right, or an error."""

import copy
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "python"))

import torch  # noqa: E402
from transformers import DynamicCache  # noqa: E402

from tiny import build, tokens  # noqa: E402

import sextant.transformers as ours  # noqa: E402

ROWS = 24


def layers_of(cache):
    return [(layer.keys, layer.values) for layer in cache.layers]


def cache_of(layers, config):
    cache = DynamicCache(config=config)
    for number, (keys, values) in enumerate(layers):
        cache.update(keys, values, number)
    return cache


class Rows(unittest.TestCase):
    """Each step is compared with the model's own computation, by a stretch that changes nothing."""

    def step(self, positions, change=lambda cache, config: cache, rows=ROWS, batch=2, model="llama",
             first=0):
        """Fills a cache, changes it, and gives tokens with these position_ids: the largest
        difference of logits."""
        own = build(model)
        stretched = ours.stretch(copy.deepcopy(own), "rope")
        ids, more = tokens(batch, ROWS), tokens(batch, len(positions[0]), seed=2)
        found = []
        with torch.no_grad():
            for one in (own, stretched):
                cache = DynamicCache(config=one.config)
                one(ids, past_key_values=cache, use_cache=True,
                    position_ids=torch.arange(first, first + ROWS)[None])
                cache = change(cache, one.config)
                mask = torch.ones(batch, rows + more.size(1), dtype=torch.long)
                found.append(one(more, past_key_values=cache, attention_mask=mask,
                                 position_ids=torch.tensor(positions)).logits)
        size = found[0].abs().max().item()
        return (found[0] - found[1]).abs().max().item() / size

    def assert_right(self, *given, **named):
        self.assertLess(self.step(*given, **named), 1e-4)

    def assert_refused(self, reason, *given, **named):
        with self.assertRaisesRegex(ours.ModelError, reason):
            self.step(*given, **named)

    def test_positions_that_follow(self):
        self.assert_right([[24], [24]])
        self.assert_right([[24, 25, 26]] * 2)
        self.assert_right([[124, 125]] * 2, first=100)
        self.assert_right([[24]], batch=1)
        self.assert_right([[24]] * ROWS, batch=ROWS)  # as many entries as rows
        for window in ("mistral", "gemma3_text"):
            self.assert_right([[24, 25]] * 2, model=window)

    def test_positions_that_do_not(self):
        for positions in ([[40], [40]], [[40], [24]], [[23], [23]], [[40, 41, 42]] * 2, [[0], [0]],
                          [[1], [1]]):
            with self.subTest(positions):
                self.assert_refused("position_ids: expected those that follow the rows", positions)
        self.assert_refused("position_ids: expected those that follow", [[40], [40]],
                            model="mistral")
        self.assert_refused("position_ids: expected consecutive", [[24, 26, 28]] * 2)

    def test_caches_without_some_rows(self):
        def kept(rows):
            return lambda cache, config: cache_of(
                [(k[:, :, rows], v[:, :, rows]) for k, v in layers_of(cache)], config)

        def kept_in_place(rows):
            def change(cache, config):
                for layer in cache.layers:
                    layer.keys, layer.values = layer.keys[:, :, rows], layer.values[:, :, rows]
                return cache
            return change
        some = list(range(0, ROWS, 2))
        ends = [0, 1, *range(12, ROWS)]
        for change in (kept, kept_in_place):
            for rows in (some, ends, list(range(ROWS))[::-1]):
                with self.subTest(change.__name__, rows=rows):
                    for position in (ROWS, len(rows)):
                        self.assert_refused("past_key_values: expected a cache as this model",
                                            [[position]] * 2, change(rows), rows=len(rows))
        last = list(range(10, ROWS))
        self.assert_right([[24]] * 2, kept_in_place(last), rows=len(last))
        self.assert_refused("position_ids", [[14]] * 2, kept_in_place(last), rows=len(last))

    def test_caches_that_are_cropped_copied_or_reordered(self):
        def crop(cache, config):
            cache.crop(-8)
            return cache

        def reorder(cache, config):
            cache.reorder_cache(torch.tensor([1, 0]))
            return cache

        def repeat(cache, config):
            cache.batch_repeat_interleave(2)
            return cache
        self.assert_right([[16, 17]] * 2, crop, rows=16)
        self.assert_refused("position_ids", [[24]] * 2, crop, rows=16)
        self.assert_right([[24]] * 2, lambda cache, config: copy.deepcopy(cache))
        self.assert_right([[24]] * 2, reorder)

        def after_crop(cache, config):
            return crop(copy.deepcopy(crop(cache, config)), config)
        self.assert_right([[8]] * 2, after_crop, rows=8)

    @torch.no_grad()
    def test_rows_of_padding_in_another_order(self):
        own = build("llama")
        stretched = ours.stretch(copy.deepcopy(own), "rope")
        ids, more = tokens(3, ROWS), tokens(3, 2, seed=2)
        mask = torch.ones(3, ROWS + 2, dtype=torch.long)
        mask[0, :7], mask[2, :15] = 0, 0
        positions = (mask.cumsum(1) - 1).clamp(min=0)
        order = torch.tensor([2, 0, 1])
        found = []
        for model in (own, stretched):
            cache = DynamicCache(config=model.config)
            model(ids, attention_mask=mask[:, :ROWS], position_ids=positions[:, :ROWS],
                  past_key_values=cache)
            cache.reorder_cache(order)
            found.append(model(more, attention_mask=mask[order], past_key_values=cache,
                               position_ids=positions[order, ROWS:]).logits)
        self.assertLess((found[0] - found[1]).abs().max().item(), 1e-4 * found[0].abs().max())
        cache = DynamicCache(config=own.config)
        stretched(ids, attention_mask=mask[:, :ROWS], position_ids=positions[:, :ROWS],
                  past_key_values=cache)
        with self.assertRaisesRegex(ours.ModelError, "position_ids"):  # of other entries
            stretched(more, attention_mask=mask[order], past_key_values=cache,
                      position_ids=positions[order, ROWS:])

    @torch.no_grad()
    def test_a_cache_of_another_model(self):
        own = build("llama")
        stretched = ours.stretch(copy.deepcopy(own), "rerope", window=8)
        cache = DynamicCache(config=own.config)
        own(tokens(), past_key_values=cache)
        with self.assertRaisesRegex(ours.ModelError, "past_key_values: expected a cache as this"):
            stretched(tokens(2, 1), past_key_values=cache)


class Lengths(unittest.TestCase):
    """Stretches that depend on the length."""

    def test_dynamic_is_each_querys_own_or_the_calls(self):
        own = build("llama", max_position_embeddings=64, rope_parameters={
            "rope_type": "dynamic", "factor": 2.0, "rope_theta": 10000.0})
        ids = tokens(1, 200)
        with torch.no_grad():
            expected = own(ids).logits
            size = expected.abs().max().item()
            plain = build("llama", max_position_embeddings=64)
            dynamic = {"rope_type": "dynamic", "factor": 2.0,
                       "original_max_position_embeddings": 64}
            ours.stretch(plain, "rope", stretch=dynamic, dynamic="length")
            self.assertLess((plain(ids).logits - expected).abs().max().item(), 1e-3 * size)
            ours.stretch(plain, "rope", stretch=dynamic)
            whole = plain(ids).logits
            self.assertGreater((whole - expected).abs().max().item(), 1e-2 * size)
            part = plain(ids[:, :150]).logits  # no result depends on later tokens
            self.assertLess((whole[:, :150] - part).abs().max().item(), 1e-4 * size)

    def test_a_dynamic_model_that_ran_past_its_length(self):
        own = build("llama", max_position_embeddings=64, rope_parameters={
            "rope_type": "dynamic", "factor": 2.0, "rope_theta": 10000.0})
        ids = tokens(1, 200)
        with torch.no_grad():
            own(ids)  # its frequencies are now those of 200 tokens
            stale = own(ids[:, :100]).logits
            ours.stretch(own, "rope", stretch="yarn*4")
            ours.restore(own)
            self.assertTrue(torch.equal(own(ids[:, :100]).logits, stale))


if __name__ == "__main__":
    unittest.main()
