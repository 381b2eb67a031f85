#!/usr/bin/env python3
"""The goals that this project has for its speed, measured in one run and judged one by one.

    bench/goals.py --to build/goals

Runs the programs of this folder that a goal is about one after the other, each on the whole
machine, and keeps what each measured in a file of the folder --to. A program whose file is there is
not run again, so a run that was stopped goes on; another folder starts anew. --only NAME,... runs
some, and judges what is there.

Beside PyTorch 2 it times what --python imports, with the library that was built for it
(scripts/check_torch.sh builds one: build/torch-VERSION/lib/libsextant_torch.so, with
build/python-VERSION/bin/python). Without, those lines are left out.

A line is judged by the least times of the rounds; its median is beside it. "limit" is what this
machine leaves at best, by the steps of the kernels measured in the same run or, where it says so,
by counting: a goal beyond it cannot be met here. docs/performance.md says how each limit comes
about.
"""

import argparse
import dataclasses
import json
import math
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

import program

ROOT = pathlib.Path(__file__).resolve().parent.parent
LENGTHS, HEAD_SIZES = (2048, 8192), (64, 128)


@dataclasses.dataclass
class Line:
    """One thing that was measured, for one goal."""

    what: str
    value: float
    bound: float
    at_most: bool = False  # or at least
    median: float | None = None
    limit: float | None = None

    def met(self):
        return self.value <= self.bound if self.at_most else self.value >= self.bound

    def __str__(self):
        def shown(x):
            return "" if x is None else f"{x:.3g}" if x >= 100 else f"{x:.2f}"

        return (f"    {self.what:<42} {shown(self.value):>7} {shown(self.median):>7}   "
                f"{'<=' if self.at_most else '>='} {shown(self.bound):<5} {'met' if self.met() else 'missed':<7}"
                f"{'' if self.limit is None else 'limit ' + shown(self.limit)}").rstrip()


# ---- what is run ----


def commands(options):
    """{name of a file: (command, environment)}, in the order in which they are run."""
    programs = options.build / "bin"
    common = ["--lengths", ",".join(map(str, LENGTHS)), "--head-sizes", ",".join(map(str, HEAD_SIZES)), "--window", "1024"]
    attention = [programs / "bench_attention", "--threads", options.threads]
    result = {
        "kernels": [programs / "bench_kernels", "--rounds", 20 * options.rounds],
        "position": [programs / "bench_position", "--rounds", 3 * options.rounds],
        "turning": [programs / "bench_turning", "--threads", options.threads, "--rounds", 3 * options.rounds],
        "training": [programs / "bench_training", "--rounds", 3 * options.rounds],
        "decoding": [*attention, "--no-eager", "--no-ggml", "--lengths", 64, "--kinds", "decode,decode-gqa", "--rounds",
                     5 * options.rounds],
        "bfloat16": [*attention, *common, "--no-eager", "--no-ggml", "--no-backward", "--backend", "cpu-bf16", "--dtype",
                     "bfloat16", "--kinds", "causal,full", "--rounds", options.rounds],
        "attention": [*attention, *common, "--no-eager", "--no-ggml", "--kinds", ",".join(FORWARD), "--rounds",
                      options.rounds],
        "amx": [*attention, *common, "--no-eager", "--no-ggml", "--backend", "cpu-bf16x3", "--kinds", "causal,full", "--rounds",
                options.rounds],
    }
    for name, backend in (("eager", "cpu"), ("eager-amx", "cpu-bf16x3")):
        result[name] = [*attention, "--lengths", 2048, "--head-sizes", common[3], "--window", 256, "--no-ggml", "--backend",
                        backend, "--kinds", ",".join(FORWARD), "--rounds", options.rounds]
    commands = {name: (list(map(str, command)), None) for name, command in result.items()}

    def python(name, interpreter, library, *arguments):
        environment = {"SEXTANT_LIBRARY": str(library), "PYTHONPATH": str(ROOT / "python")}
        commands[name] = (list(map(str, [interpreter, ROOT / "bench" / arguments[0], *arguments[1:]])), environment)

    if options.python:
        for size in HEAD_SIZES:
            python(f"peers-{size}", options.python, options.library, "peers.py", "--methods", "none", "--lengths", common[1],
                   "--head-size", size, "--threads", options.threads, "--rounds", options.rounds)
    # Of the distribution's Python, for which python3-torch is, whatever other comes first in PATH.
    python("memory", options.python or "/usr/bin/python3",
           options.library or options.build / "lib" / "libsextant_torch.so", "memory.py", "--length", 32768, "--threads",
           options.threads, "--patience", 900)
    return commands


