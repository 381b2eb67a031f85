#!/usr/bin/env python3
"""Runs clang-tidy over the sources of a build folder that have changed since their last pass.

    tests/tidy.py build/tidy [PATH...]          PATH: checks only sources under it; by default those
                                                of sextant/ and bench/

The folder is one without batches (the preset tidy): a batch of sources hides them.

Tests are not checked: GoogleTest's headers alone take clang-tidy 6 s per source.

In C++20, Clang reports an error in the headers of libtorch 1.13, the use of an incomplete type, but
continues. The script therefore counts only findings in this tree, and names the sources with that
error.

A source that passed leaves a stamp in BUILD/tidy/, named by a digest of its text, of all headers of
this tree that it includes, of .clang-tidy and of its compiler flags.
"""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOOL = "clang-tidy-14"
INCLUDE = re.compile(rb'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


def closure(file, seen):
    """Adds `file` and the headers of this tree that it includes, directly or indirectly, to `seen`,
    and returns `seen`."""
    if file in seen or not file.is_file():
        return seen
    seen.add(file)
    for name in INCLUDE.findall(file.read_bytes()):
        closure(ROOT / name.decode(), seen)
        closure(file.parent / name.decode(), seen)
    return seen


def digest(entry):
    sum = hashlib.sha256(entry["command"].encode())
    for file in [ROOT / ".clang-tidy", *sorted(closure(pathlib.Path(entry["file"]), set()))]:
        sum.update(file.read_bytes())
    return sum.hexdigest()


def tidy(build, entry):
    """(findings in this tree, whether Clang reported an error in a header outside it)."""
    stamp = build / "tidy" / digest(entry)
    if stamp.exists():
        return "", bool(stamp.read_text())
    run = subprocess.run(
        [TOOL, "--quiet", "-p", build, entry["file"]], capture_output=True, text=True)
    said = run.stdout + run.stderr
    stumbled = "[clang-diagnostic-error]" in said
    if run.returncode and (
            not stumbled or re.search(rf"^{re.escape(str(ROOT))}/.*: error: ", said, re.M)):
        return said, stumbled
    stamp.write_text("stumbled" if stumbled else "")
    return "", stumbled


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    only = [str((ROOT / path).resolve()) for path in sys.argv[2:]] or [
        str(ROOT / folder) + "/" for folder in ("sextant", "bench")]
    entries = [e for e in json.loads((build / "compile_commands.json").read_text())
               if e["file"].startswith(tuple(only))]
    if not entries:
        sys.exit("tidy: no sources to check")
    (build / "tidy").mkdir(exist_ok=True)
    wrong = 0
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for entry, (said, stumbled) in zip(entries, pool.map(lambda e: tidy(build, e), entries)):
            wrong += bool(said)
            print(said, end="")
            if stumbled:
                print(f"{entry['file']}: Clang cannot compile libtorch's headers here")
    print(f"{len(entries)} sources, {wrong} with findings")
    sys.exit(1 if wrong else 0)


main()
