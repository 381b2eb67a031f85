"""Makes the rows of bench/results (see records.py) from the files of the programs in bench/.

Values are medians, and a ratio is the median of the ratios of the rounds, since in a round both
sides meet the same load of the machine; bench/decode.py takes the least values instead. In units of
speed (GFLOP/s, GB/s, calls/s, tokens/s) a ratio above 1 means that ours is faster, in units of time
and memory (s, B) that ours is more.
"""

import statistics

from goal_lines import HEAD_SIZES, PASSES, find


def row(name, shape, unit, ours, peer=None, peer_version=None, amount=None):
    """A row. `ours` and `peer` are the seconds of the rounds or, with `amount` None, other values.

    amount: the work of a call in the unit's numerator, such as its operations in units of 10^9.
    """
    def shown(rounds):
        middle = statistics.median(rounds)
        return middle if amount is None else amount / middle

    ratio = peer and statistics.median(a / b if amount is None else b / a
                                       for a, b in zip(ours, peer))
    numbers = {"ours": shown(ours), "peer": peer and shown(peer),
               "spread": max(ours) / min(ours), "ratio": ratio}
    return {"name": name, "shape": shape, "peer_version": peer_version if peer else None,
            "unit": unit, "rounds": len(ours),
            **{key: x and float(f"{x:.6g}") for key, x in numbers.items()}}


def sums(rows, side):
    """The seconds of `side` per round over all passes; None if a pass does not have it."""
    if not all(side in each for each in rows):
        return None
    return [sum(seconds) for seconds in zip(*(each[side]["seconds"] for each in rows))]


def attention(document):
    """Rows with the time as a multiple of plain attention's, or for plain kinds with the fraction
    of the peak; rows of peers and of memory."""
    cells = dict.fromkeys((each["kind"], each["length"], each["head_dim"])
                          for each in document["measured"])
    for (kind, length, size), (passes, names) in ((c, p) for c in cells for p in PASSES.items()):
        rows = [each for name in names
                for each in find(document["measured"], kind=kind, length=length, head_dim=size,
                                 **{"pass": name})]
        if len(rows) < len(names):
            continue
        if "reading" in rows[0]:
            if passes == "forward":
                yield from decoding(document, rows[0])
            continue
        shape = f"{passes}, N {length}, D {size}, H {document['heads']}"
        ours, giga = sums(rows, "ours"), sum(each["operations"] for each in rows) / 1e9
        if plain := sums(rows, "plain"):
            peer = "rope" if kind in ("rerope", "leaky-rerope") else "plain"
            yield row(kind, shape, "s", ours, plain, peer)
        else:
            peak = "bfloat16 peak" if document["backend"] == "cpu-bf16" else "multiply-add peak"
            yield row(kind, shape, "GFLOP/s", ours, sums(rows, "multiplying"), peak, giga)
        for side, peer in (("eager", "libtorch operators"), ("ggml", "ggml")):
            if theirs := sums(rows, side):
                yield row(kind, shape, "GFLOP/s", ours, theirs, peer, giga)
        if peak := rows[-1]["ours"].get("peak_bytes"):
            yield row(f"{kind}, memory", shape, "B", [peak])


def decoding(document, measured):
    """Rows of decoding, and of its two products alone, beside reading alone."""
    shape = f"forward, {document['cache']} keys, D {measured['head_dim']}"
    for name, side in ((measured["kind"], "ours"), (f"{measured['kind']}, products", "products")):
        if side in measured:
            yield row(name, shape, "GB/s", measured[side]["seconds"],
                      measured["reading"]["seconds"], "reading", measured["bytes"] / 1e9)


def position(document):
    for each in document["measured"]:
        ns = each["ns_of_pair"]
        yield row("cos and sin", f"{each['length']} positions, {each['pairs']} frequencies",
                  "ns a pair", ns["sextant"], ns["glibc sincosf"], "glibc sincosf")


def rotation(document):
    ours, copying = document["measured"]["rotated in place"], document["measured"]["copied"]
    yield row("rotation in place", f"N {document['length']}, D {document['head_dim']}", "GB/s",
              ours["seconds"], copying["seconds"], "copying", document["bytes"] / 1e9)


def training(document):
    for each in document["measured"]:
        yield row("training step", each["task"], "tokens/s", each["ours"]["seconds"],
                  each["eager"]["seconds"], "libtorch operators", each["tokens"])


def peers(document, size):
    by = {(each["method"], each["length"], each["pass"], each["by"]): each["seconds"]
          for each in document["measured"]}
    for (method, length, which, peer), theirs in by.items():
        if peer != "sextant":
            passes = "with backward" if which == "both" else which
            fused = "flash attention" if method in ("none", "rope") else "with a float mask"
            kernel = "flex_attention" if peer == "flex" else fused
            yield row(method, f"{passes}, N {length}, D {size}", "calls/s",
                      by[method, length, which, "sextant"], theirs,
                      f"PyTorch {document['torch']} {kernel}", 1)


def memory(document):
    shape = f"training step, N {document['length']}, D {document['head_dim']}"
    for each in document["measured"]:
        if "beyond" in each:
            yield row(each["method"], shape, "B", [each["beyond"]])


def rows(name, measured):
    """The rows of the file `name` of goals.py; `measured` maps names to files."""
    document = measured[name]
    writers = {"position": position, "rotation": rotation, "training": training, "memory": memory,
               **{f"peers-{size}": lambda document, size=size: peers(document, size)
                  for size in HEAD_SIZES}}
    return list(writers.get(name, attention)(document))
