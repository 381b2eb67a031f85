#!/usr/bin/env python3
"""Times the cuda backend beside PyTorch's FlashAttention-2 and FlexAttention, and flash-attn 4
where it is installed, in interleaved rounds of one run on one GPU.

    python3 bench/cuda.py              builds in build/cuda and writes bench/results/CARD/
    python3 bench/cuda.py --dry-run    every step on the CPU, with fibers; writes nothing

The batch has 16384 tokens for every length, with 2048 / head size heads. Times are of calls on
bfloat16 tensors that the GPU has already, by its own clock. The backward pass is timed alone; "with
backward" is the sum of a round's two passes. Decoding is that of one query of 8 sequences, with 4
query heads for a key head. Peers of kinds with vectors are our own calls without positions: no peer
has these kinds without products made before. Memory is that beyond operands, results and gradients.
Kinds that are not reached within --seconds are left out, with a message.
"""

import argparse
import contextlib
import os
import pathlib
import shlex
import subprocess
import sys
import time

# Python looks into this folder first, where torch would find this file instead of NVIDIA's package
# `cuda`, and does without that package if there is an ImportError.
if __name__ != "__main__":
    raise ImportError("bench/cuda.py: expected to run as a program")
sys.path.append(sys.path.pop(0))

import program
import records
import torch
from cuda_calls import Ours, Peer, Shim, flash, flash4, flash_decoding, flex, rotated_flash
from result_rows import row

TOKENS, MODEL = 16384, 2048
KINDS = ["none", "rope", "alibi", "t5", "shaw", "transformer-xl", "deberta"]
OWN = {"shaw": "none", "transformer-xl": "none", "deberta": "full"}  # without positions
# The largest difference of peers, relative to the largest element: roundings to bfloat16.
TOLERANCE = {"forward": 0.02, "backward": 0.05}
# Limits of ratios (shared specification), by kind, pass and peer.
GOALS = [("rope", "forward", "flash", ">=", 0.5), ("alibi", "forward", "flex", ">=", 0.7),
         ("t5", "forward", "flex", ">=", 0.7), ("t5", "with backward", "flex", ">=", 1.0),
         ("none", "backward", "flash", ">=", 0.5), ("shaw", "forward", "own", "<=", 1.3),
         ("transformer-xl", "forward", "own", "<=", 2.5),
         ("deberta", "forward", "own", "<=", 3.5), ("decoding", "one query", "copy", ">=", 0.7)]


