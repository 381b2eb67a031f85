"""The goals for speed and memory, and the lines that compare measured files with them.

A line compares the least times of the rounds with its bound, and also shows the median. A limit is
the best possible value on this machine, if all products ran at the peak of the same run.
"""

import dataclasses
import math
import statistics

LENGTHS, HEAD_SIZES = (2048, 8192), (64, 128)


@dataclasses.dataclass
class Line:
    """A measured value of a goal, and its bound."""

    what: str
    value: float
    bound: float
    at_most: bool = False  # the bound is an upper one
    median: float | None = None
    limit: float | None = None

    def met(self):
        return self.value <= self.bound if self.at_most else self.value >= self.bound

    def __str__(self):
        def shown(x):
            return "" if x is None else f"{x:.3g}" if x >= 100 else f"{x:.2f}"

        return (f"    {self.what:<42} {shown(self.value):>7} {shown(self.median):>7}   "
                f"{'<=' if self.at_most else '>='} {shown(self.bound):<5} "
                f"{'met' if self.met() else 'missed':<7}"
                f"{'' if self.limit is None else 'limit ' + shown(self.limit)}").rstrip()


FORWARD = ("causal", "full", "alibi", "t5", "shaw-keys", "shaw", "every-distance", "deberta",
           "rope", "rerope", "leaky-rerope")
PASSES = {"forward": ("forward",), "with backward": ("forward", "backward")}


def total(rows, side, how):
    """The seconds of `side` over all passes of a kind; how: "least" or "median"."""
    return sum(row[side][how] for row in rows)


def find(measured, **wanted):
    return [row for row in measured if all(row[key] == value for key, value in wanted.items())]


def cells(document, kind, passes):
    """(name, head size, one row per pass) for each measured length and head size of `kind`."""
    for size in HEAD_SIZES:
        for length in LENGTHS:
            rows = [row for name in PASSES[passes]
                    for row in find(document["measured"], kind=kind, length=length, head_dim=size,
                                     **{"pass": name})]
            if len(rows) == len(PASSES[passes]):
                yield f"{kind} {passes}, N {length}, D {size}", size, rows


def shares(document, kinds, passes, bounds):
    """Lines with the fraction of the peak of the same rounds; bounds by head size."""
    for kind in kinds:
        for what, size, rows in cells(document, kind, passes):
            least, median = (total(rows, "multiplying", how) / total(rows, "ours", how)
                             for how in ("least", "median"))
            yield Line(what, least, bounds[size], False, median)


def of_plain(document, kinds, passes, bounds):
    """Lines with the time as a multiple of plain attention's."""
    for kind in kinds:
        for what, size, rows in cells(document, kind, passes):
            least, median = (total(rows, "ours", how) / total(rows, "plain", how)
                             for how in ("least", "median"))
            yield Line(what, least, bounds[size], True, median)


def both_sizes(bound):
    return dict.fromkeys(HEAD_SIZES, bound)


FORWARD_BOUNDS, BACKWARD_BOUNDS = {64: 0.90, 128: 0.94}, both_sizes(0.92)


def plain_forward(results):
    yield from shares(results["attention"], ("causal", "full"), "forward", FORWARD_BOUNDS)


def flash(results):
    for size in HEAD_SIZES:
        for length in LENGTHS:
            rows = {row["by"]: row["seconds"] for row in results[f"peers-{size}"]["measured"]
                    if row["length"] == length and row["pass"] == "forward"}
            yield Line(f"causal forward, N {length}, D {size}",
                       min(rows["sdpa"]) / min(rows["sextant"]), 1.1, False,
                       statistics.median(a / b for a, b in zip(rows["sdpa"], rows["sextant"])))


def plain_backward(results):
    yield from shares(results["attention"], ("causal", "full"), "with backward", BACKWARD_BOUNDS)


def plain_by_amx(passes, bounds):
    """Lines with the fraction of the multiply-add peak, although AMX computes these products."""
    def lines(results):
        document = results["amx"]
        return shares(document, ("causal", "full"), passes, bounds) if document["amx"] else ()
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
        yield from of_plain(document, ("every-distance",), passes, both_sizes(bound))


def deberta(results):
    yield from of_plain(results["attention"], ("deberta",), "forward", both_sizes(1.40))


def piecewise(results):
    yield from of_plain(results["attention"], ("rerope", "leaky-rerope"), "forward",
                        both_sizes(1.08))


def bfloat16(results):
    document = results["bfloat16"]
    if document["bfloat16_peak"] > 0:
        yield from shares(document, ("causal", "full"), "forward", {64: 0.84, 128: 0.90})


def eager(results):
    yield from beside_eager(results, results["eager"])


def eager_by_amx(results):
    if results["eager-amx"]["amx"]:
        yield from beside_eager(results, results["eager-amx"])


