"""The files of bench/results: one JSON object for each benchmark, machine and day.

bench/results/MACHINE/DATE-BENCH.json is {schema, bench, commit, date, machine, threads, command,
statistic, rows}. A row is {name, shape, ours, peer, peer_version, unit, rounds, spread, ratio};
fields that do not apply are null. `ours` and `peer` are in `unit`, `ratio` is ours over the peer's,
and `spread` is the largest of our rounds over the least. `statistic` is "median" or "least": the
statistic over the rounds that `ours` is. Files that no program wrote have the field `origin`.
bench/draw_figures.py draws the pages from these files.
"""

import datetime
import json
import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"

# Short names of processors, by vendor, family and model (Linux's /proc/cpuinfo).
PROCESSORS = {
    ("GenuineIntel", 6, 85): "cascade-lake",
    ("GenuineIntel", 6, 106): "ice-lake-sp",
    ("GenuineIntel", 6, 143): "sapphire-rapids",
    ("GenuineIntel", 6, 167): "rocket-lake",
    ("GenuineIntel", 6, 173): "granite-rapids",
    ("GenuineIntel", 6, 207): "emerald-rapids",
}
# AMD processors, by family and range of models.
ZEN = [
    (23, range(0x00, 0x100), "zen2"),
    (25, range(0x00, 0x10), "zen3"),
    (25, range(0x10, 0x20), "zen4"),
    (25, range(0x20, 0x60), "zen3"),
    (25, range(0x60, 0xB0), "zen4"),
    (26, range(0x00, 0x100), "zen5"),
]


def machine():
    """A short name of this processor with its number of cores: "zen4-2c"."""
    info = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    facts = dict(re.findall(r"^(vendor_id|cpu family|model|model name)\s*: (.*)$", info,
                            re.MULTILINE))
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
    """The first twelve digits of a commit of this repository."""
    return subprocess.run(["git", "-C", ROOT, "rev-parse", "--short=12", ref], check=True,
                          capture_output=True, text=True).stdout.strip()


def text(document):
    """The JSON text of a document, with one line for each field and each row."""
    fields = [f" {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}"
              for key, value in document.items() if key != "rows"]
    rows = ",\n".join("  " + json.dumps(row, ensure_ascii=False) for row in document["rows"])
    return "{\n" + ",\n".join([*fields, f' "rows": [\n{rows}\n ]']) + "\n}\n"


def least_row(name, shape, unit, ours, peer=None, peer_version=None):
    """A row of the least of our rounds beside the least of the peer's; without rounds, nulls."""
    mine, theirs = min(ours, default=None), min(peer or [], default=None)
    return {"name": name, "shape": shape, "ours": mine, "peer": theirs,
            "peer_version": peer_version if theirs else None, "unit": unit, "rounds": len(ours),
            "spread": max(ours) / mine if mine else None,
            "ratio": mine / theirs if mine and theirs else None}


def write(bench, rows, *, commit, command, threads=None, date=None, statistic="least",
           folder=RESULTS, on=None):
    """Writes FOLDER/MACHINE/DATE-BENCH.json and returns its path.

    `commit` is the measured commit, twelve digits; `command` the command line; `on` the short name
    of the machine (default: this one).
    """
    date, on = date or datetime.date.today().isoformat(), on or machine()
    path = pathlib.Path(folder) / on / f"{date}-{bench}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {"schema": 1, "bench": bench, "commit": commit, "date": date, "machine": on,
                "threads": threads or os.cpu_count(), "command": command, "statistic": statistic,
                "rows": rows}
    path.write_text(text(document), encoding="utf-8")
    return path
