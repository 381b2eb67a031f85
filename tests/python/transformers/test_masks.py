"""Masks of transformers become arguments of attention that show the same keys."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "python"))

import torch  # noqa: E402
from transformers import masking_utils as theirs  # noqa: E402

import sextant.transformers  # noqa: E402, F401
from sextant.transformers import ModelError, masks  # noqa: E402

KEYS = 40
# Before transformers 5 there is no mask function of encoders.
BIDIRECTIONAL = getattr(theirs, "bidirectional_mask_function", None)


def shown(view, keys, queries, batch):
    """The bool mask [batch, queries, keys] of a View."""
    first, last = view.keys
    arguments = dict(view.arguments)
    result = torch.zeros(batch, queries, keys, dtype=torch.bool)
    if first == last:
        return result
    inner = result[:, :, first:last].clone().fill_(True)
    i, j = torch.arange(queries)[:, None], torch.arange(last - first)[None]
    for b in range(batch):
        packed = arguments.get("packed_queries")
        if packed is not None:
            packed = packed[b] if isinstance(packed[0], list) else packed
            block = torch.bucketize(torch.arange(queries), torch.tensor(packed[1:]), right=True)
            inner[b] &= (block[:, None] == block[None]) & (j <= i)
            own = i
        else:
            own = i + arguments["first_query"]
            if arguments["causal"]:
                inner[b] &= j <= own
        if "window" in arguments:
            window = arguments["window"]
            left, right = window if isinstance(window, tuple) else (window - 1, j.size(1))
            inner[b] &= (j >= own - left) & (j <= own + right)
    if "mask" in arguments:
        mask = arguments["mask"]
        inner &= mask[:, 0] if mask.dim() == 4 else mask[:, None]
    result[:, :, first:last] = inner
    return result


def place(queries, offset):
    if masks.BY_CACHE_POSITION:
        return {"cache_position": torch.arange(offset, offset + queries)}
    return {"q_length": queries, "q_offset": offset}


class Masks(unittest.TestCase):
    def check(self, function, *, queries=KEYS, offset=0, keys=KEYS, batch=2, padding=None,
              ranges=True):
        given = dict(batch_size=batch, kv_length=keys, kv_offset=0, mask_function=function,
                     attention_mask=padding)
        expected = theirs.sdpa_mask(**given, **place(queries, offset), allow_is_causal_skip=False)
        expected = expected[:, 0]
        got = masks.visibility(**given, **place(queries, offset))
        self.assertEqual(masks.is_ranges(got), ranges)
        if not ranges:
            self.assertTrue(torch.equal(got[:, 0], expected))
            return None
        view = masks.view_of(got, keys)
        self.assertTrue(torch.equal(shown(view, keys, queries, batch), expected))
        return view.arguments

    def test_causal(self):
        for queries, offset in ((KEYS, 0), (1, KEYS - 1), (5, 20), (1, 12)):
            arguments = self.check(theirs.causal_mask_function, queries=queries, offset=offset)
            self.assertNotIn("mask", arguments)

    def test_windows(self):
        function = theirs.sliding_window_causal_mask_function(7)
        for queries, offset in ((KEYS, 0), (1, 30), (5, 20)):
            self.assertNotIn("mask", self.check(function, queries=queries, offset=offset))

    def test_windows_to_both_sides(self):
        def near(b, h, q, k):
            return (q - k < 5) & (k - q < 3)
        padding = torch.ones(2, KEYS, dtype=torch.bool)
        for rows in (slice(0, 0), slice(0, 9), slice(-9, None)):
            padding[0, rows] = False
            arguments = self.check(near, padding=padding)
            self.assertEqual(arguments["window"], (4, 2))
            padding[:] = True

    @unittest.skipIf(BIDIRECTIONAL is None, "transformers 4 has no such function")
    def test_all_keys(self):
        self.assertEqual(self.check(BIDIRECTIONAL),
                         {"causal": False, "first_query": 0})

    def test_padding(self):
        for rows in (slice(0, 9), slice(-9, None)):
            padding = torch.ones(2, KEYS, dtype=torch.bool)
            padding[0, rows] = False
            for function in filter(None, (theirs.causal_mask_function, BIDIRECTIONAL,
                                          theirs.sliding_window_causal_mask_function(7))):
                arguments = self.check(function, padding=padding)
                self.assertEqual(list(arguments["mask"].shape)[1:3], [1, 1])
                self.check(function, padding=padding, queries=1, offset=KEYS - 1)

    def test_padding_between(self):
        padding = torch.ones(2, KEYS, dtype=torch.bool)
        padding[0, 5:9] = False
        self.check(theirs.causal_mask_function, padding=padding, ranges=False)

    def test_positions_of_padded_rows(self):
        padding = torch.ones(2, KEYS, dtype=torch.bool)
        padding[0, :9] = False
        got = masks.visibility(batch_size=2, kv_length=KEYS, attention_mask=padding,
                               mask_function=theirs.causal_mask_function, **place(KEYS, 0))
        self.assertEqual(masks.view_of(got, KEYS).origins, [-9, 0])

    def test_packed_sequences(self):
        ids = torch.tensor([[0] * 13 + [1] * 20 + [2] * 7, [0] * 40])
        packed = theirs.packed_sequence_mask_function(ids)
        for inner in (theirs.causal_mask_function, theirs.sliding_window_causal_mask_function(5)):
            arguments = self.check(theirs.and_masks(inner, packed))
            self.assertEqual(arguments["packed_queries"], [[0, 13, 33, 40], [0, 40]])
        arguments = self.check(theirs.and_masks(theirs.causal_mask_function,
                                                theirs.packed_sequence_mask_function(ids[:1])),
                               batch=1)
        self.assertEqual(arguments["packed_queries"], [0, 13, 33, 40])

    def test_prefixes(self):
        prefix = theirs.or_masks(theirs.causal_mask_function, lambda b, h, q, k: k < 6)
        self.check(prefix)

    def test_gaps(self):
        sinks = theirs.or_masks(theirs.sliding_window_causal_mask_function(5),
                                theirs.and_masks(theirs.causal_mask_function,
                                                 lambda b, h, q, k: k < 2))
        self.check(sinks, ranges=False)

    def test_many_queries(self):
        self.check(theirs.causal_mask_function, queries=700, keys=700, batch=1)

    def test_masks_of_a_models_own(self):
        """Bool and added to scores, of equal sizes too, with rows of padding; of one query."""
        for batch, size in ((2, 12), (4, 4), (2, 2), (1, 2)):
            causal = torch.ones(batch, 1, size, size, dtype=torch.bool).tril()
            causal[0, :, :, : size // 3] = False
            for mask in (causal, torch.zeros(causal.shape).masked_fill(~causal, float("-inf")),
                         torch.zeros(causal.shape).masked_fill(~causal, -3e38)):
                view = masks.view_of(masks.of_model(mask, size, size), size)
                got = shown(view, size, size, batch)
                seen = causal[:, 0].any(2)
                self.assertTrue(torch.equal(got[seen], causal[:, 0][seen]))
        with self.assertRaisesRegex(ModelError, "attention_mask: expected True and False, or 0"):
            masks.of_model(torch.full((1, 1, 3, 3), 0.5), 3, 3)
        self.assertIs(masks.of_model(one := torch.ones(1, 1, 1, 5).bool(), 3, 5), one)

    def test_what_is_kept_with_a_mask_is_that_of_its_values(self):
        mask = torch.ones(1, 1, 6, 6, dtype=torch.bool).tril()
        kept = masks.of_model(mask, 6, 6)
        self.assertIs(masks.of_model(mask, 6, 6), kept)
        self.assertIsNot(masks.of_model(mask, 6, 6, 2), kept)
        mask[..., 0] = False  # in place, between two forward passes
        view = masks.view_of(masks.of_model(mask, 6, 6), 6)
        self.assertTrue(torch.equal(shown(view, 6, 6, 1)[0, 1:], mask[0, 0, 1:]))
        with torch.inference_mode():
            mask = torch.ones(1, 1, 6, 6, dtype=torch.bool).tril()
            masks.of_model(mask, 6, 6)
            mask[..., 0] = False
            view = masks.view_of(masks.of_model(mask, 6, 6), 6)
            self.assertTrue(torch.equal(shown(view, 6, 6, 1)[0, 1:], mask[0, 0, 1:]))


if __name__ == "__main__":
    unittest.main()
