"""Masks in the forms of scaled_dot_product_attention."""

import unittest

import torch

import sextant

BATCH, HEADS, QUERIES, KEYS = 2, 3, 5, 7


def tensors():
    torch.manual_seed(1)
    return [torch.randn(BATCH, HEADS, rows, 4, dtype=torch.float64)
            for rows in (QUERIES, KEYS, KEYS)]


def plain(q, k, v, mask):
    """scaled_dot_product_attention, which torch 1.13 lacks."""
    scores = q @ k.transpose(2, 3) / q.size(3) ** 0.5
    if mask.dtype == torch.bool:
        scores = scores.masked_fill(~mask, -torch.inf)
    else:
        scores = scores + mask
    return scores.softmax(3) @ v


def attend(mask, **arguments):
    return sextant.attention(*tensors(), causal=False, mask=mask, **arguments)


def shown_by_all():
    """A bool mask [batch, heads, queries, keys] that hides no query's last key."""
    torch.manual_seed(2)
    mask = torch.rand(BATCH, HEADS, QUERIES, KEYS) < 0.6
    mask[..., -1] = True
    return mask


class Masks(unittest.TestCase):
    def agrees(self, mask, dense, **arguments):
        torch.testing.assert_close(attend(mask, **arguments),
                                   plain(*tensors(), dense))

    def test_every_shape(self):
        mask = shown_by_all()
        self.agrees(mask, mask)
        self.agrees(mask[:, :1], mask[:, :1])
        self.agrees(mask[0, 0], mask[0, 0])  # [queries, keys]
        self.agrees(mask[:, 0, 0], mask[:, :1, :1])  # [batch, keys]
        self.agrees(mask[0, 0, 0], mask[0, 0, 0])  # [keys]

    def test_floats_that_hide(self):
        shown = shown_by_all()
        for lowest in (-torch.inf, torch.finfo(torch.float32).min):
            mask = torch.zeros(shown.shape).masked_fill(~shown, lowest)
            self.agrees(mask, shown)
            self.agrees(mask[0, 0], shown[0, 0])
        half = torch.zeros(shown.shape, dtype=torch.bfloat16)
        self.agrees(half.masked_fill(~shown, torch.finfo(torch.bfloat16).min), shown)

    def test_floats_that_depend_on_the_key(self):
        bias = torch.randn(BATCH, 1, 1, KEYS, dtype=torch.float64)
        self.agrees(bias, bias)
        self.agrees(bias[:, 0, 0], bias)
        self.agrees(bias[0, 0, 0], bias[:1])
        torch.testing.assert_close(attend(bias), attend(None, key_bias=bias[:, 0, 0]))
        both = bias.expand(-1, HEADS, QUERIES, -1).masked_fill(~shown_by_all(), -torch.inf)
        self.agrees(both, both)

    def test_a_bias_by_query_and_key_is_refused(self):
        for mask in (torch.randn(QUERIES, KEYS), torch.randn(BATCH, HEADS, QUERIES, KEYS)):
            with self.assertRaisesRegex(RuntimeError, "got a bias by query and key.*key_bias"):
                attend(mask)

    def test_what_is_unclear_is_refused(self):
        square = torch.ones(4, 4, dtype=torch.bool)
        q = torch.randn(4, 1, 4, 2)
        with self.assertRaisesRegex(RuntimeError, "batch and queries are both 4.*may mean either"):
            sextant.attention(q, q, q, mask=square)
        for mask, message in [
            (torch.ones(QUERIES, KEYS, dtype=torch.long), "mask: expected bool or a floating type"),
            (torch.ones(3, KEYS, dtype=torch.bool), r"mask: expected \[keys\].*but got \[3, 7\]"),
            (torch.ones(2, 5, 7, dtype=torch.bool), r"mask: .*but got \[2, 5, 7\]"),
            (torch.full((KEYS,), torch.nan), "mask: expected numbers or -infinity"),
            (torch.zeros(KEYS, requires_grad=True), "mask: expected no gradient.*key_bias"),
        ]:
            with self.subTest(message), self.assertRaisesRegex(RuntimeError, message):
                attend(mask)
        with self.assertRaisesRegex(RuntimeError, "as there is a key_bias"):
            attend(torch.arange(7.0), key_bias=torch.arange(7.0))

    def test_a_hidden_row_is_zero(self):
        mask = torch.ones(QUERIES, KEYS, dtype=torch.bool)
        mask[2] = False
        self.assertTrue(attend(mask)[:, :, 2].eq(0).all())


class Padding(unittest.TestCase):
    """Values with which other libraries hide keys leave the scores of the others exact."""

    def test_low_biases_of_the_last_keys_hide_them(self):
        torch.manual_seed(0)
        q, k, v = torch.randn(3, 2, 4, 7, 8)
        shown = torch.arange(7) < 5
        for causal in (False, True):
            expected, lse = sextant.attention(q, k, v, "rope", causal=causal, mask=shown,
                                              return_lse=True)
            for low in (-1e4, -1e6, -1e9, torch.finfo(torch.bfloat16).min, -torch.inf):
                bias = torch.where(shown, 0.0, low)
                for given in ({"key_bias": bias}, {"mask": bias}):
                    with self.subTest(low=low, causal=causal, given=list(given)):
                        out, got = sextant.attention(q, k, v, "rope", causal=causal,
                                                     return_lse=True, **given)
                        torch.testing.assert_close(out, expected, rtol=0, atol=2e-6)
                        torch.testing.assert_close(got, lse, rtol=0, atol=4e-6)


if __name__ == "__main__":
    unittest.main()
