#!/usr/bin/env python3
"""Times attention beside the program of an earlier commit.

    bench/beside.py --peer /path/of/earlier/bench_attention --peer-version COMMIT --name beside

Both programs run alternately, `--rounds` times, with the same arguments: by default the kinds of
the goals (bench/goal_lines.py) at one length and head size, and decoding. The result has the least
times of each kind and pass; it is written to bench/results/MACHINE/DATE-NAME.json
(bench/records.py). A ratio above 1 means that the peer was faster.
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
from goal_lines import FORWARD

ROOT = pathlib.Path(__file__).resolve().parent.parent


def measure(path, arguments):
    """{(kind, pass): least seconds} of one run."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "attention.json"
        subprocess.run([path, *arguments, "--no-eager", "--no-ggml", "--rounds", "3", "--json",
                        file], check=True, stdout=subprocess.DEVNULL)
        document = json.loads(file.read_text(encoding="utf-8"))
    return {(each["kind"], each["pass"]): min(each["ours"]["seconds"])
            for each in document["measured"]}


def compare(ours, peer, arguments, shape, options):
    """The rows of one list of arguments."""
    times = {ours: {}, peer: {}}
    for n in range(options.rounds):
        for path in (ours, peer):
            measured = measure(path, arguments)
            for cell, seconds in measured.items():
                times[path].setdefault(cell, []).append(seconds)
        print(f"{shape}: round {n + 1} of {options.rounds}", file=sys.stderr)
    for (kind, passes), mine in times[ours].items():
        theirs = times[peer].get((kind, passes))
        if not theirs:
            continue
        yield records.least_row(kind, f"{passes}, {shape}", "ms", [1e3 * t for t in mine],
                                [1e3 * t for t in theirs], options.peer_version)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=pathlib.Path,
                        default=ROOT / "build/release/bin/bench_attention")
    parser.add_argument("--peer", type=pathlib.Path, required=True)
    parser.add_argument("--peer-version", required=True, help="the commit of --peer")
    parser.add_argument("--name", required=True, help="of the result")
    parser.add_argument("--length", type=program.positive, default=2048)
    parser.add_argument("--head-size", type=program.positive, default=64)
    parser.add_argument("--threads", type=program.positive, default=1)
    parser.add_argument("--rounds", type=program.positive, default=3)
    options = parser.parse_args()

    threads = ["--threads", str(options.threads)]
    shape = f"N {options.length}, D {options.head_size}"
    rows = list(compare(options.program, options.peer,
                        [*threads, "--lengths", str(options.length), "--head-sizes",
                         str(options.head_size), "--window", "1024", "--kinds",
                         ",".join(FORWARD)], shape, options))
    rows += compare(options.program, options.peer,
                    [*threads, "--lengths", "64", "--kinds", "decode,decode-gqa"],
                    "8192 keys", options)
    for one in rows:
        print(f"{one['name']:<16}{one['shape']:<28}{one['ours']:9.2f} ms{one['peer']:9.2f} ms"
              f"{one['ratio']:7.3f}")
    path = records.write(options.name, rows, commit=records.commit_of("HEAD"),
                         threads=options.threads,
                         command=shlex.join(["bench/beside.py", *sys.argv[1:]]))
    print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
