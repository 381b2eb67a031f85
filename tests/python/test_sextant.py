"""Tests of the Python package: gradients of every method, golden cases, tracing and errors."""

import json
import pathlib
import subprocess
import sys
import tempfile
import types
import unittest

import torch

import sextant
from sextant.conformance import run_case

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
HEADS, HEAD_DIM, LENGTH = 2, 4, 6
# Binary needs as many bits as the model is wide. Clamps are smooth: finite differences cannot check
# clamps that pass gradients through. Small tables save time.
OPTIONS = {
    "binary": {"bits": 8},
    "deberta": {"buckets": 4, "max_positions": 8},
    "emd": {"options": {"buckets": 4, "max_positions": 8}},
    "fire": {"threshold": 3},  # so that queries lie on either side of it
    "kerple-log": {"clamp": "smooth"},
    "kerple-power": {"clamp": "smooth"},
}


def make(name, **options):
    torch.manual_seed(1)
    method = sextant.method(name, heads=HEADS, head_dim=HEAD_DIM, layers=2, train_length=LENGTH,
                            dtype=torch.float64, **OPTIONS.get(name, {}), **options)
    for parameter in method.parameters():  # zeros could hide a wrong gradient
        parameter.data += 0.3 * torch.randn_like(parameter)
    return method


def token_methods():
    """All combinations of tables by token id for complex, and sinusoids that skip padding."""
    for amplitude in ("input", "word"):
        for frequency in ("component", "word", "word-and-component"):
            for phase in ("none", "component", "word", "word-and-component"):
                if amplitude == "word" or "word" in frequency or "word" in phase:
                    yield make("complex", amplitude=amplitude, frequency=frequency, phase=phase,
                               vocabulary=5)
    yield make("sinusoidal", layout="fairseq", padding_idx=1)


def traced_token_methods():
    """One of these for each path through the operator, since tracing takes seconds."""
    yield make("complex", frequency="word", phase="word-and-component", vocabulary=5)
    yield make("complex", amplitude="word", frequency="word-and-component", phase="word",
               vocabulary=5)
    yield make("sinusoidal", layout="fairseq", padding_idx=1)


TOKEN_IDS = torch.tensor([[0, 2, 1, 1, 4, 0], [3, 3, 2, 0, 1, 4]])


def inputs():
    torch.manual_seed(2)
    return [torch.randn(2, HEADS, LENGTH, HEAD_DIM, dtype=torch.float64, requires_grad=True)
            for _ in range(3)]


def layer_input():
    torch.manual_seed(3)
    return torch.randn(2, LENGTH, HEADS * HEAD_DIM, dtype=torch.float64, requires_grad=True)


def call(method, x, q, k, v, parameters):
    """Attention of layer 1, with the columns that the method adds to keys."""
    identity = method.name, method.shape, method.options, list(parameters)
    k = torch.cat((k, torch.ops.sextant.method_key_columns(*identity, x, layer=1)), 3)
    return torch.ops.sextant.method_attend(*identity, q, k, v, layer=1)


class EveryMethod(unittest.TestCase):
    def test_gradients_agree_with_finite_differences(self):
        for name in sextant.methods():
            with self.subTest(name):
                method = make(name)
                parameters = [p.detach().requires_grad_() for p in method.tensors()]
                x = layer_input()
                self.check(lambda *t: call(method, *t[:4], t[4:]), [x, *inputs(), *parameters])
                for last in (False, True):
                    self.check(
                        lambda x, *p: torch.ops.sextant.method_embed(
                            method.name, method.shape, method.options, list(p), x, last=last
                        ),
                        [x, *parameters],
                    )

    def test_gradients_of_tables_by_word(self):
        for method in token_methods():
            with self.subTest(method.options):
                parameters = [p.detach().requires_grad_() for p in method.tensors()]
                self.check(
                    lambda x, *p: torch.ops.sextant.method_embed(
                        method.name, method.shape, method.options, list(p), x, token_ids=TOKEN_IDS
                    ),
                    [layer_input(), *parameters],
                )

    def test_words_that_nobody_reads_are_an_error(self):
        with self.assertRaisesRegex(RuntimeError, "token_ids: expected none"):
            make("learned").embed(layer_input(), token_ids=TOKEN_IDS)
        with self.assertRaisesRegex(RuntimeError, r"token_ids: expected int64 \[2, 6\]"):
            make("complex", phase="word", vocabulary=5).embed(layer_input())

    def test_a_parameter_says_whose_projection_it_is(self):
        specs = {s["name"]: s.get("same_as") for s in make("deberta", version=3).specs}
        self.assertEqual(specs["layer.1.attention.self.query_proj.bias"],
                         {"of": "query", "layer": 1, "bias": True})
        self.assertEqual(specs["layer.0.attention.self.key_proj.weight"],
                         {"of": "key", "layer": 0, "bias": False})
        self.assertIsNone(specs["rel_embeddings.weight"])

    def check(self, function, tensors):
        # Central differences with a step of 1e-5 have an error of about 1e-10.
        torch.autograd.gradcheck(function, tensors, eps=1e-5, atol=1e-7, rtol=1e-7)

    def test_float32_agrees_with_float64(self):
        for name in sextant.methods():
            with self.subTest(name):
                method = make(name)
                q, k, v = inputs()
                k = method.keys(k, layer_input())
                out = method(q, k, v)
                single = method.float()(q.float(), k.float(), v.float())
                self.assertLess((out - single).abs().max().item(), 2e-5)

    def test_queries_may_come_in_parts(self):
        for name in sextant.methods():
            with self.subTest(name):
                method = make(name)
                q, k, v = inputs()
                k = method.keys(k, layer_input())
                whole = method(q, k, v)
                last = method(q[:, :, 4:], k, v)
                self.assertLess((whole[:, :, 4:] - last).abs().max().item(), 1e-12)