def run(name, command, environment, to):
    """Writes what `command` measured to the file `to`, whole or not at all."""
    if shutil.which(command[0]) is None:
        raise SystemExit(f"goals: expected a program that can be run, but got {command[0]}; "
                         "./check builds them, or cmake with -DSEXTANT_BENCH=ON, and --build says where they are")
    print(" ".join(command), flush=True)
    new = to.with_suffix(".new")
    start = time.monotonic()
    status = subprocess.run([*command, "--json", str(new)], env={**os.environ, **(environment or {})}, check=False).returncode
    if new.exists() and new.stat().st_size > 0:
        new.replace(to)
        print(f"---- {name} took {time.monotonic() - start:.0f} s", flush=True)
    else:
        print(f"---- {name} ended with status {status} and measured nothing; its lines are left out", flush=True)
        new.unlink(missing_ok=True)


# ---- how it is judged ----

FORWARD = ("causal", "full", "alibi", "t5", "shaw-keys", "shaw", "every-distance", "deberta", "rope", "rerope", "leaky-rerope")
PASSES = {"forward": ("forward",), "with backward": ("forward", "backward")}


def total(rows, side, how):
    """Seconds of `side` of all passes of a kind, by the least times or the medians."""
    return sum(row[side][how] for row in rows)


def find(measured, **wanted):
    return [row for row in measured if all(row[key] == value for key, value in wanted.items())]


def cells(document, kind, passes):
    """(name, head size, a row for each pass) for each length and head size at which `kind` was run
    so."""
    for size in HEAD_SIZES:
        for length in LENGTHS:
            rows = [row for name in PASSES[passes]
                    for row in find(document["measured"], kind=kind, length=length, head_dim=size, **{"pass": name})]
            if len(rows) == len(PASSES[passes]):
                yield f"{kind} {passes}, N {length}, D {size}", size, rows


def shares(document, kinds, passes, bounds, limits):
    """Lines about shares of the peak of the same rounds; bounds and limits by head size."""
    for kind in kinds:
        for what, size, rows in cells(document, kind, passes):
            least, median = (total(rows, "multiplying", how) / total(rows, "ours", how) for how in ("least", "median"))
            yield Line(what, least, bounds[size], False, median, limits.get(size))


def of_plain(document, kinds, passes, bounds, limits=None):
    """Lines about times that are multiples of plain attention's."""
    for kind in kinds:
        for what, size, rows in cells(document, kind, passes):
            least, median = (total(rows, "ours", how) / total(rows, "plain", how) for how in ("least", "median"))
            yield Line(what, least, bounds[size], True, median, (limits or {}).get(size))


def both_sizes(bound):
    return dict.fromkeys(HEAD_SIZES, bound)


FORWARD_BOUNDS, BACKWARD_BOUNDS = {64: 0.90, 128: 0.94}, both_sizes(0.92)


def steps(results, kernel, size):
    """The steps of a kernel alone; `all`, which is all of them in turn, is no step. {name: row}"""
    if "kernels" not in results:
        return {}
    rows = find(results["kernels"]["measured"], kernel=kernel, head_dim=size)
    return {row["step"]: row for row in rows if row["step"] != "all"}


def with_products_at_peak(steps, peak=None):
    """Seconds that a kernel would take if its products ran at the peak (of multiply-adds) and all
    else as it does."""
    return sum(row["operations"] / (peak or row["fma_peak"]) if row["operations"] else row["least"] for row in steps.values())


