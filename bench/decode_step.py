#!/usr/bin/env python3
"""Times one decoding step and counts its allocations, beside the program of an earlier commit.

    bench/decode_step.py --peer /path/of/earlier/bench_decode_step --peer-version COMMIT

Both programs run alternately, `--rounds` times, on one thread of an otherwise idle machine. The
result has the least times and the calls of operator new of one step; it is written to
bench/results/ (bench/records.py).
"""

import argparse
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

import program
import records

ROOT = pathlib.Path(__file__).resolve().parent.parent


def measure(path, methods):
    """The shape, and {name: (least seconds, calls of operator new)}, of one run."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "step.json"
        subprocess.run([path, "--methods", methods, "--json", file], check=True,
                       stdout=subprocess.DEVNULL, env=dict(os.environ, OMP_NUM_THREADS="1"))
        measured = json.loads(file.read_text(encoding="utf-8"))
    shape = (f"{measured['layers']} layers, {measured['heads']} heads of {measured['head_dim']}, "
             f"{measured['keys']} keys")
    return shape, {row["name"]: (row["least"], row["allocations"]) for row in measured["measured"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=pathlib.Path,
                        default=ROOT / "build/release/bin/bench_decode_step")
    parser.add_argument("--peer", type=pathlib.Path, help="the program of another commit")
    parser.add_argument("--peer-version", help="that commit")
    parser.add_argument("--methods", default="rope", help="of the transformer (rope)")
    parser.add_argument("--rounds", type=program.positive, default=5)
    options = parser.parse_args()

    ours, peer, shape = {}, {}, None
    for _ in range(options.rounds):
        for path, to in ((options.peer, peer), (options.program, ours)):
            if path:
                shape, measured = measure(path, options.methods)
                for name, values in measured.items():
                    to.setdefault(name, []).append(values)
    rows = []
    for name, values in ours.items():
        for n, unit, factor in ((0, "ms", 1e3), (1, "calls of operator new", 1)):
            rows.append(records.least_row(name, shape, unit, [factor * one[n] for one in values],
                                          [factor * one[n] for one in peer.get(name, [])],
                                          options.peer_version))
    for one in rows:
        beside = f"{one['peer']:10.2f}  {one['ratio']:.3f}" if one["peer"] else ""
        print(f"{one['name']:<12}{one['ours']:10.2f} {one['unit']:<24}{beside}")
    path = records.write("decode-step", rows, commit=records.commit_of("HEAD"), threads=1,
                         command=shlex.join(["bench/decode_step.py", *sys.argv[1:]]))
    print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
