#!/usr/bin/env python3
"""clang-tidy over the sources of a build folder, each again only when it or what it includes has changed.

    scripts/tidy.py build/release [PATH...]     PATH: only sources under it

A source that passed leaves a stamp in BUILD/tidy/, named by a digest of its text, of all headers of this
tree that it includes, of .clang-tidy and of its compiler flags.
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
    """`file` and the headers of this tree that it includes, directly or not."""
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
    stamp = build / "tidy" / digest(entry)
    if stamp.exists():
        return ""
    run = subprocess.run(
        [TOOL, "--quiet", "-p", build, entry["file"]], capture_output=True, text=True)
    if run.returncode == 0:
        stamp.touch()
        return ""
    return run.stdout + run.stderr


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    only = [str((ROOT / path).resolve()) for path in sys.argv[2:]] or [
        str(ROOT / folder) + "/" for folder in ("sextant", "tests", "bench")]
    entries = [e for e in json.loads((build / "compile_commands.json").read_text())
               if e["file"].startswith(tuple(only))]
    if not entries:
        sys.exit("tidy: no sources to check")
    (build / "tidy").mkdir(exist_ok=True)
    wrong = 0
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for said in pool.map(lambda entry: tidy(build, entry), entries):
            wrong += bool(said)
            print(said, end="")
    print(f"{len(entries)} sources, {wrong} with findings")
    sys.exit(1 if wrong else 0)


main()
