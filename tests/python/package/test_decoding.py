"""Decoding over a cache gives the same as one call."""

import pathlib
import tempfile
import unittest

import torch

import sextant

from made_methods import HEADS, HEAD_DIM, LENGTH, in_parts, make, methods_of_decoders, random_rows


class Decoding(unittest.TestCase):
    """Decoding over a cache in any chunks gives the same as one call, also after truncating,
    forking, moving and saving sequences."""

    @torch.no_grad()
    def test_every_method(self):
        for name, method, tensors, whole in methods_of_decoders():
            with self.subTest(name):
                for ends in (range(1, LENGTH + 1), (3, 4, LENGTH)):
                    cache = sextant.Cache(page_rows=16)
                    parts = in_parts(lambda *t: method(*t, cache=cache), tensors, ends)
                    self.assertLess((parts - whole).abs().max().item(), 1e-5)
                    rows = [cache.rows(sequence) for sequence in cache.sequences]
                    self.assertEqual(rows, [LENGTH, LENGTH])

    @torch.no_grad()
    def test_recurrence_over_the_input(self):
        x = torch.randn(2, 9, HEADS * HEAD_DIM)
        for cell in ("tanh", "gru"):
            method = sextant.method(
                "recursive", heads=HEADS, head_dim=HEAD_DIM, over="input", cell=cell
            )
            whole = method.embed(x)
            torch_cell = (torch.nn.GRU if cell == "gru" else torch.nn.RNN)(
                x.size(2), x.size(2), batch_first=True
            )
            torch_cell.load_state_dict(method.state_dict())
            self.assertLess((torch_cell(x)[0] - whole).abs().max().item(), 1e-6)
            part = method.embed(x[:, 4:], first_query=4, input_before=whole[:, 3:4])
            self.assertLess((part - whole[:, 4:]).abs().max().item(), 1e-6)
            with self.assertRaisesRegex(RuntimeError, "input_before: expected the result at the"):
                method.embed(x[:, 4:], first_query=4)
            with self.assertRaisesRegex(RuntimeError, "expected none, as first_query is 0"):
                method.embed(x, input_before=whole[:, 3:4])
            with self.assertRaisesRegex(RuntimeError, "expected none with last=True"):
                method.embed(x[:, 4:], first_query=4, last=True, input_before=whole[:, 3:4])
            with self.assertRaisesRegex(RuntimeError, "floating-point numbers, but got Long"):
                method.embed(x[:, 4:], first_query=4, input_before=whole[:, 3:4].long())
        with self.assertRaisesRegex(RuntimeError, "as the method does not continue from it"):
            make("sinusoidal").embed(x.double(), input_before=x[:, :1])

    def test_grouped_heads_by_name(self):
        q = random_rows(40, heads=4)[0]
        _, k, v = random_rows(40, heads=2)
        whole = sextant.attention(q, k, v, method="rope")
        cache = sextant.Cache()
        parts = in_parts(
            lambda *t: sextant.attention(*t, method="rope", cache=cache), (q, k, v), (30, 31, 40)
        )
        self.assertLess((parts - whole).abs().max().item(), 1e-5)

    def test_texts_of_other_lengths_and_positions(self):
        options = dict(method="rope", options={"stretch": "dynamic-ntk"}, train_length=8)
        tensors = random_rows(30)
        whole = sextant.attention(*tensors, **options)
        cache = sextant.Cache()
        cache.prepare(*tensors[1:])
        short, long = cache.add(), cache.add()
        part = lambda n, first, last: [x[n : n + 1, :, first:last] for x in tensors]
        sextant.attention(*part(1, 0, 25), cache=cache, sequences=[long], **options)
        for step in range(5):
            both = part(0, step, step + 1), part(1, 25 + step, 26 + step)
            new = [torch.cat(x) for x in zip(*both)]
            out = sextant.attention(*new, cache=cache, sequences=[short, long], **options)
            self.assertLess((out[0] - whole[0, :, step : step + 1]).abs().max().item(), 1e-5)
            self.assertLess((out[1] - whole[1, :, 25 + step : 26 + step]).abs().max().item(), 1e-5)

    def test_forks_share_and_truncated_texts_forget(self):
        tensors = random_rows(60, batch=1)
        whole = sextant.attention(*tensors, method="alibi")
        cache = sextant.Cache(page_rows=16)
        run = lambda first, last, **more: sextant.attention(
            *(x[:, :, first:last] for x in tensors), method="alibi", cache=cache, **more
        )
        run(0, 40)
        (sequence,) = cache.sequences
        pages = cache.held.pages_in_use()
        fork = cache.fork(sequence)
        self.assertEqual(cache.held.pages_in_use(), pages)
        run(0, 20, sequences=[fork])  # the fork differs
        cache.truncate(sequence, 33)
        out = run(33, 60, sequences=[sequence])
        self.assertLess((out - whole[:, :, 33:]).abs().max().item(), 1e-5)
        cache.remove(fork)
        cache.remove(sequence)
        self.assertEqual(cache.held.pages_in_use(), 0)
        self.assertEqual(cache.sequences, [])

    def test_moved_and_cut_texts(self):
        q, k, v = random_rows(20, batch=1)
        cache = sextant.Cache()
        cache.prepare(k, v)
        plain = cache.add(first_position=5)
        rotated = cache.add(first_position=5, rotated_by='{"base": 500}')
        for sequence in (plain, rotated):
            cache.append(k[:, :, :19], v[:, :, :19], sequences=[sequence])
            cache.drop(sequence, 4, 3)
            cache.rerotate(sequence, first_position=1000)
            self.assertEqual(cache.next_position(sequence), 1016)
        kept = [*range(4), *range(7, 20)]
        rows = q[:, :, 19:], k[:, :, kept], v[:, :, kept]
        expected = sextant.attention(*rows, method="rope", options={"base": 500})
        new = q[:, :, 19:], k[:, :, 19:], v[:, :, 19:]
        slow, fast = ({"method": "rope", "options": {"base": base}} for base in (500, 700))
        out = sextant.attention(*new, **slow, cache=cache, sequences=[plain])
        self.assertLess((out - expected).abs().max().item(), 1e-5)
        # The cache rotates held keys further for another spectrum. Calls rotate the queries, and so
        # may their callers.
        cache.rerotate(rotated, rotated_by='{"base": 700}')
        with self.assertRaisesRegex(RuntimeError, "held rotated: .* have to be rotated again"):
            sextant.attention(*new, **slow, cache=cache, sequences=[rotated])
        expected = sextant.attention(*rows, **fast)
        out = sextant.attention(*new, **fast, cache=cache, sequences=[rotated])
        self.assertLess((out - expected).abs().max().item(), 1e-5)
        cache.truncate(rotated, 16)
        query = sextant.rotate(new[0], torch.tensor([1016]), base=700)
        out = sextant.attention(query, *new[1:], cache=cache, sequences=[rotated])
        expected = sextant.attention(*rows, **fast)
        self.assertLess((out - expected).abs().max().item(), 1e-5)

    def test_keys_held_rotated(self):
        tensors = random_rows(40)
        yarn = {"stretch": {"rope_type": "yarn", "factor": 4,
                            "original_max_position_embeddings": 16}}
        for options in ({"base": 500}, {"pairing": "interleaved"}, yarn):
            with self.subTest(**options):
                whole = sextant.attention(*tensors, method="rope", options=options)
                cache = sextant.Cache(page_rows=16, rotated_keys=True)
                run = lambda *t: sextant.attention(*t, method="rope", cache=cache,
                                                    options=options)
                parts = in_parts(run, tensors, (17, 18, 40))
                self.assertLess((parts - whole).abs().max().item(), 1e-5)
                keys, _ = cache.read(cache.sequences[0])
                rotated = sextant.rotate(tensors[1][:1], torch.arange(40), **options)
                self.assertLess((keys - rotated).abs().max().item(), 1e-5)

    def test_keys_held_rotated_give_gradients_to_queries(self):
        tensors = random_rows(12)
        d_out = torch.randn_like(tensors[0][:, :, 11:])
        grads = []
        for rotated_keys in (False, True):
            cache = sextant.Cache(rotated_keys=rotated_keys)
            sextant.attention(*(x[:, :, :11] for x in tensors), method="rope", cache=cache)
            q = tensors[0][:, :, 11:].clone().requires_grad_()
            new = (x[:, :, 11:] for x in tensors[1:])
            sextant.attention(q, *new, method="rope", cache=cache).backward(d_out)
            grads.append(q.grad)
        self.assertLess((grads[0] - grads[1]).abs().max().item(), 1e-5)

    @torch.no_grad()
    def test_rotated_keys_that_would_need_another_rotation_are_refused(self):
        tensors = random_rows(20)
        part = lambda first, last: (x[:, :, first:last] for x in tensors)
        dynamic = dict(method="rope", options={"stretch": "dynamic-ntk"}, train_length=16)
        for first, later, message in (
            (dict(method="rope"), dict(method="rope", options={"base": 500}),
             "would have to be rotated again"),
            (dynamic, dynamic, "would have to be rotated again"),
            (dict(method="rope"), dict(method="alibi"), "rotated_keys: expected a method that rot"),
            (dict(method="alibi"), None, "rotated_keys: expected a method that rotates keys"),
            (dict(method="xpos"), None, "without growth"),
            (dict(method="rerope", options={"window": 4}), None, "once, at their positions"),
        ):
            with self.subTest(first):
                cache = sextant.Cache(rotated_keys=True)
                run = lambda options, first, last: sextant.attention(
                    *part(first, last), cache=cache, **options
                )
                if later is None:
                    with self.assertRaisesRegex(RuntimeError, message):
                        run(first, 0, 15)
                    self.assertEqual(cache.sequences, [])
                else:
                    run(first, 0, 15)
                    with self.assertRaisesRegex(RuntimeError, message):
                        run(later, 15, 20)
                    self.assertEqual([cache.rows(n) for n in cache.sequences], [15, 15])

    @torch.no_grad()
    def test_numbers_that_the_type_cannot_hold_are_refused(self):
        for dtype, most, magnitude in ((torch.float16, "65504, which float16", 70000.0),
                                       (torch.bfloat16, ".*, which bfloat16", 3.4e38)):
            with self.subTest(dtype):
                cache = sextant.Cache(dtype=dtype)
                q, k, v = random_rows(9)
                sextant.attention(*(x[:, :, :5] for x in (q, k, v)), cache=cache)
                v[1, 0, 7, 2] = -magnitude
                for call in (lambda *new: sextant.attention(*new, cache=cache),
                             lambda _, k, v: cache.append(k, v)):
                    with self.assertRaisesRegex(
                        RuntimeError,
                        f"v: expected magnitudes up to {most} holds, .* head 0, row 2, column 2",
                    ):
                        call(*(x[:, :, 5:] for x in (q, k, v)))
                    self.assertEqual([cache.rows(n) for n in cache.sequences], [5, 5])

    def test_saved_texts_come_back(self):
        tensors = random_rows(21, batch=1)
        cache = sextant.Cache()
        sextant.attention(*tensors, cache=cache)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "prompt.cache"
            cache.save(cache.sequences[0], path)
            self.assertEqual(list(pathlib.Path(folder).iterdir()), [path])
            other = sextant.Cache(page_rows=32)
            sequence = other.load(path)
            for a, b in zip(cache.read(cache.sequences[0]), other.read(sequence)):
                self.assertTrue(torch.equal(a, b))
            whole = path.read_bytes()
            path.write_bytes(whole[:100] + bytes([whole[100] ^ 1]) + whole[101:])
            with self.assertRaisesRegex(RuntimeError, r"saved cache: checksum at byte \d+"):
                other.load(path)
            path.write_bytes(whole[:-1])
            with self.assertRaisesRegex(RuntimeError, "saved cache: body at byte 72"):
                sextant.Cache().load(path)
            with self.assertRaisesRegex(RuntimeError, "nowhere: cannot open it"):
                other.load(pathlib.Path(folder) / "nowhere")
            self.assertEqual(other.sequences, [sequence])

    def test_errors_leave_the_cache_as_it_was(self):
        tensors = random_rows(4)
        cache = sextant.Cache()

        def fails(text, *arguments, **options):
            with self.assertRaises(RuntimeError) as caught:
                sextant.attention(*arguments, cache=cache, **options)
            self.assertIn(text, str(caught.exception))

        fails("window: window: expected an integer", *tensors, method="window")
        fails("float32", *(x.double() for x in tensors))
        fails("expected a tensor without gradient", *(x.clone().requires_grad_() for x in tensors))
        self.assertEqual(cache.sequences, [])
        with self.assertRaisesRegex(RuntimeError, "it is empty"):
            cache.rows(0)
        sextant.attention(*tensors, cache=cache)
        fails("causal: expected True", *tensors, causal=False)
        fails("mask: expected None", *tensors, mask=torch.ones(1, 1, 4, 4, dtype=torch.bool))
        fails("expected each once", *tensors, sequences=[0, 0])
        fails("sequence: expected one that was added", *tensors, sequences=[0, 9])
        fails("batch 2", *tensors, sequences=[0])
        fails("k.heads: expected 2, but got 1", *(x[:, :1] for x in tensors))
        fails("q: expected the 4 rows of k, but got 3", tensors[0][:, :, :3], *tensors[1:])
        self.assertEqual([cache.rows(sequence) for sequence in cache.sequences], [4, 4])


if __name__ == "__main__":
    unittest.main()
