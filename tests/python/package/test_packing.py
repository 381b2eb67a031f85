"""Packed sequences: lengths as tensors, by row of the batch, and nested tensors."""

import unittest

import numpy as np
import torch

import sextant

from made_methods import inputs, layer_input, make

BY_ROW = [[0, 2, 6], [0, 4, 6]]  # two sequences in each of two rows of six


def of_each_row(f):
    """f(rows of one sequence) over the sequences of BY_ROW, in their places."""
    return torch.cat([
        torch.cat([f(b, slice(first, last)) for first, last in zip(sums, sums[1:])], 2)
        for b, sums in enumerate(BY_ROW)
    ])


class Packing(unittest.TestCase):
    def test_lengths_are_lists_or_tensors(self):
        q, k, v = inputs()
        expected = sextant.attention(q, k, v, packed_queries=[0, 2, 6], packed_keys=[0, 2, 6])
        for dtype in (torch.int32, torch.int64):
            sums = torch.tensor([0, 2, 6], dtype=dtype)
            torch.testing.assert_close(
                sextant.attention(q, k, v, packed_queries=sums, packed_keys=sums), expected)
        with self.assertRaisesRegex(RuntimeError, "packed_queries.*expected int32 or int64"):
            sextant.attention(q, k, v, packed_queries=torch.ones(3), packed_keys=[0, 2, 6])

    def test_every_method_packs_by_row(self):
        for name in sextant.methods():
            method = make(name)
            q, k, v = inputs()
            q = method.queries(q, layer_input())
            k = method.keys(k, layer_input())
            with self.subTest(name):
                out, lse = method(q, k, v, packed_queries=BY_ROW, packed_keys=BY_ROW,
                                  return_lse=True)
                expected = of_each_row(
                    lambda b, rows: method(*(x[b : b + 1, :, rows] for x in (q, k, v))))
                torch.testing.assert_close(out, expected, rtol=0, atol=1e-11)
                self.assertEqual(list(lse.shape), [2, 2, 6])
                rows = torch.tensor(BY_ROW)
                torch.testing.assert_close(
                    method(q, k, v, packed_queries=rows, packed_keys=rows), out)
                x = layer_input()
                packed = method.embed(x, packed_queries=BY_ROW)
                alone = of_each_row(lambda b, rows: method.embed(x[b : b + 1, rows])[:, None])
                torch.testing.assert_close(packed, alone.squeeze(1), rtol=0, atol=1e-11)

    def test_arguments_of_rows_are_packed_with_them(self):
        q, k, v = inputs()
        rope = make("rope")
        positions = torch.tensor([[5, 6, 0, 1, 2, 9], [3, 1, 4, 1, 5, 9]])
        bias = torch.randn(2, 6, dtype=torch.float64)
        out = rope(q, k, v, packed_queries=BY_ROW, packed_keys=BY_ROW, query_positions=positions,
                   key_positions=positions, key_bias=bias)
        expected = of_each_row(lambda b, rows: rope(
            *(x[b : b + 1, :, rows] for x in (q, k, v)), query_positions=positions[b, rows],
            key_positions=positions[b, rows], key_bias=bias[b, rows]))
        torch.testing.assert_close(out, expected, rtol=0, atol=1e-11)

    def test_arrays_are_lists(self):
        q, k, v = inputs()
        expected = sextant.attention(q, k, v, packed_queries=[0, 2, 6], packed_keys=[0, 2, 6])
        for lengths in (np.array([0, 2, 6]), np.array([0, 2, 6], dtype=np.int32), (0, 2, 6),
                        np.array([[0, 2, 6]] * 2)):
            got = sextant.attention(q, k, v, packed_queries=lengths, packed_keys=lengths)
            torch.testing.assert_close(got, expected, rtol=0, atol=0)
        self.assertTrue(torch.equal(
            sextant.attention(q, k, v, packed_queries=None, packed_keys=None),
            sextant.attention(q, k, v)))

    def test_rows_that_do_not_fit_are_errors(self):
        q, k, v = inputs()
        for queries, keys, message in [
            ([[0, 6]], BY_ROW, "packed_queries: expected one list for each of the 2 rows"),
            ([[0, 6], [0, 5]], BY_ROW, r"packed_queries: row 1: .* end at 6, but got \[0, 5\]"),
            ([[0, 6], [0, 6]], BY_ROW, "packed_keys: row 0: expected 2 entries"),
            ([0, 6], BY_ROW, "packed_keys: expected lengths for all rows of the batch or for each"),
            ([0, 4.7, 6], [0, 4, 6], "packed_queries: expected cumulative lengths, integers"),
            ([[0, 4.7, 6]] * 2, BY_ROW, "packed_queries: expected cumulative lengths, integers"),
            (torch.tensor([0.0, 6.0]), [0, 6], "packed_queries: expected int32 or int64"),
        ]:
            with self.subTest(message), self.assertRaisesRegex(RuntimeError, message):
                sextant.attention(q, k, v, packed_queries=queries, packed_keys=keys)
        with self.assertRaisesRegex(RuntimeError, "mask: expected none, as sequences are packed"):
            sextant.attention(q, k, v, packed_queries=BY_ROW, packed_keys=BY_ROW,
                              mask=torch.ones(6, dtype=torch.bool))


