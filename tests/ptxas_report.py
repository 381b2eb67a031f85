#!/usr/bin/env python3
"""Reads what `ptxas -v` prints and fails if a kernel spills registers to memory.

    tests/ptxas_report.py FILE...

Prints a line for each architecture: "sm_90: 56 kernels, at most 255 registers, 0 bytes of spills".
A function that spills is printed with its architecture and number of bytes, and the status is 1.
"""

import collections
import pathlib
import re
import subprocess
import sys

ENTRY = re.compile(r"Compiling entry function '(\w+)' for '(\w+)'")
PROPERTIES = re.compile(r"Function properties for (\w+)")
SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
REGISTERS = re.compile(r"Used (\d+) registers")


def read(lines):
    """({architecture: registers of its kernels}, [(architecture, function, bytes of spills)])."""
    registers, spills = collections.defaultdict(list), []
    architecture = function = None
    for line in lines:
        if found := ENTRY.search(line):
            function, architecture = found.groups()
        elif found := PROPERTIES.search(line):
            function = found[1]
        elif found := SPILLS.search(line):
            spilled = int(found[2]) + int(found[3])
            if spilled:
                spills.append((architecture, function, spilled))
        elif found := REGISTERS.search(line):
            registers[architecture].append(int(found[1]))
    return registers, spills


def demangled(names):
    """The names as C++ writes them, where there is a c++filt."""
    try:
        return subprocess.run(["c++filt"], input="\n".join(names), text=True, check=True,
                              capture_output=True).stdout.splitlines()
    except OSError:
        return names


def main():
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    lines = [line for name in sys.argv[1:]
             for line in pathlib.Path(name).read_text(encoding="utf-8").splitlines()]
    registers, spills = read(lines)
    if not registers:
        raise SystemExit("ptxas_report.py: expected the output of ptxas -v, but there is none")
    for architecture, counts in sorted(registers.items()):
        spilled = sum(bytes_ for at, _, bytes_ in spills if at == architecture)
        print(f"{architecture}: {len(counts)} kernels, at most {max(counts)} registers, "
              f"{spilled} bytes of spills")
    for (architecture, _, spilled), name in zip(spills, demangled([f for _, f, _ in spills])):
        print(f"{architecture}: {name} spills {spilled} bytes", file=sys.stderr)
    return 1 if spills else 0


if __name__ == "__main__":
    sys.exit(main())