def forward_limits(results, peak=None):
    """Of the peak of products of one core (of multiply-adds), by head size."""
    limits = {}
    for size in HEAD_SIZES:
        if known := steps(results, "forward", size):
            ideal = sum(row["operations"] / (peak or row["fma_peak"]) for row in known.values())
            limits[size] = ideal / with_products_at_peak(known, peak)
    return limits


def backward_limits(results):
    """The same of the backward pass."""
    limits = {}
    for size in HEAD_SIZES:
        if known := steps(results, "backward", size):
            limits[size] = sum(row["operations"] / row["fma_peak"] for row in known.values()) / with_products_at_peak(known)
    return limits


def limits_with_backward(results):
    """The same of both passes, whose products count alike: 2 forward and 5 backward."""
    backward = backward_limits(results)
    return {size: 7 / (2 / forward + 5 / backward[size]) for size, forward in forward_limits(results).items()}


def every_distance_limits(results, passes):
    """Of plain attention, if all products ran at the peak: q A is one more forward, and it, dq and
    dA are backward."""
    limits = {}
    for size in HEAD_SIZES:
        if forward := steps(results, "forward", size):
            table = steps(results, "every distance", size)["q A"]
            more = table["operations"] / table["fma_peak"]
            plain = with_products_at_peak(forward)
            if passes == "with backward":
                backward = steps(results, "backward", size)
                strips = backward["q k"]["operations"] / forward["q k"]["operations"]
                plain, more = strips * plain + with_products_at_peak(backward), 4 * strips * more
            limits[size] = 1 + more / plain
    return limits


def plain_forward(results):
    document = results["attention"]
    limits = forward_limits(results)
    yield from shares(document, ("causal", "full"), "forward", FORWARD_BOUNDS, limits)


def flash(results):
    for size in HEAD_SIZES:
        for length in LENGTHS:
            rows = {row["by"]: row["seconds"] for row in results[f"peers-{size}"]["measured"]
                    if row["length"] == length and row["pass"] == "forward"}
            yield Line(f"causal forward, N {length}, D {size}", min(rows["sdpa"]) / min(rows["sextant"]), 1.1, False,
                       statistics.median(a / b for a, b in zip(rows["sdpa"], rows["sextant"])))


def plain_backward(results):
    document = results["attention"]
    limits = limits_with_backward(results)
    yield from shares(document, ("causal", "full"), "with backward", BACKWARD_BOUNDS, limits)


def plain_by_amx(passes, bounds):
    """Beside the peak of multiply-adds, though they are made of other products."""
    def lines(results):
        document = results["amx"]
        return shares(document, ("causal", "full"), passes, bounds, {}) if document["amx"] else ()
    return lines


def scalar_biases(results):
    yield from of_plain(results["attention"], ("alibi", "t5"), "forward", both_sizes(1.03))
    yield from of_plain(results["attention"], ("alibi", "t5"), "with backward", both_sizes(1.06))


def shaw(results):
    yield from of_plain(results["attention"], ("shaw-keys",), "forward", {64: 1.05, 128: 1.03})
    yield from of_plain(results["attention"], ("shaw",), "forward", {64: 1.10, 128: 1.06})


def every_distance(results):
    document = results["attention"]
    for passes, bound in (("forward", 1.45), ("with backward", 1.65)):
        yield from of_plain(document, ("every-distance",), passes, both_sizes(bound), every_distance_limits(results, passes))


def deberta(results):
    yield from of_plain(results["attention"], ("deberta",), "forward", both_sizes(1.40))


def piecewise(results):
    yield from of_plain(results["attention"], ("rerope", "leaky-rerope"), "forward", both_sizes(1.08))


def bfloat16(results):
    document = results["bfloat16"]
    if document["bfloat16_peak"] > 0:
        limits = forward_limits(results, document["bfloat16_peak"] / document["threads"])
        yield from shares(document, ("causal", "full"), "forward", {64: 0.84, 128: 0.90}, limits)


