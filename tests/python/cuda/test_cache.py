"""A cache on a CUDA device gives what a cache on the CPU gives."""

import pathlib
import sys
import tempfile
import unittest

import stand_in  # noqa: F401  (a CUDA device)
import torch

import sextant

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "package"))

from made_methods import HEADS, LENGTH, in_parts, methods_of_decoders, random_rows  # noqa: E402


def on_cuda(tensors):
    return [x.to("cuda") for x in tensors]


@torch.no_grad()
def both(act, **options):
    """The results of act(cache, tensors) on the CPU and on CUDA, tensors being 40 rows of two
    sequences."""
    return [act(sextant.Cache(page_rows=16, **options), [x.to(device) for x in random_rows(40)])
            for device in ("cpu", "cuda")]


def fill(cache, k, v, **first):
    """Adds a sequence for each batch entry and appends its rows."""
    cache.prepare(k, v)
    for _ in range(k.size(0)):
        cache.add(**first)
    cache.append(k, v)


def part(tensors, first, last, n=slice(None)):
    return [x[n, :, first:last] for x in tensors]


class CudaCache(unittest.TestCase):
    def expect_equal(self, found, expected, tolerance=0.0):
        self.assertEqual((found.device.type, found.shape, found.dtype),
                         ("cuda", expected.shape, expected.dtype))
        self.assertLessEqual((found.cpu() - expected).abs().max().item(), tolerance)

    @torch.no_grad()
    def test_every_method(self):
        for name, method, tensors, whole in methods_of_decoders():
            with self.subTest(name):
                method.to("cuda")
                cache = sextant.Cache(page_rows=16)
                parts = in_parts(lambda *t: method(*t, cache=cache), on_cuda(tensors),
                                 (3, 4, LENGTH))
                self.expect_equal(parts, whole, 1e-5)
                self.assertEqual([cache.rows(n) for n in cache.sequences], [LENGTH, LENGTH])

    def test_an_encoding_of_one_s_own(self):
        class Own(sextant.Encoding):
            def bias(self, distances):
                return -distances.abs().sqrt()

        def act(cache, tensors):
            own = Own(heads=HEADS, key_heads=HEADS)
            return in_parts(lambda *t: own(*t, cache=cache), tensors, (17, 18, 40))

        expected, found = both(act)
        self.expect_equal(found, expected, 1e-5)

    def test_forks_share_pages_and_truncated_sequences_forget(self):
        def act(cache, tensors):
            run = lambda first, last, n: sextant.attention(
                *part(tensors, first, last, slice(n, n + 1)), method="alibi", cache=cache,
                sequences=[ids[n]])
            cache.prepare(*tensors[1:])
            ids = [cache.add()]
            run(0, 20, 0)
            ids.append(cache.fork(ids[0]))
            self.assertEqual(cache.held.pages_in_use(), 2)
            run(20, 30, 1)
            cache.truncate(ids[0], 10)
            run(10, 40, 0)
            self.assertEqual(cache.held.pages_in_use(), 5)
            stored = [cache.read(sequence) for sequence in ids]
            cache.remove(ids[0])
            cache.remove(ids[1])
            self.assertEqual(cache.held.pages_in_use(), 0)
            return stored

        expected, found = both(act)
        for ours, theirs in zip(found, expected):
            for x, y in zip(ours, theirs):
                self.expect_equal(x, y)

    def test_dropped_rows_and_moved_sequences(self):
        for first, count in ((4, 3), (0, 16), (16, 24), (7, 33), (5, 0)):
            def act(cache, tensors):
                fill(cache, *tensors[1:])
                sequence, other = cache.sequences
                fork = cache.fork(sequence)
                cache.drop(sequence, first, count)
                cache.rerotate(sequence, first_position=100)
                new = part(tensors, 0, 1, slice(0, 1))
                out = sextant.attention(*new, method="rope", cache=cache, sequences=[sequence])
                self.assertEqual(cache.rows(sequence), 41 - count)
                pages = cache.held.pages_in_use()
                return [*cache.read(sequence), *cache.read(other), *cache.read(fork), out, pages]

            with self.subTest(first=first, count=count):
                expected, found = both(act)
                self.assertEqual(found.pop(), expected.pop())
                self.expect_equal(found.pop(), expected.pop(), 1e-5)
                for x, y in zip(found, expected):
                    self.expect_equal(x, y)

    def test_a_file_of_either_device_is_read_on_the_other(self):
        with tempfile.TemporaryDirectory() as folder:
            def act(cache, tensors):
                device = tensors[0].device.type
                fill(cache, *part(tensors[1:], 0, 40, slice(0, 1)), first_position=7)
                cache.save(cache.sequences[0], f"{folder}/{device}")
                return f"{folder}/{device}"

            files = both(act, dtype=torch.bfloat16)
            contents = [pathlib.Path(file).read_bytes() for file in files]
            self.assertEqual(*contents)
            cache = sextant.Cache(device="cuda")
            sequence = cache.load(files[0])
            host = sextant.Cache()
            expected = host.read(host.load(files[0]))
            self.assertEqual(cache.first_position(sequence), 7)
            for x, y in zip(cache.read(sequence), expected):
                self.expect_equal(x, y)

    def test_types(self):
        for dtype in (torch.bfloat16, torch.float16):
            def act(cache, tensors):
                fill(cache, *tensors[1:])
                return cache.read(cache.sequences[1])

            with self.subTest(dtype):
                expected, found = both(act, dtype=dtype)
                for x, y in zip(found, expected):
                    self.assertEqual(x.dtype, dtype)
                    self.expect_equal(x, y)

    def refused(self, message, act, cache):
        with self.assertRaisesRegex(RuntimeError, message):
            act(cache)
        return cache

    @torch.no_grad()
    def test_refusals_name_the_field_and_change_nothing(self):
        q, k, v = on_cuda(random_rows(4))
        attend = lambda cache: sextant.attention(q, k, v, method="rope", cache=cache)
        self.refused("dtype: expected float32, bfloat16 or float16 on cuda:0, but got int8", attend,
                     sextant.Cache(dtype=torch.int8))
        cache = self.refused("rotated_keys: expected False, as the cache is on cuda:0", attend,
                             sextant.Cache(rotated_keys=True))
        self.assertEqual(cache.sequences, [])
        self.refused("device: expected cpu or cuda, but got meta", attend,
                     sextant.Cache(device="meta"))
        self.refused("q: expected .* on cpu, as the cache, but got Float on cuda:0", attend,
                     sextant.Cache(device="cpu"))
        cache = sextant.Cache(page_rows=16, dtype=torch.float16)
        attend(cache)
        self.refused("q: expected .* on cuda:0, as the cache, but got Float on cpu",
                     lambda c: sextant.attention(*random_rows(4), method="rope", cache=c), cache)
        self.refused("k: expected finite numbers that are finite in Half, but got a larger one",
                     lambda c: c.append(k * 1e6, v), cache)
        self.refused("rotated_keys: expected none, as the cache is on cuda:0",
                     lambda c: c.add(rotated_keys='{"base": 500}'), cache)
        self.refused("first, count: expected a range of its 4 rows, but got 2, 3",
                     lambda c: c.drop(c.sequences[0], 2, 3), cache)
        self.assertEqual([cache.rows(n) for n in cache.sequences], [4, 4])
        self.assertEqual(cache.held.pages_in_use(), 2)

    def test_keys_are_constants_and_queries_have_gradients(self):
        expected, found = [], []
        for device, into in (("cpu", expected), ("cuda", found)):
            q, k, v = (x.to(device) for x in random_rows(12))
            cache = sextant.Cache()
            fill(cache, k[:, :, :11], v[:, :, :11])
            query = q[:, :, 11:].clone().requires_grad_()
            out = sextant.attention(query, k[:, :, 11:], v[:, :, 11:], method="rope", cache=cache)
            out.backward(torch.ones_like(out))
            into.append(query.grad)
        self.expect_equal(found[0], expected[0], 1e-5)


if __name__ == "__main__":
    unittest.main()