class Decoding(unittest.TestCase):
    """Decoding over a cache in any chunks gives the same as one call, also after truncating,
    forking, moving and saving sequences."""

    def rows(self, length, batch=2, heads=HEADS, seed=3):
        torch.manual_seed(seed)
        return [torch.randn(batch, heads, length, HEAD_DIM) for _ in range(3)]

    def in_parts(self, run, tensors, ends):
        first, parts = 0, []
        for last in ends:
            parts.append(run(*(x[:, :, first:last] for x in tensors)))
            first = last
        return torch.cat(parts, 2)

    @torch.no_grad()
    def test_every_method(self):
        q, k, v = self.rows(LENGTH)
        for name in sextant.methods():
            with self.subTest(name):
                method = make(name).float()
                tensors = q, method.keys(k, layer_input().float()), v
                whole = method(*tensors)
                for ends in (range(1, LENGTH + 1), (3, 4, LENGTH)):
                    cache = sextant.Cache(page_rows=16)
                    parts = self.in_parts(lambda *t: method(*t, cache=cache), tensors, ends)
                    self.assertLess((parts - whole).abs().max().item(), 1e-5)
                    rows = [cache.rows(sequence) for sequence in cache.sequences]
                    self.assertEqual(rows, [LENGTH, LENGTH])

    def test_grouped_heads_by_name(self):
        q = self.rows(40, heads=4)[0]
        _, k, v = self.rows(40, heads=2)
        whole = sextant.attention(q, k, v, method="rope")
        cache = sextant.Cache()
        parts = self.in_parts(
            lambda *t: sextant.attention(*t, method="rope", cache=cache), (q, k, v), (30, 31, 40)
        )
        self.assertLess((parts - whole).abs().max().item(), 1e-5)

    def test_texts_of_other_lengths_and_positions(self):
        options = dict(method="rope", stretch="dynamic-ntk", train_length=8)
        tensors = self.rows(30)
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
        tensors = self.rows(60, batch=1)
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
        q, k, v = self.rows(20, batch=1)
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
        expected = sextant.attention(*rows, method="rope", base=500)
        new = q[:, :, 19:], k[:, :, 19:], v[:, :, 19:]
        out = sextant.attention(*new, method="rope", base=500, cache=cache, sequences=[plain])
        self.assertLess((out - expected).abs().max().item(), 1e-5)
        # The cache rotates held keys further for another spectrum; callers rotate the queries.
        cache.rerotate(rotated, rotated_by='{"base": 700}')
        with self.assertRaisesRegex(RuntimeError, "expected plain keys"):
            sextant.attention(*new, method="rope", base=700, cache=cache, sequences=[rotated])
        query = sextant.rotate(new[0], torch.tensor([1016]), base=700)
        out = sextant.attention(query, *new[1:], cache=cache, sequences=[rotated])
        expected = sextant.attention(*rows, method="rope", base=700)
        self.assertLess((out - expected).abs().max().item(), 1e-5)

    def test_saved_texts_come_back(self):
        tensors = self.rows(21, batch=1)
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
        tensors = self.rows(4)
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