@unittest.skipUnless(hasattr(torch.nested, "nested_tensor_from_jagged"),
                     "this torch has no jagged nested tensors")
class Nested(unittest.TestCase):
    LENGTHS = (3, 5, 2)

    def tensors(self, dtype=torch.float64):
        torch.manual_seed(1)
        return [[torch.randn(n, 2, 4, dtype=dtype, requires_grad=True) for n in self.LENGTHS]
                for _ in range(3)]

    def nested(self, sequences):
        return torch.nested.as_nested_tensor(sequences, layout=torch.jagged).transpose(1, 2)

    def test_agrees_with_each_sequence_alone(self):
        lists = self.tensors()
        q, k, v = map(self.nested, lists)
        for name in ("rope", "t5", "shaw"):
            method = make(name)
            out, lse = method(q, k, v, return_lse=True)
            self.assertTrue(out.is_nested)
            self.assertEqual(len(lse.unbind()), len(self.LENGTHS))
            for n, got in enumerate(out.unbind()):
                alone = [x[n].transpose(0, 1)[None] for x in lists]
                torch.testing.assert_close(got[None], method(*alone))
        with self.assertRaisesRegex(RuntimeError, "q: expected 3 heads, the heads of the"):
            sextant.method("rope", heads=3, head_dim=4)(q, k, v)
        named = sextant.attention(q, k, v, method="rerope")  # its window is the longest sequence
        alone = [x[1].transpose(0, 1)[None] for x in lists]
        torch.testing.assert_close(named.unbind()[1][None],
                                   sextant.attention(*alone, method="rerope"))
        out.values().sum().backward()
        self.assertTrue(all(x.grad.abs().sum() > 0 for x in lists[0]))

    def test_other_forms_are_refused(self):
        q, k, v = map(self.nested, self.tensors())
        with self.assertRaisesRegex(RuntimeError, "k: expected a contiguous nested tensor"):
            sextant.attention(q, torch.randn(3, 2, 5, 4), v)
        with self.assertRaisesRegex(RuntimeError, "mask: expected none beside nested tensors"):
            sextant.attention(q, k, v, mask=torch.ones(5, dtype=torch.bool))
        strided = torch.nested.nested_tensor([torch.randn(2, n, 4) for n in self.LENGTHS])
        with self.assertRaisesRegex(RuntimeError, "expected .*but got layout torch.strided"):
            sextant.attention(strided, strided, strided)


if __name__ == "__main__":
    unittest.main()