def eager(results):
    yield from beside_eager(results, results["eager"])


def eager_by_amx(results):
    if results["eager-amx"]["amx"]:
        yield from beside_eager(results, results["eager-amx"])


def backward_products(kind, length):
    """How many products of all queries with all keys a backward pass is. Plain attention's are five
    (q k again, do v, dv, dq, dk). A table on queries or keys has three with each of its rows that
    is met (again, and two for gradients), one on values two. The rows are those of
    bench/attention/cases.cc."""
    shaw, deberta = 2 * 16 + 1, 2 * 256
    rows = {"shaw-keys": 3 * shaw, "shaw": (3 + 2) * shaw, "deberta": 2 * 3 * deberta}
    return 5 + (3 if kind == "every-distance" else rows.get(kind, 0) / length)


def beside_eager(results, document):
    length = 2048
    limits = backward_limits(results)
    for size in HEAD_SIZES:
        for row in find(document["measured"], head_dim=size, length=length, **{"pass": "backward"}):
            ours, theirs = row["ours"], row["eager"]
            # Products at the peak, and beside them what plain attention has.
            others = 5 / limits[size] - 5 if limits else 0
            at_peak = row["multiplying"]["least"] * (backward_products(row["kind"], length) + others) / 5
            yield Line(f"{row['kind']} backward, N {length}, D {size}", theirs["least"] / ours["least"], 5, False,
                       theirs["median"] / ours["median"], theirs["least"] / at_peak)


def median_ratio(a, b):
    """Of the rounds, in each of which both met the same machine."""
    return statistics.median(x / y for x, y in zip(a["seconds"], b["seconds"]))


def decoding(results):
    document = results["decoding"]
    for row in document["measured"]:
        # Its two products in turn and nothing else, which files of older programs do not have.
        limit = median_ratio(row["reading"], row["products"]) if "products" in row else None
        yield Line(f"{row['kind']}, 8192 keys, D {row['head_dim']}", row["reading"]["least"] / row["ours"]["least"], 0.9, False,
                   median_ratio(row["reading"], row["ours"]), limit)


def position(results):
    for each in results["position"]["measured"]:
        ns = each["ns_of_pair"]["sextant"]
        yield Line(f"{each['length']} positions, ns for a pair", min(ns), 0.35, True, statistics.median(ns))


def turning(results):
    ours, copying = (results["turning"]["measured"][name] for name in ("turned in place", "copied"))
    yield Line("q and k, D 128", copying["least"] / ours["least"], 0.9, False, copying["median"] / ours["median"])


def memory(results):
    rows = results["memory"]["measured"]
    for row in rows:
        if "error" in row:
            yield Line(f"{row['method']}: {row['error']}", math.nan, 1, True)
    for row in sorted((row for row in rows if "beyond" in row), key=lambda row: row["beyond"])[-3:]:
        yield Line(f"{row['method']} (of {len(rows)} methods), GB", row["beyond"] / 1e9, 1, True)


def training(results):
    for row in results["training"]["measured"]:
        yield Line(f"{row['task']}, tokens a second", row["eager"]["least"] / row["ours"]["least"], 2, False,
                   row["eager"]["median"] / row["ours"]["median"])