class Narrow(unittest.TestCase):
    """bfloat16 and float16: the same values give the float32 results, rounded once."""

    ROUNDING = {torch.bfloat16: 2.0**-8, torch.float16: 2.0**-11}  # half a unit in the last place

    def leaves(self, tensors, dtype):
        return [x.detach().to(dtype).requires_grad_() for x in tensors]

    def run_both(self, function, tensors, dtype):
        """Pairs: a result or gradient of narrow tensors, and that of the same values in float64."""
        narrow = self.leaves(tensors, dtype)
        wide = self.leaves(narrow, torch.float64)
        outs = [function(*narrow), function(*wide)]
        self.assertEqual(outs[0].dtype, dtype)
        torch.manual_seed(4)
        d_out = torch.randn(outs[0].shape, dtype=torch.float64).to(dtype)
        pairs = [[outs[0].detach(), outs[1].detach()]]
        if not outs[0].requires_grad:
            return pairs
        for out in outs:
            out.backward(d_out.to(out.dtype))
        for x, y in zip(narrow, wide):
            self.assertEqual(x.grad is None, y.grad is None)
            if x.grad is not None:
                self.assertEqual(x.grad.dtype, dtype)
                pairs.append([x.grad, y.grad])
        return pairs

    def check(self, function, tensors, dtype):
        """Results and gradients are rounded once. Gradients are computed from the rounded result,
        and in some (of a bias of all keys) the terms of the sum cancel, so the bound of all
        gradients is relative to the largest one."""
        u = self.ROUNDING[dtype]
        (got, exact), *gradients = self.run_both(function, tensors, dtype)
        self.assertLess(((got.double() - exact).abs() - u * exact.abs()).max().item(), 2e-5)
        gradients = [pair for pair in gradients if pair[0].numel() > 0]
        most = max((exact.abs().max().item() for _, exact in gradients), default=0)
        for n, (got, exact) in enumerate(gradients):
            wrong = (got.double() - exact).abs() - u * exact.abs()
            self.assertLess(wrong.max().item(), 3 * u * most + 2e-5, f"gradient {n}")

    def test_every_method(self):
        for name in sextant.methods():
            for dtype in self.ROUNDING:
                with self.subTest(name, dtype=dtype):
                    method = make(name)
                    identity = method.name, method.shape, method.options
                    q, k, v = inputs()
                    tensors = q, method.keys(k, layer_input()), v, *method.tensors()
                    self.check(
                        lambda q, k, v, *p: torch.ops.sextant.method_attend(
                            *identity, list(p), q, k, v, layer=1
                        ),
                        tensors,
                        dtype,
                    )
                    for last in (False, True):
                        self.check(
                            lambda x, *p: torch.ops.sextant.method_embed(
                                *identity, list(p), x, last=last
                            ),
                            [layer_input(), *method.tensors()],
                            dtype,
                        )

    def test_of_a_module_and_of_float32_parameters_alike(self):
        x = [t.bfloat16() for t in inputs()]
        for name in ("alibi", "t5", "transformer-xl", "rope", "deberta"):
            with self.subTest(name):
                method = make(name).bfloat16()
                out = method(*x)
                self.assertEqual(out.dtype, torch.bfloat16)
                self.assertTrue(torch.equal(out, method.float()(*x)))  # the same values

    def test_operands_may_differ(self):
        q, k, v = (t.detach().float() for t in inputs())
        narrow = k.bfloat16(), v.half()
        out = sextant.attention(q, *narrow, method="rope")
        self.assertEqual(out.dtype, torch.float32)
        wide = sextant.attention(q, *(t.float() for t in narrow), method="rope")
        self.assertTrue(torch.equal(out, wide))

    def test_strides_and_lse(self):
        torch.manual_seed(5)
        for dtype in self.ROUNDING:
            # q, k and v with the strides of a joint projection.
            x = torch.randn(2, 9, 3, HEADS, HEAD_DIM).to(dtype)
            q, k, v = (x[:, :, n].transpose(1, 2) for n in range(3))
            runs = torch.tensor([[[[0, i + 1] for i in range(9)]]])
            frames = torch.tensor([[-1, 0, 9, 0, 0, 9, 0]])
            out, lse = torch.ops.sextant.attend(q, k, v, 0.5, frames, runs)
            wide, wide_lse = torch.ops.sextant.attend(
                q.float(), k.float(), v.float(), 0.5, frames, runs
            )
            self.assertTrue(torch.equal(out, wide.to(dtype)))
            self.assertEqual(lse.dtype, torch.float32)
            self.assertTrue(torch.equal(lse, wide_lse))
            # lse has a gradient as well.
            leaves = self.leaves((q, k, v), dtype)
            torch.ops.sextant.attend(*leaves, 0.5, frames, runs)[1].sum().backward()
            exact = self.leaves(leaves, torch.float32)
            torch.ops.sextant.attend(*exact, 0.5, frames, runs)[1].sum().backward()
            for got, expected in zip(leaves[:2], exact):
                self.assertTrue(torch.equal(got.grad, expected.grad.to(dtype)))

    @torch.no_grad()
    def test_caches_hold_what_they_are_given_or_asked_for(self):
        q, k, v = (t.detach().float() for t in inputs())
        for dtype in self.ROUNDING:
            rounded = [t.to(dtype) for t in (q, k, v)]
            for name in ("none", "rope", "alibi", "transformer-xl", "skew"):
                with self.subTest(name, dtype=dtype):
                    method = make(name).float()
                    whole = method(rounded[0].float(), *(t.float() for t in rounded[1:]))
                    asked = sextant.Cache(page_rows=16, dtype=dtype)
                    given = sextant.Cache(page_rows=16)
                    for first, last in ((0, 4), (4, 5), (5, LENGTH)):
                        part = [t[:, :, first:last] for t in rounded]
                        exact = whole[:, :, first:last]
                        out = method(*(t.float() for t in part), cache=asked)
                        self.assertLess((out - exact).abs().max().item(), 1e-5)
                        out = method(*part, cache=given)
                        self.assertEqual(out.dtype, dtype)
                        bound = self.ROUNDING[dtype] * exact.abs() + 1e-5
                        self.assertTrue(((out.float() - exact).abs() < bound).all())
                    for cache in (asked, given):
                        self.assertEqual(cache.held.dtype(), str(dtype)[6:])
                        held = cache.read(cache.sequences[1])
                        self.assertTrue(torch.equal(held[0][0], rounded[1][1]))
                        self.assertTrue(torch.equal(held[1][0], rounded[2][1]))
                    with tempfile.TemporaryDirectory() as folder:
                        path = pathlib.Path(folder) / "text"
                        given.save(given.sequences[0], path)
                        again = sextant.Cache()
                        loaded = again.read(again.load(path))
                        saved = given.read(given.sequences[0])
                        self.assertTrue(torch.equal(loaded[0], saved[0]))
                        with self.assertRaisesRegex(RuntimeError, "heads, columns and format"):
                            sextant.Cache(dtype=torch.float32).load(path)
        with self.assertRaisesRegex(RuntimeError, "dtype: expected float32, bfloat16 or float16"):
            sextant.attention(q, k, v, cache=sextant.Cache(dtype=torch.int8))

    def test_autocast_needs_nothing(self):
        torch.manual_seed(6)
        project = torch.nn.Linear(HEADS * HEAD_DIM, 3 * HEADS * HEAD_DIM)
        x = torch.randn(2, LENGTH, HEADS * HEAD_DIM)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            q, k, v = project(x).view(2, LENGTH, 3, HEADS, HEAD_DIM).permute(2, 0, 3, 1, 4)
            out = make("t5").float()(q, k, v)
        self.assertEqual(out.dtype, torch.bfloat16)
        out.float().sum().backward()
        self.assertEqual(project.weight.grad.dtype, torch.float32)

    def test_turning_rounds_once(self):
        torch.manual_seed(7)
        x = torch.randn(1, 2, 5, 8).bfloat16()
        positions = torch.arange(5) + 1000
        rotated = sextant.rotate(x, positions)
        self.assertTrue(torch.equal(rotated, sextant.rotate(x.float(), positions).bfloat16()))

    def test_types_that_do_not_go_together(self):
        q, k, v = inputs()
        with self.assertRaisesRegex(RuntimeError, r"k: expected Double \[.*\], but got BFloat16"):
            sextant.attention(q, k.bfloat16(), v)
        with self.assertRaisesRegex(RuntimeError, "v: expected Float, BFloat16 or Half"):
            sextant.attention(q.bfloat16(), k.half(), v)
        with self.assertRaisesRegex(RuntimeError, "q: expected Float, BFloat16, Half or Double"):
            sextant.attention(q.int(), k.int(), v.int())


