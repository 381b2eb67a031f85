"""A cache of int8 gives the attention over the numbers that it returns."""

import pathlib
import tempfile
import unittest

import torch

import sextant

from made_methods import HEADS, HEAD_DIM, options_of


class Rope(sextant.Encoding):
    def frequencies(self):
        return 10000 ** -(torch.arange(0, self.head_dim, 2) / self.head_dim)


class Recent(sextant.Encoding):
    def key_bias(self, k, positions):
        return k.double().sum(3)


class Int8Cache(unittest.TestCase):
    def rows(self, length=40, batch=2, key_heads=HEADS):
        torch.manual_seed(4)
        return (torch.randn(batch, HEADS, length, HEAD_DIM),
                *(torch.randn(batch, key_heads, length, HEAD_DIM) for _ in range(2)))

    def check(self, run, tensors, tolerance=1e-5):
        """The last row of each sequence sees the numbers of the cache."""
        cache = sextant.Cache(page_rows=16, dtype=torch.int8)
        run(*(x[:, :, :-1] for x in tensors), cache=cache)
        out = run(*(x[:, :, -1:] for x in tensors), cache=cache)
        k, v = (torch.cat(x) for x in zip(*map(cache.read, cache.sequences)))
        self.assertEqual((k.dtype, v.dtype), (torch.float32, torch.float32))
        expected = run(tensors[0][:, :, -1:], k, v, causal=True)
        self.assertLess((out - expected).abs().max().item(), tolerance)
        whole = run(*tensors)[:, :, -1:]
        self.assertLess((out - whole).abs().max().item(), 0.1)
        return cache

    @torch.no_grad()
    def test_every_method(self):
        q, k, v = self.rows()
        x = torch.randn(2, 40, HEADS * HEAD_DIM)
        for name in sextant.methods():
            with self.subTest(name):
                method = sextant.method(name, heads=HEADS, head_dim=HEAD_DIM, layers=2,
                                        train_length=40, **options_of(name))
                self.check(method, (method.queries(q, x), method.keys(k, x), v))

    @torch.no_grad()
    def test_encodings_of_ones_own(self):
        for encoding in Rope(heads=HEADS, head_dim=HEAD_DIM), Recent(heads=HEADS):
            with self.subTest(type(encoding).__name__):
                self.check(encoding, self.rows())

    @torch.no_grad()
    def test_types_of_queries_and_groups(self):
        tensors = self.rows(70, key_heads=1)
        run = lambda *t, **more: sextant.attention(*t, method="rope", **more)
        self.check(run, tensors)
        cache = sextant.Cache(dtype=torch.int8)
        out = run(*(x.bfloat16() for x in tensors), cache=cache)
        self.assertEqual(out.dtype, torch.bfloat16)
        self.assertEqual(cache.held.dtype(), "int8")

    def test_gradients_of_queries(self):
        tensors = self.rows()
        grads = []
        for dtype in torch.int8, torch.float32:
            cache = sextant.Cache(page_rows=16, dtype=dtype)
            with torch.no_grad():
                sextant.attention(*(x[:, :, :-1] for x in tensors), method="alibi", cache=cache)
            q = tensors[0][:, :, -1:].clone().requires_grad_()
            new = (x[:, :, -1:] for x in tensors[1:])
            sextant.attention(q, *new, method="alibi", cache=cache).sum().backward()
            grads.append(q.grad)
        self.assertLess((grads[0] - grads[1]).abs().max().item(), 0.1)
        self.assertGreater(grads[0].abs().max().item(), 0.1)

    @torch.no_grad()
    def test_files(self):
        tensors = self.rows(40, batch=1)
        cache = sextant.Cache(page_rows=16, dtype=torch.int8)
        sextant.attention(*tensors, cache=cache)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "prompt.cache"
            cache.save(cache.sequences[0], path)
            other = sextant.Cache(page_rows=16)
            sequence = other.load(path)
            self.assertEqual(other.held.dtype(), "int8")
            for a, b in zip(cache.read(cache.sequences[0]), other.read(sequence)):
                self.assertTrue(torch.equal(a, b))

    @torch.no_grad()
    def test_what_it_cannot_hold_is_refused(self):
        q, k, v = self.rows(9)
        k[1, 0, 7, 2] = torch.nan
        cache = sextant.Cache(dtype=torch.int8)
        with self.assertRaisesRegex(RuntimeError, "k: expected finite numbers, as int8 .* got nan"):
            sextant.attention(q, k, v, cache=cache)
        self.assertEqual(cache.sequences, [])
        cache = sextant.Cache(page_rows=16, dtype=torch.int8)
        sextant.attention(*(x[:, :, :8].repeat(1, 1, 2, 1)[:, :, :15] for x in (q, v, v)),
                          cache=cache)
        before = [cache.read(sequence) for sequence in cache.sequences]
        with self.assertRaisesRegex(RuntimeError, "k: expected finite numbers"):
            sextant.attention(*(x[:, :, 7:8] for x in (q, k, v)), cache=cache)
        for one, sequence in zip(before, cache.sequences):
            for a, b in zip(one, cache.read(sequence)):
                self.assertTrue(torch.equal(a, b))
        with self.assertRaisesRegex(RuntimeError, "rotated_keys: expected none, as keys are"):
            sextant.attention(q, v, v, method="rope",
                              cache=sextant.Cache(dtype=torch.int8, rotated_keys=True))
        with self.assertRaisesRegex(RuntimeError, "float16 or int8, but got int32"):
            sextant.attention(q, v, v, cache=sextant.Cache(dtype=torch.int32))


if __name__ == "__main__":
    unittest.main()
