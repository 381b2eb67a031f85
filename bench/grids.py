#!/usr/bin/env python3
"""Times the attention of methods on grids beside the code of transformers, eager and by sdpa.

    python=$(scripts/torch_env.sh 2.8.0 transformers==4.57.6)
    $python bench/grids.py      with SEXTANT_LIBRARY and PYTHONPATH of a library for that torch

SAM's global layer (64 x 64 places, 12 heads of 64), Swin's windows and LayoutLMv3's layer, forward
and with backward. SAM and Swin make their dense bias in each call, as their layers do; LayoutLM's
is made once for all layers, so its time and memory are left out. Peak memory is what a call adds to
a process of its own. The result goes to bench/results/MACHINE/DATE-grids.json (bench/records.py).
"""

import argparse
import json
import pathlib
import re
import shlex
import subprocess
import sys
import time

import records
import torch
import transformers
from torch.nn.functional import scaled_dot_product_attention as sdpa
from transformers.models.sam.modeling_sam import SamVisionAttention

import sextant


def rows(batch, heads, length, head_dim):
    torch.manual_seed(0)
    return [torch.randn(batch, heads, length, head_dim) for _ in range(3)]


def set_tables(method):
    for parameter in method.parameters():
        parameter.data.normal_(0, 0.1)
    return list(method.tensors())


def eager(q, k, v, bias):
    scores = q @ k.transpose(-2, -1) * q.size(3) ** -0.5 + bias
    return scores.softmax(-1) @ v


def sam(side):
    """(q, k, v, ours, the dense bias) of a layer on side x side places."""
    q, k, v = rows(1, 12, side * side, 64)
    method = sextant.method("sam", heads=12, head_dim=64, grid=[side, side])
    of_h, of_w = set_tables(method)
    layer = SamVisionAttention.__new__(SamVisionAttention)
    torch.nn.Module.__init__(layer)

    def bias(q):
        parts = layer.get_decomposed_rel_pos(q[0], of_h, of_w, (side, side), (side, side))
        return parts.reshape(1, 12, side * side, side * side)

    return q, k, v, method, bias


def swin(side, windows, heads):
    q, k, v = rows(windows, heads, side * side, 32)
    method = sextant.method("swin", heads=heads, head_dim=32, window=[side, side])
    (table,) = set_tables(method)
    places = torch.arange(side)
    at = torch.stack(torch.meshgrid(places, places, indexing="ij")).flatten(1)
    apart = at[:, :, None] - at[:, None, :] + side - 1
    index = (apart[0] * (2 * side - 1) + apart[1]).view(-1)

    def bias(_):
        return table[index].view(side * side, side * side, -1).permute(2, 0, 1)[None]

    return q, k, v, method, bias


def layoutlm(length):
    q, k, v = rows(1, 12, length, 64)
    method = sextant.method("layoutlm", heads=12, head_dim=64)
    set_tables(method)
    boxes = torch.randint(0, 1001, (1, 2, length))
    dense = torch.randn(1, 12, length, length)

    def ours(q, k, v, causal):
        return method(q, k, v, causal=causal, query_positions=boxes, key_positions=boxes)

    return q, k, v, ours, lambda _: dense


CASES = {
    "sam 64 x 64": lambda: sam(64),
    "swin 7 x 7": lambda: swin(7, 64, 3),
    "swin 12 x 12": lambda: swin(12, 16, 6),
    "swin 24 x 24": lambda: swin(24, 4, 6),
    "layoutlm 512": lambda: layoutlm(512),
    "layoutlm 1024": lambda: layoutlm(1024),
}
KINDS = ("sextant", "eager", "sdpa")


def call_of(kind, case):
    """f(): the result of a call; its gradients reach q, k, v."""
    q, k, v, ours, bias = CASES[case]()
    if kind == "sextant":
        return lambda: ours(q, k, v, causal=False), (q, k, v)
    if kind == "eager":
        return lambda: eager(q, k, v, bias(q)), (q, k, v)
    return lambda: sdpa(q, k, v, attn_mask=bias(q)), (q, k, v)


def timed(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def rounds_of(case, backward, rounds):
    calls = {}
    for kind in KINDS:
        forward, inputs = call_of(kind, case)
        if backward:
            for x in inputs:
                x.requires_grad_()
            calls[kind] = lambda forward=forward: forward().sum().backward()
        else:
            calls[kind] = torch.no_grad()(forward)
    # Short calls have more rounds, up to a second of the slowest kind, in which kinds take turns.
    slowest = max(timed(call) for call in calls.values() for _ in range(2))
    count = max(rounds, min(50, int(1 / slowest)))
    found = {kind: [] for kind in calls}
    for _ in range(count):
        for kind, call in calls.items():
            found[kind].append(timed(call))
    return found


def peak(kind, case, backward):
    """MiB that a call adds to the memory of a process, by a child."""
    arguments = [sys.executable, __file__, "--peak", kind, case] + ["--backward"] * backward
    done = subprocess.run(arguments, check=True, capture_output=True, text=True)
    return float(done.stdout)


def own_most():
    """The most KiB of this process so far; getrusage() has those of its parent, too."""
    status = pathlib.Path("/proc/self/status").read_text(encoding="utf-8")
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1])


def own_peak(kind, case, backward):
    forward, inputs = call_of(kind, case)
    for x in inputs:
        x.requires_grad_(backward)
    before = own_most()
    with torch.set_grad_enabled(backward):
        out = forward()
        if backward:
            out.sum().backward()
    print((own_most() - before) / 1024)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peak", nargs=2, metavar=("KIND", "CASE"), help="for a child alone")
    parser.add_argument("--backward", action="store_true", help="for a child alone")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.peak:
        own_peak(*options.peak, options.backward)
        return
    found, version = [], f"transformers {transformers.__version__}, torch {torch.__version__}"
    for case in CASES:
        for backward in (False, True):
            name = "with backward" if backward else "forward"
            times = rounds_of(case, backward, options.rounds)
            for peer in KINDS[1:]:
                found.append(records.least_row(f"{name}, {peer}", case, "s", times["sextant"],
                                               times[peer], version))
            if case.startswith("layoutlm"):
                continue
            memory = {kind: [peak(kind, case, backward)] for kind in KINDS}
            for peer in KINDS[1:]:
                found.append(records.least_row(f"{name}, peak memory, {peer}", case, "MiB",
                                               memory["sextant"], memory[peer], version))
    path = records.write("grids", found, commit=records.commit_of("HEAD"),
                         threads=options.threads,
                         command=shlex.join(["bench/grids.py", *sys.argv[1:]]))
    print(path.relative_to(records.ROOT))


if __name__ == "__main__":
    main()