class Bench:
    def __init__(self, options, shim):
        self.options, self.shim = options, shim
        self.rows, self.peer_of, self.wrong = [], [], []  # peer_of: the kind of peer of each row
        self.device = "cpu" if options.dry_run else "cuda"
        self.began = time.monotonic()
        self.fourth = None if options.dry_run else flash4()

    def late(self, what):
        late = time.monotonic() - self.began > self.options.seconds
        if late:
            print(f"left out {what}: {self.options.seconds} s have passed", flush=True)
        return late

    def seconds(self, call, repeats):
        """The seconds of a call, by the GPU's clock where there is one."""
        if self.device == "cpu":
            start = time.perf_counter()
            call()
            return time.perf_counter() - start
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(repeats):
            call()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) / 1e3 / repeats

    def rounds(self, calls, repeats=3):
        """{name: seconds of each round}, in interleaved rounds after one call of each."""
        for call in calls.values():
            call()
        times = {name: [] for name in calls}
        for _ in range(self.options.rounds):
            for name, call in calls.items():
                times[name].append(self.seconds(call, repeats))
        return times

    def tensors(self, batch, heads, length, size):
        return torch.randn(batch, heads, length, size, device=self.device,
                           dtype=torch.bfloat16)

    def add(self, peer_kind, *arguments):
        made = row(*arguments)
        self.rows.append(made)
        self.peer_of.append(peer_kind)
        beside = f"{made['ratio']:8.3f} of {made['peer_version']}" if made["ratio"] else ""
        print(f"{made['name']:<23}{made['shape']:<44}{made['ours']:>12.5g} {made['unit']:<9}"
              f"{beside}", flush=True)

    def check(self, name, which, ours, theirs):
        for mine, other in zip(ours, theirs):
            if mine is None or other is None:
                continue
            error = (mine.float() - other.float().reshape(mine.shape)).abs().max().item()
            most = other.float().abs().max().item()
            if not error <= TOLERANCE[which] * max(most, 1e-6):
                self.wrong.append(f"{name}, {which}: expected a difference of at most "
                                  f"{TOLERANCE[which]} x {most:.3g}, but got {error:.3g}")
                print(f"WRONG {self.wrong[-1]}", flush=True)

    def peers(self, kind, ours, q, k, v, d_out):
        """{"flash" or another name: Peer}. A peer that cannot compute the kind is left out."""
        length, size = q.shape[2:]
        name = f"PyTorch {torch.__version__}"
        if kind == "none":
            yield "flash", Peer(f"{name} SDPA flash", flash, q, k, v, d_out)
            if self.fourth:
                yield "flash4", Peer(f"flash-attn-4 {self.fourth[1]}", self.fourth[0], q, k, v,
                                     d_out)
        elif kind == "rope":
            call = rotated_flash(length, size, self.device, self.device == "cuda")
            yield "flash", Peer(f"{name} SDPA flash, compiled RoPE", call, q, k, v, d_out)
        elif kind in ("alibi", "t5"):
            call, trained = flex(kind, ours, length, q.shape[1], self.device)
            has_backward = self.device == "cuda"  # on CPUs it has no gradients
            yield "flex", Peer(f"{name} flex_attention", call, q, k, v,
                               d_out if has_backward else None, trained)

    def working_peers(self, kind, ours, *tensors):
        found = {}
        made = self.peers(kind, ours, *tensors)
        while True:
            try:
                name, peer = next(made, (None, None))
                if name is None:
                    return found
                peer.forward()
                self.check(f"{kind}, {peer.name}", "forward", [ours.out], [peer.out])
                if peer.d_out is not None:
                    peer.backward()
                    mine = [ours.gradients[n] for n in (0, 1, 2)]
                    if kind == "t5":
                        mine.append(ours.gradients[5][..., 0])
                    self.check(f"{kind}, {peer.name}", "backward", mine, peer.gradients)
                found[name] = peer
            except Exception as error:  # a compiler may raise anything
                print(f"left out a peer of {kind}: {str(error).strip().splitlines()[0]}",
                      flush=True)

    def attention(self, kind, length, size):
        tokens, model = (64, 64) if self.options.dry_run else (TOKENS, MODEL)
        batch, heads = max(tokens // length, 1), max(model // size, 1)
        q, k, v, d_out = (self.tensors(batch, heads, length, size) for _ in range(4))
        torch.compiler.reset()  # otherwise it stops compiling after some shapes, in silence
        with contextlib.ExitStack() as held:
            ours = held.enter_context(Ours(self.shim, kind, q, k, v, d_out))
            self.shim.peak()
            ours.forward()
            ours.backward()
            peak = self.shim.peak()
            peers = self.working_peers(kind, ours, q, k, v, d_out)
            if kind in OWN:
                own = held.enter_context(Ours(self.shim, OWN[kind], q, k, v, d_out))
                own.forward()  # its backward pass reads the results
                peers["own"] = own
            calls = {("ours", which): getattr(ours, which) for which in ("forward", "backward")}
            for name, peer in peers.items():
                calls[name, "forward"] = peer.forward
                if name == "own" or peer.d_out is not None:
                    calls[name, "backward"] = peer.backward
            times = self.rounds(calls)
        for who in {name for name, _ in times}:
            if (who, "backward") in times:
                times[who, "with backward"] = [a + b for a, b in zip(times[who, "forward"],
                                                                     times[who, "backward"])]
        share = 1 if kind == "deberta" else 0.5  # of the scores that are visible
        forward = 4e-12 * share * batch * heads * length**2 * size
        work = {"forward": forward, "backward": 2.5 * forward, "with backward": 3.5 * forward}
        for which, amount in work.items():
            shape = f"{which}, N {length}, D {size}, H {heads}, batch {batch}"
            mine = times["ours", which]
            measured = [name for name in peers if (name, which) in times]
            for name in measured:
                unit, work_done = ("s", None) if name == "own" else ("TFLOP/s", amount)
                self.add(name, kind, shape, unit, mine, times[name, which], peers[name].name,
                         work_done)
            if not measured:
                self.add(None, kind, shape, "TFLOP/s", mine, None, None, amount)
        shape = f"with backward, N {length}, D {size}, H {heads}, batch {batch}"
        held_bytes = [peak + ours.lse.numel() * 4]
        self.add(None, f"{kind}, memory", shape, "B", held_bytes, *self.memory_of(peers, d_out))

    def memory_of(self, peers, d_out):
        """The values and the name of the first peer with gradients; nothing without one."""
        for peer in peers.values():
            if self.device == "cpu" or not isinstance(peer, Peer):
                continue
            peer.out = peer.gradients = None
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated()
            peer.forward()
            peer.backward()
            most = torch.cuda.max_memory_allocated() - before
            given = [d_out, *peer.gradients]
            beyond = max(most - sum(x.numel() * x.element_size() for x in given), 1)
            return [beyond], peer.name
        return None, None

    def decoding(self, kind, keys):
        batch, heads, key_heads, size = (1, 2, 1, 64) if self.options.dry_run else (8, 32, 8, 128)
        q = self.tensors(batch, heads, 1, size)
        k, v = (self.tensors(batch, key_heads, keys, size) for _ in range(2))
        copy = torch.empty_like(k)
        with Ours(self.shim, kind, q, k, v) as ours:
            calls = {"ours": ours.forward, "copy": lambda: copy.copy_(k)}
            if kind == "none":
                peer = Peer("", flash_decoding, q, k, v)
                ours.forward()
                peer.forward()
                self.check("decoding", "forward", [ours.out], [peer.out])
                calls["flash"] = peer.forward
            times = self.rounds(calls, repeats=20)
        giga = 2 * k.numel() * k.element_size() / 1e9  # a copy reads and writes as much
        shape = f"one query, {keys} keys, D {size}, H {heads} on {key_heads}, batch {batch}"
        name = "decoding" if kind == "none" else f"decoding, {kind}"
        self.add("copy", name, shape, "GB/s", times["ours"], times["copy"], "copy", giga)
        if kind == "none":
            self.add("flash", name, shape, "GB/s", times["ours"], times["flash"],
                     f"PyTorch {torch.__version__} SDPA flash", giga)

    def report_goals(self):
        print("\ngoals, for the worst of lengths and head sizes:")
        for kind, which, peer, order, limit in GOALS:
            found = [made["ratio"] for made, by in zip(self.rows, self.peer_of)
                     if made["name"] == kind and made["shape"].startswith(which + ",") and
                     by == peer]
            if not found:
                print(f"  {kind}, {which}: not measured")
                continue
            worst = min(found) if order == ">=" else max(found)
            met = worst >= limit if order == ">=" else worst <= limit
            print(f"  {kind}, {which}: {worst:.2f} of {peer}, expected {order} {limit}: "
                  f"{'met' if met else 'MISSED'}")


def build(folder, dry_run):
    """Builds the shim, and the kernels for this machine's GPU."""
    targets = ["shim"] if dry_run else ["kernels", "shim"]
    subprocess.run([records.ROOT / "scripts" / "build_cuda.sh", folder, *targets], check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--lengths", type=program.numbers, default=[4096, 16384])
    parser.add_argument("--sizes", type=program.numbers, default=[64, 128])
    parser.add_argument("--kinds", type=lambda x: x.split(","), default=KINDS)
    parser.add_argument("--keys", type=program.numbers, default=[4096, 16384, 65536],
                        help="of decoding")
    parser.add_argument("--rounds", type=program.positive, default=7)
    parser.add_argument("--seconds", type=program.positive, default=210)
    parser.add_argument("--build", type=pathlib.Path, default=records.ROOT / "build" / "cuda")
    parser.add_argument("--results", type=pathlib.Path, default=records.RESULTS)
    parser.add_argument("--commit", help="the measured commit, where there is no repository")
    options = parser.parse_args()
    if options.dry_run:
        options.lengths, options.sizes, options.keys, options.rounds = [64], [64], [64], 2
    build(options.build, options.dry_run)
    torch.manual_seed(1)
    bench = Bench(options, Shim(options.build / "libsextant_shim.so", options.dry_run))
    for keys in options.keys:
        for kind in ("none", "rope"):
            if not bench.late(f"decoding, {kind}, {keys} keys"):
                bench.decoding(kind, keys)
    for length in options.lengths:
        for size in options.sizes:
            for kind in options.kinds:
                if not bench.late(f"{kind}, N {length}, D {size}"):
                    bench.attention(kind, length, size)
    if bench.wrong:
        raise SystemExit("\n".join(["", *bench.wrong]))
    if options.dry_run:
        print("a dry run: these times say nothing about a GPU")
        return
    bench.report_goals()
    card = torch.cuda.get_device_name().removeprefix("NVIDIA ").split()[0].lower()
    path = records.write("cuda", bench.rows, commit=options.commit or records.commit_of("HEAD"),
                         command=shlex.join(["bench/cuda.py", *sys.argv[1:]]),
                         threads=os.cpu_count(), statistic="median", folder=options.results,
                         on=card)
    print(path)


if __name__ == "__main__":
    main()