def backward_products(kind, length):
    """The size of all products of a backward pass, in units of a product of all queries with all
    keys. Plain attention has five (q k again, do v, dv, dq, dk). Each row of a table on queries or
    keys that distances reach adds three products with all queries (one again, two for gradients);
    a row of a table on values adds two. The numbers of rows are those of
    bench/attention/cases.cc."""
    shaw, deberta = 2 * 16 + 1, 2 * 256
    rows = {"shaw-keys": 3 * shaw, "shaw": (3 + 2) * shaw, "deberta": 2 * 3 * deberta}
    return 5 + (3 if kind == "every-distance" else rows.get(kind, 0) / length)


def beside_eager(results, document):
    length = 2048
    for size in HEAD_SIZES:
        for row in find(document["measured"], head_dim=size, length=length, **{"pass": "backward"}):
            ours, theirs = row["ours"], row["eager"]
            products = backward_products(row["kind"], length)
            at_peak = row["multiplying"]["least"] * products / 5
            yield Line(f"{row['kind']} backward, N {length}, D {size}",
                       theirs["least"] / ours["least"], 5, False,
                       theirs["median"] / ours["median"], theirs["least"] / at_peak)


def median_ratio(a, b):
    """The median of the ratios of the rounds; in a round both meet the same load of the
    machine."""
    return statistics.median(x / y for x, y in zip(a["seconds"], b["seconds"]))


def decoding(results):
    document = results["decoding"]
    for row in document["measured"]:
        # The kernel's two products alone; older programs do not measure them.
        limit = median_ratio(row["reading"], row["products"]) if "products" in row else None
        yield Line(f"{row['kind']}, 8192 keys, D {row['head_dim']}",
                   row["reading"]["least"] / row["ours"]["least"], 0.9, False,
                   median_ratio(row["reading"], row["ours"]), limit)


def position(results):
    for each in results["position"]["measured"]:
        ns = each["ns_of_pair"]["sextant"]
        yield Line(f"{each['length']} positions, ns for a pair", min(ns), 0.35, True,
                   statistics.median(ns))


def rotation(results):
    measured = results["rotation"]["measured"]
    ours, copying = measured["rotated in place"], measured["copied"]
    yield Line("q and k, D 128", copying["least"] / ours["least"], 0.9, False,
               copying["median"] / ours["median"])


def memory(results):
    rows = results["memory"]["measured"]
    for row in rows:
        if "error" in row:
            yield Line(f"{row['method']}: {row['error']}", math.nan, 1, True)
    for row in sorted((row for row in rows if "beyond" in row), key=lambda row: row["beyond"])[-3:]:
        yield Line(f"{row['method']} (of {len(rows)} methods), GB", row["beyond"] / 1e9, 1, True)


def training(results):
    for row in results["training"]["measured"]:
        yield Line(f"{row['task']}, tokens a second",
                   row["eager"]["least"] / row["ours"]["least"], 2, False,
                   row["eager"]["median"] / row["ours"]["median"])


# Number, title, the function that makes the lines, and the files that it needs.
GOALS = (
    ("1", "plain forward, of the multiply-add peak", plain_forward, ("attention",)),
    ("1", "with the products of AMX (cpu-bf16x3), of that peak",
     plain_by_amx("forward", FORWARD_BOUNDS), ("amx",)),
    ("1", "and beside PyTorch 2's flash attention", flash, ("peers-64", "peers-128")),
    ("2", "plain forward and backward, of the peak", plain_backward, ("attention",)),
    ("2", "with the products of AMX (cpu-bf16x3), of that peak",
     plain_by_amx("with backward", BACKWARD_BOUNDS), ("amx",)),
    ("3", "scalar biases, times plain", scalar_biases, ("attention",)),
    ("4", "Shaw, times plain", shaw, ("attention",)),
    ("5", "a row for each distance, times plain", every_distance, ("attention",)),
    ("6", "DeBERTa's two terms, times plain", deberta, ("attention",)),
    ("7", "ReRoPE and Leaky ReRoPE, times rope", piecewise, ("attention",)),
    ("8", "bfloat16 forward, of the peak of its products", bfloat16, ("bfloat16",)),
    ("9", "backward, times as fast as libtorch's operators", eager, ("eager",)),
    ("9", "with the products of AMX, which tensors of this length take", eager_by_amx,
     ("eager-amx",)),
    ("10", "decoding, of the speed of reading", decoding, ("decoding",)),
    ("11", "cos and sin", position, ("position",)),
    ("12", "rotation in place, of the speed of copying", rotation, ("rotation",)),
    ("13", "memory of a training step, N 32768, beyond what it gives back", memory, ("memory",)),
    ("14", "training step, times libtorch's speed", training, ("training",)),
)


def judge(results):
    """Prints all goals and returns them as data for the file of --json."""
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
            files = ", ".join(f"{name}.json" for name in needed)
            verdict = (f"not judged: expected {unknown} in {files}, but another version of the "
                       "programs wrote them; remove them to measure again")
        elif missing:
            verdict = f"not run: {', '.join(missing)}"
        elif not lines:
            verdict = "this machine has no instruction for it"
        else:
            verdict = f"{sum(line.met() for line in lines)} of {len(lines)} met"
        print(f"\n{number}. {title}: {verdict}")
        for line in lines:
            print(line)
        judged.append({"goal": number, "title": title,
                       "lines": [dataclasses.asdict(line) for line in lines]})
    return judged
