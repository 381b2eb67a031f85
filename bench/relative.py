#!/usr/bin/env python3
"""Times relative attention by the C API beside matrix products of OpenBLAS.

    bench/relative.py

8 heads of 64, all keys visible: a Conformer's attention (terms of Transformer-XL) and DeBERTa's
(256 buckets, both terms). build/release/bin/bench_relative times Sextant, products over all rows at
once ("plain") and over blocks of 128 queries ("blocked"), whose loops are vectorised for the
machine, in turn. Times are the least of all rounds. The result is written to bench/results/
(bench/records.py).
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


def rounds_of(options, block, rows, threads):
    """{name: seconds of each round}"""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "relative.json"
        subprocess.run([options.program, "--block", block, "--rows", str(rows), "--threads",
                        str(threads), "--rounds", str(options.rounds), "--json", str(file)],
                       check=True, stdout=subprocess.DEVNULL)
        found = json.loads(file.read_text(encoding="utf-8"))
    return {name: value["seconds"] for name, value in found.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=pathlib.Path,
                        default=ROOT / "build/release/bin/bench_relative")
    parser.add_argument("--openblas", default="0.3.21", help="the version of OpenBLAS")
    parser.add_argument("--rows", type=program.numbers, default=[377, 1500, 3000])
    parser.add_argument("--threads", type=program.numbers, default=[1, 2])
    parser.add_argument("--rounds", type=program.positive, default=7)
    options = parser.parse_args()
    rows = []
    for block in ("conformer", "deberta"):
        for length in options.rows:
            for threads in options.threads:
                found = rounds_of(options, block, length, threads)
                for peer in ("plain", "blocked"):
                    row = records.least_row(block, f"N {length}, 8 heads of 64, {threads} threads",
                                            "s", found["Sextant"], found[peer],
                                            f"OpenBLAS {options.openblas}, {peer}")
                    print(f"{block:<10}{row['shape']:<32}{1e3 * row['ours']:9.2f} ms "
                          f"{1 / row['ratio']:6.2f} times as fast as {row['peer_version']}",
                          flush=True)
                    rows.append(row)
    path = records.write("relative", rows, commit=records.commit_of("HEAD"),
                         threads=max(options.threads),
                         command=shlex.join(["bench/relative.py", *sys.argv[1:]]))
    print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
