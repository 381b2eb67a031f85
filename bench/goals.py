#!/usr/bin/env python3
"""Measures the project's goals for speed and memory in one run, and judges each of them.

    bench/goals.py --out build/goals

The programs of this folder that a goal needs run one after the other, each on the whole machine,
and each writes a file into the folder --out. A program whose file exists is not run again, so that
an interrupted run continues; a new folder starts from the beginning. --only NAME,... runs some of
the programs, and judges the existing files.

    bench/goals.py --out build/goals --results bench/results --machine zen4-2c

writes the medians of the same files into bench/results, from which bench/draw_figures.py draws
docs/performance.md. The name of the machine is made from /proc/cpuinfo by default.

    bench/goals.py --out build/after --before build/before --before-version COMMIT --results ...

writes instead the figures of both folders side by side (DATE-beside-goals.json); the folder of the
earlier commit was measured with that commit's own goals.py, in the same sitting.

With --python, an interpreter with PyTorch 2, and --library, the library built for it, PyTorch's
attention is timed too (tests/check_torch.sh builds one: build/with-torch-VERSION/lib/
libsextant_torch.so, with build/torch-VERSION/bin/python).

bench/goal_lines.py defines the goals. docs/internals/kernels.md has the limit of each kernel.
"""

import argparse
import datetime
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import time

import program
import records
import result_rows
from goal_lines import FORWARD, HEAD_SIZES, LENGTHS, judge

ROOT = pathlib.Path(__file__).resolve().parent.parent


def joined(values):
    return ",".join(map(str, values))


def commands(options):
    """{name of a file: (command, environment)}, in the order of the run."""
    programs = options.build / "bin"
    threads, rounds = ["--threads", options.threads], ["--rounds", options.rounds]
    sizes = ["--head-sizes", joined(HEAD_SIZES)]
    both = ["--lengths", joined(LENGTHS), *sizes, "--window", "1024", "--no-eager", "--no-ggml"]
    attention, kinds = [programs / "bench_attention", *threads], ["--kinds", joined(FORWARD)]
    plain = ["--kinds", "causal,full"]
    result = {
        "position": [programs / "bench_position", "--rounds", 3 * options.rounds],
        "rotation": [programs / "bench_rotate", *threads, "--rounds", 3 * options.rounds],
        "training": [programs / "bench_training", "--rounds", 3 * options.rounds],
        "decoding": [*attention, "--no-eager", "--no-ggml", "--lengths", 64, "--kinds",
                     "decode,decode-gqa", "--rounds", 5 * options.rounds],
        "bfloat16": [*attention, *both, "--no-backward", "--backend", "cpu-bf16", "--dtype",
                     "bfloat16", *plain, *rounds],
        "attention": [*attention, *both, *kinds, *rounds],
        "amx": [*attention, *both, "--backend", "cpu-bf16x3", *plain, *rounds],
    }
    # No goal uses this file; the charts of share and memory by length are drawn from it.
    result["growth"] = [*attention, "--lengths", joined(2**n for n in range(9, 16)),
                        "--head-sizes", 64, "--no-eager", "--no-ggml", "--no-backward", "--kinds",
                        "causal", *rounds]
    for name, backend in (("eager", "cpu"), ("eager-amx", "cpu-bf16x3")):
        result[name] = [*attention, "--lengths", 2048, *sizes, "--window", 256, "--no-ggml",
                        "--backend", backend, *kinds, *rounds]
    result = {name: (list(map(str, command)), None) for name, command in result.items()}

    def python(name, interpreter, library, script, *arguments):
        environment = {"SEXTANT_LIBRARY": str(library), "PYTHONPATH": str(ROOT / "python")}
        command = [interpreter, ROOT / "bench" / script, *arguments, *threads]
        result[name] = (list(map(str, command)), environment)

    if options.python:
        for size in HEAD_SIZES:
            python(f"peers-{size}", options.python, options.library, "peers.py", "--methods",
                   "none", "--lengths", joined(LENGTHS), "--head-size", size, *rounds)
    # Debian's Python has python3-torch; another one may be first in PATH.
    python("memory", options.python or "/usr/bin/python3",
           options.library or options.build / "lib" / "libsextant_torch.so", "memory.py",
           "--length", 32768, "--patience", 900)
    return result


def build_program(build, target):
    """Builds a program that is not part of the default build. Does nothing in a
    folder that is not CMake's, whose programs must exist."""
    if not (build / "CMakeCache.txt").is_file():
        return
    if subprocess.run(["cmake", "--build", build, "--target", target], check=False).returncode:
        raise SystemExit(f"goals: expected a build folder with the target {target} "
                         f"(-DSEXTANT_BENCH=ON), but it could not be built in {build}")


def run(name, command, environment, to):
    """Runs `command` and writes its measurements to the file `to`, completely or not at all."""
    if shutil.which(command[0]) is None:
        raise SystemExit(f"goals: expected a program that can be run, but got {command[0]}; "
                         "./check builds them, or cmake with -DSEXTANT_BENCH=ON, and --build says "
                         "where they are")
    print(" ".join(command), flush=True)
    new = to.with_suffix(".new")
    start = time.monotonic()
    status = subprocess.run([*command, "--json", str(new)], check=False,
                            env={**os.environ, **(environment or {})}).returncode
    if new.exists() and new.stat().st_size > 0:
        short = [word.removeprefix(f"{ROOT}/") for word in command]
        document = {**json.loads(new.read_text(encoding="utf-8")),
                    "commit": records.commit_of("HEAD"), "command": shlex.join(short),
                    "date": datetime.date.today().isoformat()}
        new.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        new.replace(to)
        print(f"---- {name} took {time.monotonic() - start:.0f} s", flush=True)
    else:
        print(f"---- {name} ended with status {status} and measured nothing; its lines are left "
              "out", flush=True)
        new.unlink(missing_ok=True)


