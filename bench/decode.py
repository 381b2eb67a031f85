#!/usr/bin/env python3
"""Times attention over a cache, beside ggml's, PyTorch's and reading the cache alone.

    PYTHON bench/decode.py --ggml COMMIT        PYTHON: an interpreter with torch 2.5 or later

A call is the attention of one token in `--layers` layers, each with keys and values of its own. In
each round build/release/bin/bench_decode times Sextant without positions, with RoPE over unrotated
and over rotated keys, ggml's flash attention (if the build found ggml; `--ggml` is its commit) and
reading alone, and this script PyTorch's scaled_dot_product_attention over as many keys, with
grouped heads: by `enable_gqa`, or with the queries of a group as rows, whichever is faster. Over
int8 there are no rotated keys, ggml has its Q8_0, and PyTorch nothing. Times are the least of all
calls. The result is written to bench/results/ (bench/records.py).
"""

import argparse
import json
import pathlib
import shlex
import subprocess
import sys
import tempfile
import time

import program
import records
import result_rows
import torch
from torch.nn.functional import scaled_dot_product_attention

ROOT = pathlib.Path(__file__).resolve().parent.parent
READING = "reading"


def run_program(options, keys, dtype):
    """{name: least seconds of a call}, and the bytes of the caches."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "decode.json"
        sizes = {"keys": keys, "dtype": dtype, "layers": options.layers, "heads": options.heads,
                 "key-heads": options.key_heads, "head-size": options.head_size,
                 "threads": options.threads, "rounds": options.calls, "json": file}
        command = [options.program]
        for name, value in sizes.items():
            command += [f"--{name}", str(value)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        found = json.loads(file.read_text(encoding="utf-8"))
    least = {name: value["least"] for name, value in found["measured"].items()}
    least[READING] = min(least.pop(name) for name in list(least) if name.startswith(READING))
    return least, found["bytes"]


class Torch:
    """PyTorch's attention over caches of all layers."""

    def __init__(self, options, keys, dtype):
        self.type = getattr(torch, dtype)
        shape = (options.layers, 1, options.key_heads, keys, options.head_size)
        self.k, self.v = (torch.rand(shape).mul_(2).sub_(1).to(self.type) for _ in range(2))
        self.q = torch.rand(1, options.heads, 1, options.head_size).to(self.type)

    def by_flag(self):
        for k, v in zip(self.k, self.v):
            scaled_dot_product_attention(self.q, k, v, enable_gqa=True)

    def by_rows(self):
        q = self.q.view(1, self.k.size(2), -1, self.q.size(3))
        for k, v in zip(self.k, self.v):
            scaled_dot_product_attention(q, k, v)

    @torch.no_grad()
    def least(self, calls):
        times = []
        for call in (self.by_flag, self.by_rows):
            call()
            for _ in range(calls):
                start = time.perf_counter()
                call()
                times.append(time.perf_counter() - start)
        return min(times)


def least_row(name, shape, unit, amount, ours, peer=None, version=None):
    """A row of the least seconds of all rounds, as `amount` a second."""
    row = result_rows.row(name, shape, unit, ours, peer, version, amount)
    least = result_rows.row(name, shape, unit, [min(ours)], peer and [min(peer)], version, amount)
    return {**row, **{key: least[key] for key in ("ours", "peer", "ratio")}}


def measure(options, keys, dtype):
    """The rows of one length and type."""
    rounds, bytes_read = {}, 0
    peers = {"ggml": f"ggml {options.ggml}", READING: READING,
             "torch": f"PyTorch {torch.__version__.split('+')[0]} SDPA"}
    for _ in range(options.rounds):
        least, bytes_read = run_program(options, keys, dtype)
        if dtype != "int8":  # which PyTorch's attention does not read
            theirs = Torch(options, keys, dtype)
            least["torch"] = theirs.least(options.calls)
            del theirs
        for name, seconds in least.items():
            rounds.setdefault(name, []).append(seconds)
    shape = (f"N {keys}, {dtype}, {options.layers} layers of {options.heads} heads on "
             f"{options.key_heads} of {options.head_size}")
    for name in ("none", "rope", "rope, rotated keys"):
        for peer, version in peers.items():
            if name in rounds and peer in rounds:
                yield least_row(name, shape, "tokens/s", 1, rounds[name], rounds[peer], version)
    yield least_row(READING, shape, "GB/s", bytes_read / 1e9, rounds[READING])


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=pathlib.Path,
                        default=ROOT / "build/release/bin/bench_decode")
    parser.add_argument("--ggml", default="", help="the commit of ggml that the build found")
    parser.add_argument("--keys", type=program.numbers, default=[1024, 4096, 16384])
    parser.add_argument("--dtypes", type=lambda text: text.split(","),
                        default=["float32", "bfloat16", "float16", "int8"])
    parser.add_argument("--layers", type=program.positive, default=2)
    parser.add_argument("--heads", type=program.positive, default=32)
    parser.add_argument("--key-heads", type=program.positive, default=8)
    parser.add_argument("--head-size", type=program.positive, default=128)
    parser.add_argument("--threads", type=program.positive, default=1)
    parser.add_argument("--rounds", type=program.positive, default=5)
    parser.add_argument("--calls", type=program.positive, default=20,
                        help="calls of a round")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    rows = []
    for dtype in options.dtypes:
        for keys in options.keys:
            for row in measure(options, keys, dtype):
                beside = f"{row['ratio']:8.3f} of {row['peer_version']}" if row["ratio"] else ""
                print(f"{row['shape'][:18]:<20}{row['name']:<20}{row['ours']:10.1f} "
                      f"{row['unit']:<10}{beside}", flush=True)
                rows.append(row)
    path = records.write("engines", rows, commit=records.commit_of("HEAD"),
                         threads=options.threads, statistic="least",
                         command=shlex.join(["bench/decode.py", *sys.argv[1:]]))
    print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
