#!/usr/bin/env python3
"""Times attention with dropout and with a softcap beside plain attention of the same rounds.

    bench/dropout.py

The result is the time of each pass as a multiple of the plain kind's, from the rounds of one run of
bench_attention. It is written to bench/results/MACHINE/DATE-dropout.json (bench/records.py).
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
import result_rows

ROOT = pathlib.Path(__file__).resolve().parent.parent
KINDS = ("dropout", "softcap")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=pathlib.Path,
                        default=ROOT / "build/release/bin/bench_attention")
    parser.add_argument("--threads", type=program.positive, default=1)
    parser.add_argument("--rounds", type=program.positive, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "attention.json"
        subprocess.run([options.program, "--kinds", ",".join(("full", *KINDS)), "--no-eager",
                        "--no-ggml", "--lengths", "2048", "--head-sizes", "64,128", "--threads",
                        str(options.threads), "--rounds", str(options.rounds), "--json", file],
                       check=True)
        document = json.loads(file.read_text(encoding="utf-8"))
    rows = [row for row in result_rows.attention(document) if row["name"] in KINDS]
    path = records.write("dropout", rows, commit=records.commit_of("HEAD"),
                         threads=options.threads, statistic="median",
                         command=shlex.join(["bench/dropout.py", *sys.argv[1:]]))
    print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
