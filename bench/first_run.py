#!/usr/bin/env python3
"""Times the first run of a clean clone on a fresh Debian, beside an earlier commit.

    bench/first_run.py                     HEAD beside c4e4547; both build without a compiler cache
    bench/first_run.py --peer "" --survey  HEAD alone, and `./run` to the end of its survey
    bench/first_run.py --check             `./check --quick` of HEAD, with packages and build
    bench/first_run.py --here              the cold build alone, in clones on this system

Each commit is built in a fresh system of scripts/clean_chroot.sh (needs root and debootstrap), the
two alternately and `--rounds` times, on an otherwise idle machine. Times of the survey start with
the finished clone: packages, build, and the survey until its first table and its end. The result
has the least times, and the largest over the least; it is written to bench/results/
(bench/records.py).
"""

import argparse
import os
import pathlib
import resource
import shlex
import subprocess
import sys
import tempfile
import time

import program
import records

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHAPE = f"{os.cpu_count()} cores, no compiler cache"
SETUP = "set -e; source scripts/setup.sh; lock_builds; "
STEPS = {
    "packages": SETUP + 'install "${build_packages[@]}" "${text_packages[@]}" '
                        '"${torch_packages[@]}"',
    "build": SETUP + "configure -DSEXTANT_TESTS=OFF -DSEXTANT_BENCH=OFF; build sextant",
}


def clone_command(system, ref, script, suite="bookworm"):
    """The command that runs `script` in a clone of `ref` in the folder `system`."""
    return ["env", "CCACHE_DISABLE=1", ROOT / "scripts/clean_chroot.sh", "--ref", ref,
            "--suite", suite, "--keep", system, "bash", "-c", script]


def timed(command, **options):
    """Runs a command. Returns its seconds of wall clock, and of CPU over all its processes."""
    def cpu():
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    began, before = time.monotonic(), cpu()
    subprocess.run(command, check=True, **options)
    return time.monotonic() - began, cpu() - before


def step(system, ref, name):
    """Runs a step in a clone; as timed()."""
    return timed(clone_command(system, ref, STEPS[name]))


def survey(system, ref):
    """Runs `./run`. Returns the seconds until its first table and until its end."""
    began, first = time.monotonic(), None
    with subprocess.Popen(clone_command(system, ref, "./run"), stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace") as running:
        for line in running.stdout:
            sys.stderr.write(line)
            if first is None and line.startswith("method "):
                first = time.monotonic() - began
    if running.returncode != 0 or first is None:
        raise SystemExit(f"first_run: ./run of {ref} ended with {running.returncode} and "
                         f"{'a' if first else 'no'} table")
    return first, time.monotonic() - began


def quick_check(ref, suite):
    """The rows of `./check --quick`, as continuous integration runs it."""
    with tempfile.TemporaryDirectory(prefix="sextant-check-") as folder:
        system = pathlib.Path(folder) / "system"
        subprocess.run(clone_command(system, ref, "true", suite), check=True)
        began = time.monotonic()
        subprocess.run(clone_command(system, ref, "./check --quick", suite), check=True)
        return [{"name": "./check --quick, from the clone", "shape": SHAPE, "ours":
                 time.monotonic() - began, "peer": None, "peer_version": None, "unit": "s",
                 "rounds": 1, "spread": None, "ratio": None}]


def first_run(ref, with_survey):
    """{name of a row: seconds} of one commit."""
    with tempfile.TemporaryDirectory(prefix="sextant-first-run-") as folder:
        system = pathlib.Path(folder) / "system"
        # The base system and the clone are made before the timing starts.
        subprocess.run(clone_command(system, ref, "true"), check=True)
        packages, _ = step(system, ref, "packages")
        wall, cpu = step(system, ref, "build")
        times = {"packages": packages, "cold build, wall clock": wall, "cold build, CPU": cpu}
        if with_survey:
            first, end = survey(system, ref)
            times["from the clone to the first table"] = packages + wall + first
            times["from the clone to the end of the survey"] = packages + wall + end
        return times


def build_here(ref):
    """{name of a row: seconds} of a cold build of one commit in a clone on this system."""
    with tempfile.TemporaryDirectory(prefix="sextant-build-") as folder:
        subprocess.run(["git", "clone", "--quiet", ROOT, folder], check=True)
        subprocess.run(["git", "-C", folder, "checkout", "--quiet", "--detach", ref], check=True)
        wall, cpu = timed(["bash", "-c", STEPS["build"]], cwd=folder,
                          env=dict(os.environ, CCACHE_DISABLE="1"))
        return {"cold build, wall clock": wall, "cold build, CPU": cpu}


def row(name, ours, peer, version):
    """A row of bench/results from the times of the rounds, {name: seconds} each."""
    def rounds_of(all_times):
        return [times[name] for times in all_times if name in times]

    return records.least_row(name, SHAPE, "s", rounds_of(ours), rounds_of(peer), version)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ref", default="HEAD", help="the commit that is timed (HEAD)")
    parser.add_argument("--peer", default="c4e4547", help="the commit beside it; \"\": none")
    parser.add_argument("--rounds", type=program.positive, default=1)
    parser.add_argument("--survey", action="store_true", help="run the survey of --ref, too")
    parser.add_argument("--check", action="store_true", help="time ./check --quick instead")
    parser.add_argument("--here", action="store_true",
                        help="build on this system, whose packages must be installed")
    parser.add_argument("--suite", default="bookworm", help="Debian's, for --check (bookworm)")
    options = parser.parse_args()

    # HEAD may move while this runs.
    options.ref = records.commit_of(options.ref)
    command = shlex.join(["bench/first_run.py", *sys.argv[1:]])
    if options.check:
        rows = quick_check(options.ref, options.suite)
        print(f"{rows[0]['name']}: {rows[0]['ours']:.0f} s")
        path = records.write(f"check-{options.suite}", rows, commit=options.ref, command=command)
        print(path.relative_to(ROOT))
        return
    ours, peer = [], []
    for n in range(options.rounds):
        if options.peer:
            peer.append(build_here(options.peer) if options.here
                        else first_run(options.peer, with_survey=False))
        ours.append(build_here(options.ref) if options.here
                    else first_run(options.ref, options.survey and n == 0))
    rows = [row(name, ours, peer, options.peer) for name in ours[0]]
    for one in rows:
        beside = f"{one['peer']:8.1f} s  {one['ratio']:.2f}" if one["peer"] else ""
        print(f"{one['name']:<42}{one['ours']:8.1f} s {beside}")
    path = records.write("build" if options.here else "first-run", rows, commit=options.ref,
                         command=command)
    print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
