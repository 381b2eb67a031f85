"""Ring attention in processes of torch.distributed, and its arguments.

As a program, `test_ring.py CASE` is one process of a group and prints what is wrong."""

import os
import signal
import socket
import subprocess
import sys
import time
import unittest

import torch

import sextant
from made_methods import options_of

sextant.load()
LENGTH, HEADS, HEAD_DIM = 16, 2, 8


def named_groups():
    """Whether this torch has process groups, and names for them."""
    return torch.distributed.is_available() and torch.ops.sextant.has_named_groups()


def encoding(name, dtype):
    torch.manual_seed(1)
    module = sextant.method(name, heads=HEADS, head_dim=HEAD_DIM, layers=2, train_length=LENGTH,
                            dtype=dtype, **options_of(name))
    for parameter in module.parameters():
        parameter.data += 0.3 * torch.randn_like(parameter)
    return module


def gradients(results, inputs):
    torch.manual_seed(2)
    loss = sum((weight * x).sum() for x, weight in results)
    found = torch.autograd.grad(loss, inputs, allow_unused=True)
    return [torch.zeros_like(x) if g is None else g for x, g in zip(inputs, found)]


def off(got, expected):
    size = expected.norm().item()
    return (got - expected).norm().item() / (size if size > 1e-10 else 1)


def differences(name, dtype, causal, shards):
    """The results and gradients of a rank that are not those of the whole."""
    module = encoding(name, dtype)
    torch.manual_seed(3)
    q, k, v = (torch.randn(2, HEADS, LENGTH, HEAD_DIM, dtype=dtype) for _ in range(3))
    x = torch.randn(2, LENGTH, HEADS * HEAD_DIM, dtype=dtype)
    bias = torch.randn(2, HEADS, LENGTH, dtype=torch.float64)
    d_out = torch.randn(2, HEADS, LENGTH, HEAD_DIM, dtype=dtype)
    d_lse = torch.randn(2, HEADS, LENGTH, dtype=dtype)
    own_sink = name == "sink"
    sink = torch.randn(HEADS, dtype=dtype).requires_grad_()
    terms = {} if own_sink else {"sink": sink}

    def run(attend, *rows):
        rows = [one.detach().clone().requires_grad_() for one in rows]
        q, k, v, x, bias = rows
        out, lse = attend(module.queries(q, x, layer=1), module.keys(k, x, layer=1), v, layer=1,
                          return_lse=True, causal=causal, key_bias=bias, **terms)
        return out, lse, rows

    out, lse, rows = run(module, q, k, v, x, bias)
    shared = [*module.parameters(), sink]
    whole = gradients([(out, d_out), (lse, d_lse)], [*rows, *shared])

    def own(tensor, dim=2):
        return sextant.ring_shard(tensor, dim=dim, shards=shards)

    dims = (2, 2, 2, 1, 2)
    own_out, own_lse, own_rows = run(
        lambda q, k, v, **arguments: sextant.ring_attention(
            q, k, v, module, shards=shards, **arguments),
        *(own(one, dim) for one, dim in zip((q, k, v, x, bias), dims)))
    parts = gradients([(own_out, own(d_out)), (own_lse, own(d_lse))], [*own_rows, *shared])
    pairs = [("out", own_out, own(out)), ("lse", own_lse, own(lse))]
    for n, (part, full) in enumerate(zip(parts, whole)):
        if n < len(dims):
            full = own(full, dims[n])
        else:
            torch.distributed.all_reduce(part)
        pairs.append((f"gradient {n}", part, full))
    bound = 1e-12 if dtype == torch.float64 else 1e-6
    return [f"{name} {dtype} causal={causal} {shards}: {what} off by {off(got, expected)}"
            for what, got, expected in pairs if not off(got, expected) <= bound]