class Errors(unittest.TestCase):
    def message(self, *arguments, **options):
        with self.assertRaises(RuntimeError) as caught:
            sextant.attention(*arguments, **options)
        return str(caught.exception)

    def test_name_what_is_wrong(self):
        q, k, v = inputs()
        self.assertIn("alibi", self.message(q, k, v, method="alibbi"))
        self.assertIn("slant", self.message(q, k, v, method="alibi", slant=2))
        self.assertIn("attend: k:", self.message(q, k[..., :3], v))
        self.assertIn("parameters", self.message(q, k, v, method="shaw"))
        self.assertIn("k: expected a tensor [batch, heads, rows, columns], but got [2, 6, 4]",
                      self.message(q, k[:, 0], v))
        self.assertIn("q: expected a tensor", self.message([[1.0]], k, v))


class Conformance(unittest.TestCase):
    def run_on(self, path):
        return subprocess.run([sys.executable, "-m", "sextant.conformance", str(path)],
                              capture_output=True, text=True, check=False)

    def test_golden_cases(self):
        folders = [ROOT / "tests" / "golden" / "data"]
        shared = ROOT.parent / "shared" / "golden"
        folders += [shared / "relative", shared / "rotary"] if shared.is_dir() else []
        for folder in folders:
            with self.subTest(folder):
                done = self.run_on(folder)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertRegex(done.stdout, r"(?m)^[1-9]\d* passed, 0 failed")

    def test_float32_off_by_more_than_roundings_fails(self):
        path = ROOT / "tests" / "golden" / "data" / "nope_causal.npz"

        def attention(q, k, v, **options):
            return sextant.attention(q, k, v, **options) * (1 + error * (q.dtype == torch.float32))

        library = types.SimpleNamespace(attention=attention)
        for error, status in ((0, "pass"), (2e-5, "FAIL")):
            self.assertEqual(run_case(path, library).status, status)

    def test_what_float32_may_does_not_change_from_run_to_run(self):
        path = ROOT / "tests" / "golden" / "data" / "shaw_bidir.npz"
        shares = {run_case(path, sextant).share for _ in range(2)}
        self.assertEqual(len(shares), 1)

    def test_a_path_that_is_not_there(self):
        done = self.run_on("no-such-folder")
        self.assertEqual(done.returncode, 2)
        self.assertIn("no-such-folder", done.stderr)