def read(folder, names):
    measured = {}
    for name in names:
        file = folder / f"{name}.json"
        if file.exists():
            try:
                measured[name] = json.loads(file.read_text(encoding="utf-8"))
            except ValueError as error:
                raise SystemExit(f"goals: {file}: expected JSON, but got {error}; remove the file "
                                 "to measure again") from error
    return measured


def record(measured, folder, machine):
    """Writes the rows of all measured files into the results folder."""
    for name, document in measured.items():
        if "commit" not in document:
            print(f"goals: {name}.json: expected the commit that was measured, but got none: an "
                  "older goals.py wrote it; remove it to measure again", file=sys.stderr)
        elif rows := result_rows.rows(name, measured):
            print(records.write(name, rows, commit=document["commit"], command=document["command"],
                                threads=document.get("threads", 1), date=document["date"],
                                statistic="median", folder=folder, on=machine))


def record_beside(measured, before, options):
    """Writes the rows that both folders have: ours from the first, the peer's from the second."""
    rows = []
    for name in measured.keys() & before.keys():
        earlier = {(row["name"], row["shape"], row.get("peer_version")): row
                   for row in result_rows.rows(name, before)}
        for row in result_rows.rows(name, measured):
            peer = earlier.get((row["name"], row["shape"], row.get("peer_version")))
            # Limits, which are no measurements, have neither a value nor rounds.
            if peer is not None and row["ours"] and peer["ours"]:
                label = row["name"] if name == "attention" else f"{row['name']} ({name})"
                rows.append({"name": label, "shape": row["shape"], "unit": row["unit"],
                             "rounds": row["rounds"],
                             "spread": max(each["spread"] for each in (row, peer)),
                             "ours": row["ours"], "peer": peer["ours"],
                             "peer_version": options.before_version,
                             "ratio": float(f"{row['ours'] / peer['ours']:.6g}")})
    rows.sort(key=lambda row: (row["name"], row["shape"]))
    print(records.write("beside-goals", rows, commit=records.commit_of("HEAD"),
                        command=shlex.join(["bench/goals.py", *sys.argv[1:]]),
                        threads=options.threads, date=datetime.date.today().isoformat(),
                        statistic="median", folder=options.results, on=options.machine))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder of measured files")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release",
                        help="folder of the programs")
    parser.add_argument("--threads", type=program.positive, default=2)
    parser.add_argument("--rounds", type=program.positive, default=5,
                        help="of attention; quick programs get more")
    parser.add_argument("--python", help="an interpreter with PyTorch 2, a peer")
    parser.add_argument("--library", type=pathlib.Path,
                        help="libsextant_torch.so built for --python")
    parser.add_argument("--only", type=lambda x: x.split(","),
                        help="run these only; judge the files that are there")
    parser.add_argument("--json", type=program.writable, help="write all lines to this file")
    parser.add_argument("--results", type=pathlib.Path,
                        help="write MACHINE/DATE-NAME.json files into this folder")
    parser.add_argument("--before", type=pathlib.Path,
                        help="folder that an earlier commit's goals.py measured")
    parser.add_argument("--before-version", help="that commit")
    parser.add_argument("--machine", help='short name of the machine, such as "zen4-2c"')
    options = parser.parse_args()
    if bool(options.python) != bool(options.library):
        parser.error("--python and --library: expected both or none")
    if bool(options.before) != bool(options.before_version):
        parser.error("--before and --before-version: expected both or none")
    if options.before and not options.results:
        parser.error("--before: expected --results, too")
    if options.machine and not options.results:
        parser.error("--machine: expected --results, too")
    known = commands(options)
    for name in options.only or []:
        if name not in known:
            parser.error(f"--only: expected some of {', '.join(known)}, but got {name}")
    options.out.mkdir(parents=True, exist_ok=True)
    wanted = [name for name in known if options.only is None or name in options.only]
    # Before the first measurement, which a compiler beside it would disturb.
    if "rotation" in wanted and not (options.out / "rotation.json").exists():
        build_program(options.build, "bench_rotate")
    for n, name in enumerate(wanted, 1):
        file = options.out / f"{name}.json"
        if not file.exists():
            print(f"\n---- {n} of {len(wanted)}, {name}", flush=True)
            run(name, *known[name], file)
    # Files of an earlier run with --python are used, too.
    measured = read(options.out, dict.fromkeys([*known, *(f"peers-{size}" for size in HEAD_SIZES)]))
    program.write(options.json, judge(measured))
    if options.before:
        record_beside(measured, read(options.before, known), options)
    elif options.results:
        record(measured, options.results, options.machine)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("\ngoals: stopped; the measured files are kept, and the same command goes on",
              file=sys.stderr)
        sys.exit(130)