def check_every_method():
    wrong = []
    for name in sextant.methods():
        for causal, shards in ((True, "zigzag"), (False, "contiguous")):
            wrong += differences(name, torch.float64, causal, shards)
    for name in ("none", "alibi", "rope", "shaw", "t5"):
        wrong += differences(name, torch.float32, True, "zigzag")
    return wrong


def check_shards():
    whole = torch.arange(24.0).view(2, 12).requires_grad_()
    wrong = []
    for shards in ("zigzag", "contiguous"):
        part = sextant.ring_shard(whole, dim=1, shards=shards)
        again = sextant.ring_unshard(part, dim=-1, shards=shards)
        if not torch.equal(again, whole):
            wrong.append(f"{shards}: {again.tolist()}")
        grad, = torch.autograd.grad((again * whole.detach()).sum(), part)
        expected = torch.distributed.get_world_size() * part.detach()
        if not torch.equal(grad, expected):
            wrong.append(f"{shards}: gradient {grad.tolist()}")
    positions = sextant.ring_shard(torch.arange(8), dim=0).tolist()
    expected = [[0, 1, 6, 7], [2, 3, 4, 5]][torch.distributed.get_rank()]
    return wrong if positions == expected else [*wrong, f"positions {positions}"]


def check_names():
    """Attention by a method's name, whose train_length is the length of the whole."""
    torch.manual_seed(4)
    q = torch.randn(1, HEADS, LENGTH, HEAD_DIM)
    options = {"options": {"stretch": "yarn*2"}, "scale": 0.2, "window": 5}
    expected = sextant.ring_shard(sextant.attention(q, q, q, "rope", **options), dim=2)
    part = sextant.ring_shard(q, dim=2)
    got = sextant.ring_attention(part, part, part, "rope", **options)
    wrong = off(got, expected)
    return [] if wrong <= 1e-6 else [f"rope off by {wrong}"]


def check_killed():
    """The process of rank 1 is killed; the other one reports its error and how long it took."""
    q = torch.randn(1, HEADS, 8, HEAD_DIM)
    sextant.ring_attention(q, q, q)
    if torch.distributed.get_rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    began = time.monotonic()
    try:
        for _ in range(3):
            sextant.ring_attention(q, q, q)
    except RuntimeError as error:
        if "but a rank has ended" in str(error) and time.monotonic() - began < 30:
            return []
        return [f"{error} after {time.monotonic() - began} s"]
    return ["no error"]


def check_old_torch():
    q = torch.randn(1, HEADS, 8, HEAD_DIM)
    try:
        sextant.ring_attention(q, q, q)
    except RuntimeError as error:
        return [] if "group: expected torch 2.1 or later" in str(error) else [str(error)]
    return ["no error"]