# Each with what it is called and the files that it needs.
GOALS = (
    ("1", "plain forward, of the multiply-add peak", plain_forward, ("attention",)),
    ("1", "with the products of AMX (cpu-bf16x3), of that peak", plain_by_amx("forward", FORWARD_BOUNDS), ("amx",)),
    ("1", "and beside PyTorch 2's flash attention", flash, ("peers-64", "peers-128")),
    ("2", "plain forward and backward, of the peak", plain_backward, ("attention",)),
    ("2", "with the products of AMX (cpu-bf16x3), of that peak", plain_by_amx("with backward", BACKWARD_BOUNDS), ("amx",)),
    ("3", "scalar biases, times plain", scalar_biases, ("attention",)),
    ("4", "Shaw, times plain", shaw, ("attention",)),
    ("5", "a row for each distance, times plain", every_distance, ("attention",)),
    ("6", "DeBERTa's two terms, times plain", deberta, ("attention",)),
    ("7", "ReRoPE and Leaky ReRoPE, times rope", piecewise, ("attention",)),
    ("8", "bfloat16 forward, of the peak of its products", bfloat16, ("bfloat16",)),
    ("9", "backward, times as fast as libtorch's operators", eager, ("eager",)),
    ("9", "with the products of AMX, which tensors of this length take", eager_by_amx, ("eager-amx",)),
    ("10", "decoding, of the speed of reading", decoding, ("decoding",)),
    ("11", "cos and sin", position, ("position",)),
    ("12", "turning in place, of the speed of copying", turning, ("turning",)),
    ("13", "memory of a training step, N 32768, beyond what it gives back", memory, ("memory",)),
    ("14", "training step, times libtorch's speed", training, ("training",)),
)


def judge(results):
    """Prints all goals; returns them for the file of --json."""
    print(f"\n{'goal':<46} {'least':>7} {'median':>7}   wanted")
    judged = []
    for number, title, lines_of, needed in GOALS:
        missing = [name for name in needed if name not in results]
        lines, unknown = [], None
        try:
            lines = [] if missing else list(lines_of(results))
        except KeyError as error:
            unknown = error
        if unknown:
            verdict = (f"not judged: expected {unknown} in {', '.join(f'{name}.json' for name in needed)}, but another "
                       "version of the programs wrote them; remove them to measure again")
        elif missing:
            verdict = f"not run: {', '.join(missing)}"
        elif not lines:
            verdict = "this machine has no instruction for it"
        else:
            verdict = f"{sum(line.met() for line in lines)} of {len(lines)} met"
        print(f"\n{number}. {title}: {verdict}")
        for line in lines:
            print(line)
        judged.append({"goal": number, "title": title, "lines": [dataclasses.asdict(line) for line in lines]})
    return judged


def read(folder, names):
    results = {}
    for name in names:
        file = folder / f"{name}.json"
        if file.exists():
            try:
                results[name] = json.loads(file.read_text(encoding="utf-8"))
            except ValueError as error:
                raise SystemExit(f"goals: {file}: expected JSON, but got {error}; remove the file to measure again") from error
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--to", type=pathlib.Path, required=True, help="folder of what was measured")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release", help="folder of the programs")
    parser.add_argument("--threads", type=program.positive, default=2)
    parser.add_argument("--rounds", type=program.positive, default=5, help="of attention; quick things get more")
    parser.add_argument("--python", help="an interpreter with PyTorch 2, a peer")
    parser.add_argument("--library", type=pathlib.Path, help="libsextant_torch.so built for --python")
    parser.add_argument("--only", type=lambda x: x.split(","), help="run these only; judge what is there")
    parser.add_argument("--json", type=program.writable, help="write all lines to this file")
    options = parser.parse_args()
    if bool(options.python) != bool(options.library):
        parser.error("--python and --library: expected both or none")
    known = commands(options)
    for name in options.only or []:
        if name not in known:
            parser.error(f"--only: expected some of {', '.join(known)}, but got {name}")
    options.to.mkdir(parents=True, exist_ok=True)
    wanted = [name for name in known if options.only is None or name in options.only]
    for n, name in enumerate(wanted, 1):
        file = options.to / f"{name}.json"
        if not file.exists():
            print(f"\n---- {n} of {len(wanted)}, {name}", flush=True)
            run(name, *known[name], file)
    # Of an earlier run with --python, too.
    everything = [*known, *(f"peers-{size}" for size in HEAD_SIZES)]
    program.write(options.json, judge(read(options.to, everything)))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("\ngoals: stopped; what was measured is kept, and the same command goes on", file=sys.stderr)
        sys.exit(130)
