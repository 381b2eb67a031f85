#!/usr/bin/env python3
"""Times the arms of one survey, run by one worker and by two at once, as on two machines.

    bench/arms.py [--command build/release/bin/sextant]

Each round prepares two equal surveys of trainings on text of equal length. One process
`sextant arm` runs all arms of the first one; two processes at once run those of the second one, one
half each (docs/many-machines.md). Both processes are on this machine, each with one thread. The
ratio is the time of two workers over that of one: 0.5 is perfect. The result is printed and written
to bench/results/MACHINE/DATE-arms.json (bench/records.py).
"""

import argparse
import pathlib
import shlex
import subprocess
import sys
import tempfile
import time

import program
import records


def prepared(options, folder):
    """The folders of the arms of a new survey."""
    methods = ",".join(f"rope:base={1000 * (n + 1)}" for n in range(options.arms))
    subprocess.run([options.command, "survey", "--smoke", "--methods", methods, "--bytes",
                    options.bytes, "--retrieval-steps", "0", "--out", folder, "--prepare"],
                   check=True, stdout=subprocess.DEVNULL)
    return [folder / arm for arm in (folder / "arms.txt").read_text(encoding="utf-8").split()]


def seconds(options, folder, workers):
    """The time until as many workers have run the arms of a new survey."""
    arms = prepared(options, folder)
    began = time.perf_counter()
    started = [subprocess.Popen([options.command, "arm", *arms[n::workers]],
                                stderr=subprocess.DEVNULL) for n in range(workers)]
    if any([one.wait() for one in started]):
        sys.exit(f"bench/arms.py: expected all arms of {folder} to be done, but a worker failed")
    return time.perf_counter() - began


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--command", type=pathlib.Path,
                        default=records.ROOT / "build" / "release" / "bin" / "sextant")
    parser.add_argument("--arms", type=program.positive, default=8)
    parser.add_argument("--bytes", default="800000", help="of each training")
    parser.add_argument("--rounds", type=program.positive, default=3)
    parser.add_argument("--results", type=pathlib.Path, default=records.RESULTS)
    options = parser.parse_args()
    alone, together = [], []
    for _ in range(options.rounds):
        with tempfile.TemporaryDirectory() as folder:
            alone.append(seconds(options, pathlib.Path(folder, "one"), 1))
            together.append(seconds(options, pathlib.Path(folder, "two"), 2))
    shape = f"{options.arms} trainings of {options.bytes} bytes"
    row = records.least_row("two workers", shape, "s", together, alone, "one worker")
    print(f"{shape}: two workers take {row['ratio']:.2f} of the time of one")
    path = records.write("arms", [row], commit=records.commit_of("HEAD"), threads=1,
                         command=shlex.join(["bench/arms.py", *sys.argv[1:]]),
                         folder=options.results)
    print(path)


if __name__ == "__main__":
    main()
