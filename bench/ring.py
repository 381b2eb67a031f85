#!/usr/bin/env python3
"""Times ring attention over two processes beside attention to the whole sequence in one.

    SEXTANT_LIBRARY=... PYTHONPATH=python PYTHON bench/ring.py

PYTHON has torch 2.1 or later. Each round computes forward and backward passes of the whole in one
process with two threads, while the other one waits, and then of the ring with one thread in each;
both ways have the same cores. The processes are on this machine, so the traffic is that of its
loopback device: the ratio is the cost of parts, joins and copies, not of a network. `bytes` rows
are what a rank sends in a step, a visit of keys and values. The result is printed and written to
bench/results/MACHINE/DATE-ring.json (bench/records.py).
"""

import argparse
import os
import pathlib
import shlex
import socket
import subprocess
import sys
import time

import program
import records
import torch

import sextant

RANKS = 2
HEADS, KEY_HEADS, HEAD_DIM = 8, 2, 64


def passes(attend, rows, d_out):
    """The seconds of a forward and of a backward pass."""
    leaves = [x.detach().requires_grad_() for x in rows]
    began = time.perf_counter()
    out = attend(*leaves)
    middle = time.perf_counter()
    out.backward(d_out)
    return middle - began, time.perf_counter() - middle


def rounds_of(options, method, causal):
    """[(whole, ring), ...], each (forward, backward) in seconds of this rank. Rank 0 has whole."""
    torch.manual_seed(0)
    whole = [torch.randn(1, heads, options.length, HEAD_DIM)
             for heads in (HEADS, KEY_HEADS, KEY_HEADS, HEADS)]
    own = [sextant.ring_shard(x, dim=2) for x in whole]
    encoding = sextant.method(method, heads=HEADS, key_heads=KEY_HEADS, head_dim=HEAD_DIM,
                              train_length=options.length)
    dist = torch.distributed
    found = []
    for n in range(options.rounds + 1):  # the first one is not counted
        dist.barrier()
        torch.set_num_threads(RANKS)
        alone = (0.0, 0.0)
        if dist.get_rank() == 0:
            alone = passes(lambda q, k, v: encoding(q, k, v, causal=causal), whole[:3], whole[3])
        dist.barrier()
        torch.set_num_threads(1)
        ring = passes(lambda q, k, v: sextant.ring_attention(q, k, v, encoding, causal=causal),
                      own[:3], own[3])
        if n:
            found.append((alone, ring))
    return found


def bytes_of_step(options):
    """The bytes that a rank sends in a step of the forward and of the backward pass: its keys and
    values, and also their gradients."""
    rows = options.length // RANKS * KEY_HEADS * 2 * HEAD_DIM * 4
    return rows, 2 * rows


def process(options):
    """One rank; rank 0 prints and writes the result."""
    torch.distributed.init_process_group("gloo")
    rows = []
    for method in options.methods.split(","):
        for causal in (True, False):
            found = rounds_of(options, method, causal)
            shape = f"{method} {'causal' if causal else 'full'} {options.length}x{HEADS}x{HEAD_DIM}"
            for n, name in enumerate(("forward", "backward")):
                row = records.least_row(name, shape, "s", [ring[n] for _, ring in found],
                                        [whole[n] for whole, _ in found], "one process")
                rows.append(row)
    for name, sent in zip(("forward", "backward"), bytes_of_step(options)):
        shape = f"step of a rank of {RANKS}, {options.length}x{KEY_HEADS}x{HEAD_DIM}"
        rows.append({**records.least_row(name, shape, "bytes", [sent]), "rounds": 1})
    if torch.distributed.get_rank() == 0:
        for row in rows:
            beside = f", {row['ratio']:.2f} of one process" if row["ratio"] else ""
            print(f"{row['name']} {row['shape']}: {row['ours']:.4g} {row['unit']}{beside}")
        path = records.write("ring", rows, commit=records.commit_of("HEAD"), threads=RANKS,
                             command=shlex.join(["bench/ring.py", *sys.argv[1:]]),
                             folder=options.results)
        print(path)
    torch.distributed.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--length", type=program.positive, default=4096)
    parser.add_argument("--rounds", type=program.positive, default=5)
    parser.add_argument("--methods", default="none,alibi,rope,shaw")
    parser.add_argument("--results", type=pathlib.Path, default=records.RESULTS)
    options = parser.parse_args()
    if "RANK" in os.environ:
        process(options)
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
                   "WORLD_SIZE": str(RANKS)}
    started = [subprocess.Popen([sys.executable, *sys.argv], env={**environment, "RANK": str(rank)})
               for rank in range(RANKS)]
    sys.exit(max(abs(one.wait()) for one in started))


if __name__ == "__main__":
    main()
