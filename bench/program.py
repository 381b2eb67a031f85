"""Command-line numbers and files of results, for the Python programs that time something."""

import argparse
import datetime
import json
import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Short names of processors in bench/results, by vendor, family and model (Linux's /proc/cpuinfo).
PROCESSORS = {
    ("GenuineIntel", 6, 85): "cascade-lake",
    ("GenuineIntel", 6, 106): "ice-lake-sp",
    ("GenuineIntel", 6, 143): "sapphire-rapids",
    ("GenuineIntel", 6, 167): "rocket-lake",
    ("GenuineIntel", 6, 173): "granite-rapids",
    ("GenuineIntel", 6, 207): "emerald-rapids",
}
# AMD's, by family and models.
ZEN = [
    (23, range(0x00, 0x100), "zen2"),
    (25, range(0x00, 0x10), "zen3"),
    (25, range(0x10, 0x20), "zen4"),
    (25, range(0x20, 0x60), "zen3"),
    (25, range(0x60, 0xB0), "zen4"),
    (26, range(0x00, 0x100), "zen5"),
]


def positive(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected at least 1, but got {number}")
    return number


def writable(path):
    """Asked first, for timing takes minutes. What the file holds stays until there is something
    new."""
    try:
        with open(path, "a", encoding="utf-8"):
            return path
    except OSError as error:
        raise argparse.ArgumentTypeError(f"expected a file that can be written, but got {path}: {error.strerror}") from error


def write(path, content):
    if path:
        with open(path, "w", encoding="utf-8") as to:
            json.dump(content, to, indent=1)


def machine():
    """A short name of this processor with its number of cores: "zen4-2c"."""
    info = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    facts = dict(re.findall(r"^(vendor_id|cpu family|model|model name)\s*: (.*)$", info, re.MULTILINE))
    try:
        family, model = int(facts["cpu family"]), int(facts["model"])
    except (KeyError, ValueError):
        name = None
    else:
        name = PROCESSORS.get((facts.get("vendor_id"), family, model))
        if facts.get("vendor_id") == "AuthenticAMD":
            name = next((zen for f, models, zen in ZEN if f == family and model in models), None)
    if name is None:
        words = re.sub(r"\(R\)|\(TM\)|Processor|CPU|@.*", " ", facts.get("model name", "unknown"))
        name = "-".join(words.lower().split())
    return f"{name}-{os.cpu_count()}c"


def commit_of(ref):
    """The twelve digits of a commit of this repository."""
    return subprocess.run(["git", "-C", ROOT, "rev-parse", "--short=12", ref], check=True,
                          capture_output=True, text=True).stdout.strip()


def record(bench, rows, *, commit="HEAD", command, threads=None):
    """Writes bench/results/MACHINE/DATE-BENCH.json, and returns its path.

    A row is {name, shape, ours, peer, peer_version, unit, rounds, spread, ratio}; fields that do
    not apply are None. `commit` is the one that was measured, `command` the command line.
    """
    date = datetime.date.today().isoformat()
    path = ROOT / "bench" / "results" / machine() / f"{date}-{bench}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path, {"schema": 1, "bench": bench, "commit": commit_of(commit), "date": date,
                 "machine": machine(), "threads": threads or os.cpu_count(), "command": command,
                 "rows": rows})
    return path
