#!/usr/bin/env python3
"""Times an encoder's attention block in a ggml graph, by ggml's own operations and by Sextant's.

    bench/blocks.py --ggml VERSION

The blocks are a FastConformer's (8 heads of 128: Parakeet) and a DeBERTa v3's (12 heads of 64),
with their projections, in float32. build/release/bin/bench_blocks, which `./check --ggml` builds,
has each way to write the attention (bench/blocks/layer.h). A process computes one way of one size;
in a round all ways follow each other, and from 2000 rows on there is one, without the slower ways
of ggml's float32. Times are the least of all calls. Memory is the peak of the process beyond the
weights and inputs, and the buffers that ggml allocates for the graph and its threads. All ways must
agree. The result is written to bench/results/ (bench/records.py).
"""

import argparse
import json
import pathlib
import shlex
import subprocess
import sys
import tempfile

import program
import records

ROOT = pathlib.Path(__file__).resolve().parent.parent
BLOCKS = {"conformer": "8 heads of 128", "deberta": "12 heads of 64"}
OURS = "Sextant"
# So many rows have one round, without the float32 ways of ggml that were not the fastest before.
MANY_ROWS = 2000


def call(options, block, **settings):
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "blocks.json"
        command = [options.program, "--block", block, "--json", str(file)]
        for name, value in settings.items():
            command += [f"--{name}", str(value)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return json.loads(file.read_text(encoding="utf-8"))


def difference(values, expected):
    """The largest difference, relative to the largest value."""
    return (max(abs(a - b) for a, b in zip(values, expected)) / max(abs(b) for b in expected))


def measure(options, block, ways, rows, threads):
    """The rows of one size: each way of ggml's beside Sextant's."""
    found = {way: [] for way in ways}
    for _ in range(options.rounds if rows < MANY_ROWS else 1):
        for way in ways:
            found[way].append(call(options, block, way=way, rows=rows, threads=threads))
    expected = next(runs[0] for way, runs in found.items() if way != OURS and runs[0]["exact"])
    for way, runs in found.items():
        error, bound = difference(runs[0]["sample"], expected["sample"]), \
            1e-5 if runs[0]["exact"] else 1e-2
        if not error <= bound:
            sys.exit(f"{block}, {rows} rows, {way}: expected at most {bound} of {expected['way']}, "
                     f"but got {error}")
    shape = f"N {rows}, {BLOCKS[block]}, {threads} threads"
    values = {"s": lambda run: run["seconds"]["least"], "B": lambda run: run["peak"],
              "B of buffers": lambda run: run["bytes"]}
    result = [records.least_row(block, shape, unit, [value(run) for run in found[OURS]],
                                [value(run) for run in found[way]], f"ggml {options.ggml}, {way}")
              for way in ways if way != OURS for unit, value in values.items()]
    seconds = {way: min(map(values["s"], runs)) for way, runs in found.items()}
    exact = {way for way in ways if way != OURS and found[way][0]["exact"]}
    fastest = min(exact, key=seconds.get)
    return result, [way for way in ways if way not in exact or way == fastest]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=pathlib.Path,
                        default=ROOT / "build/release/bin/bench_blocks")
    parser.add_argument("--ggml", default="", help="the version of ggml that the build found")
    parser.add_argument("--blocks", type=lambda text: text.split(","), default=list(BLOCKS))
    parser.add_argument("--rows", type=program.numbers, default=[377, 1500, 1504, 3000, 6000])
    parser.add_argument("--threads", type=program.numbers, default=[1, 2])
    parser.add_argument("--rounds", type=program.positive, default=3)
    options = parser.parse_args()
    rows = []
    for block in options.blocks:
        ways = fastest = call(options, block)["ways"]
        for length in options.rows:
            for threads in options.threads:
                measured, fastest = measure(
                    options, block, fastest if length >= MANY_ROWS else ways, length, threads)
                for row in measured:
                    print(f"{block:<10}{row['shape']:<36}{row['ours']:14.4g} {row['unit']:<13}"
                          f"{1 / row['ratio']:6.2f} times less than {row['peer_version']}",
                          flush=True)
                    rows.append(row)
    path = records.write("blocks", rows, commit=records.commit_of("HEAD"),
                         threads=max(options.threads),
                         command=shlex.join(["bench/blocks.py", *sys.argv[1:]]))
    print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