@unittest.skipIf(not hasattr(torch, "compile"), "this torch has no compiler")
class Tracing(unittest.TestCase):
    def check_op(self, op, method, *inputs, **keywords):
        """Runs opcheck with gradients only for tensors on which the result depends. For parameters
        of other layers eager gradients are None and compiled ones zeros, and opcheck has no option
        to allow this."""
        tensors = [p.detach().requires_grad_() for p in method.tensors()]
        out = op(method.name, method.shape, method.options, tensors, *inputs, **keywords)
        if out.requires_grad and tensors:
            grads = torch.autograd.grad(out.sum(), tensors, allow_unused=True)
            tensors = [t.detach().requires_grad_(g is not None) for t, g in zip(tensors, grads)]
        torch.library.opcheck(
            op, (method.name, method.shape, method.options, tensors, *inputs), keywords
        )

    def test_opcheck(self):
        x = layer_input()
        for name in sextant.methods():
            with self.subTest(name):
                method = make(name)
                q, k, v = inputs()
                k = method.keys(k, x).detach().requires_grad_()
                self.check_op(torch.ops.sextant.method_attend.default, method, q, k, v)
                self.check_op(torch.ops.sextant.method_embed.default, method, x)
        for method in traced_token_methods():
            with self.subTest(method.options):
                embed = torch.ops.sextant.method_embed.default
                read = json.loads(method.options).get("amplitude") != "word"
                self.check_op(embed, method, x.detach().requires_grad_(read), token_ids=TOKEN_IDS)

    def check_compiled(self, function, tensors):
        """Checks that the compiled function has the same result, and the same gradients of the sum
        of its squares."""
        compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
        found = []
        for one in (function, compiled):
            out = one()
            grads = torch.autograd.grad(out.square().sum(), tensors, allow_unused=True)
            found.append([out.detach(), *(torch.zeros(1) if g is None else g for g in grads)])
        for a, b in zip(*found):
            self.assertLess((a - b).abs().max().item(), 1e-12)

    def test_compiles_whole_with_the_same_gradients(self):
        for name in sextant.methods():
            with self.subTest(name):
                torch.compiler.reset()
                method = make(name)
                q, k, v = inputs()
                x = layer_input()
                self.check_compiled(
                    lambda: method(q, method.keys(k, x), v), [x, q, k, v, *method.parameters()]
                )
                self.check_compiled(lambda: method.embed(x), [x, *method.parameters()])
        for method in traced_token_methods():
            with self.subTest(method.options):
                torch.compiler.reset()
                x = layer_input()
                self.check_compiled(
                    lambda: method.embed(x, token_ids=TOKEN_IDS), [x, *method.parameters()]
                )


class Version(unittest.TestCase):
    def test_is_that_of_the_source_tree(self):
        project = (ROOT / "CMakeLists.txt").read_text()
        self.assertIn(f"project(sextant VERSION {sextant.__version__} ", project)


if __name__ == "__main__":
    unittest.main()