def run_processes(case, size=2):
    """The standard output and the status of each process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
                   "WORLD_SIZE": str(size), "OMP_NUM_THREADS": "1"}
    processes = [subprocess.Popen([sys.executable, __file__, case], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True,
                                  env={**environment, "RANK": str(rank)})
                 for rank in range(size)]
    written = [process.communicate(timeout=120)[0].splitlines(keepends=True)
               for process in processes]
    # Gloo of torch 2.8 writes its connections.
    return [("".join(line for line in lines if not line.startswith("[Gloo]")), process.returncode)
            for lines, process in zip(written, processes)]


class InProcesses(unittest.TestCase):
    def agree(self, case):
        for output, status in run_processes(case):
            self.assertEqual((output, status), ("", 0))

    @unittest.skipUnless(named_groups(), "process groups have no names")
    def test_is_the_whole_for_every_method(self):
        self.agree("every_method")

    @unittest.skipUnless(named_groups(), "process groups have no names")
    def test_shards_are_rows_of_the_whole(self):
        self.agree("shards")

    @unittest.skipUnless(named_groups(), "process groups have no names")
    def test_names_and_options(self):
        self.agree("names")

    @unittest.skipUnless(named_groups(), "process groups have no names")
    def test_a_killed_process_is_an_error(self):
        (output, status), (_, killed) = run_processes("killed")
        self.assertEqual((output, status, killed), ("", 0, -signal.SIGKILL))

    @unittest.skipUnless(torch.distributed.is_available() and not named_groups(), "it has names")
    def test_groups_without_names_are_refused(self):
        self.agree("old_torch")


class Arguments(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(5)
        self.q = torch.randn(1, HEADS, 7, HEAD_DIM)

    def attend(self, *method, **arguments):
        return sextant.ring_attention(self.q, self.q, self.q, *method, **arguments)

    def test_without_a_group_it_is_attention(self):
        q = self.q
        for arguments in ({}, {"causal": False}, {"softcap": 4.0}, {"window": (2, 1)}):
            expected, lse = sextant.attention(q, q, q, "alibi", return_lse=True, **arguments)
            got = self.attend("alibi", return_lse=True, **arguments)
            torch.testing.assert_close(got, (expected, lse), rtol=0, atol=1e-6)
        self.assertIs(sextant.ring_shard(q, dim=2), q)
        torch.testing.assert_close(sextant.ring_unshard(q, dim=2), q, rtol=0, atol=0)

    def test_16_bit_types_are_rounded_once(self):
        q = self.q.to(torch.bfloat16)
        out, lse = sextant.ring_attention(q, q, q, return_lse=True)
        self.assertEqual((out.dtype, lse.dtype), (torch.bfloat16, torch.float32))
        exact = sextant.attention(q.double(), q.double(), q.double())
        torch.testing.assert_close(out.double(), exact, rtol=2**-8, atol=1e-6)

    def test_refuses_what_does_not_fit(self):
        mask = torch.ones(7, 7, dtype=torch.bool)
        for arguments, message in (
            ({"mask": mask}, "mask: ring_attention: expected none, as masks by query and key"),
            ({"mask": mask}, "hides keys, but got Tensor"),
            ({"dropout_p": 0.1}, "dropout_p: ring_attention: expected 0, as the weights"),
            ({"dropout_p": 0.1}, "but got 0.1"),
            ({"packed_keys": [0, 7]}, "packed_keys: ring_attention: expected none"),
            ({"cache": sextant.Cache()}, "cache: ring_attention: expected none"),
            ({"first_query": 3}, "first_query: ring_attention: expected none"),
            ({"method": sextant.method("none", heads=HEADS, head_dim=HEAD_DIM),
              "options": {"base": 2}, "parameters": [self.q]},
             "which has its own, but got options, parameters"),
            ({"shards": "striped"}, 'shards: expected "zigzag" or "contiguous", but got'),
            ({"causal": None}, "causal: expected True or False, but got None"),
            ({"is_causal": True}, "is_causal: expected no argument of this name"),
            ({"method": 3}, "method: expected the name of a method or a sextant.Method"),
            ({"method": sextant.method("xlnet", heads=HEADS, head_dim=HEAD_DIM, segments=True)},
             "query_segments: expected"),
        ):
            with self.subTest(arguments), self.assertRaises(RuntimeError) as caught:
                self.attend(**{"method": "none", **arguments})
            self.assertIn(message, str(caught.exception))
        self.attend(mask=None, dropout_p=0.0, packed_queries=())  # nothing is asked of them
        with self.assertRaisesRegex(RuntimeError, "k: expected 7 rows, as q, but got 6"):
            sextant.ring_attention(self.q, self.q[:, :, :6], self.q[:, :, :6])
        with self.assertRaisesRegex(RuntimeError, "dim: expected -4 to 3, but got 4"):
            sextant.ring_shard(self.q, dim=4)


def main(case):
    torch.distributed.init_process_group("gloo")
    for line in globals()[f"check_{case}"]():
        print(line)
    sys.stdout.flush()
    if case == "killed":
        os._exit(0)  # a group that has lost a process may wait for it
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    if len(sys.argv) == 2 and f"check_{sys.argv[1]}" in globals():
        main(sys.argv[1])
    else:
        unittest.main()
