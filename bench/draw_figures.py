#!/usr/bin/env python3
"""Draws the tables and charts of docs/performance.md from bench/results.

    bench/draw_figures.py           rewrites docs/figures/*.svg and the marked blocks of the pages
    bench/draw_figures.py --check   writes nothing, and fails if a figure or block is stale

A block is the lines between `<!-- figures:NAME -->` and `<!-- /figures -->`. The script uses the
newest file of each machine and benchmark (bench/records.py describes the format). A ratio is ours
over the peer's; the ends of a range are two rows, "lowest" and "highest".
"""
import pathlib
import re
import sys

import svg_chart
from figure_rows import (MIB, by_machine, cost, machine, newest, number, percent, read, select,
                         source, span, unevenness)
from model_figures import arms, ring, whole_models

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "scripts"))

import page_blocks  # noqa: E402  (this and the next need the path above)
from page_blocks import ROOT, paragraph, table  # noqa: E402

PAGES = ("docs/performance.md", "docs/internals/kernels.md", "docs/cache.md",
         "docs/transformers.md", "docs/ring-attention.md", "docs/many-machines.md",
         "docs/grids.md")
# The cases of bench_attention: label, operand of the score equation.
KINDS = {"alibi": ("ALiBi", "`b`"), "t5": ("T5", "`b`"), "rope": ("RoPE", "`R`"),
         "rerope": ("ReRoPE", "two `R`"), "leaky-rerope": ("Leaky ReRoPE", "two `R`"),
         "shaw-keys": ("Shaw, k", "`A`, clipped"),
         "shaw": ("Shaw, k and v", "`A`, `C`, clipped"),
         "deberta": ("DeBERTa", "`A`, `B`, clipped"),
         "every-distance": ("a vector a distance", "`A`")}


# ---- the blocks; each function returns its Markdown and {file: SVG} ----


def answer(documents):
    first, _ = newest(select(documents, "attention", name=("alibi",), peer_version="plain"))
    here = [each for each in documents if each["machine"] == first["machine"]]

    def costs(names, passes):
        return cost([row["ratio"] for _, row in select(here, "attention goals", name=names,
                                                       shape=passes, unit="s")])

    groups = {"a bias by distance (ALiBi, T5)": ("alibi", "t5", "alibi and t5"), "RoPE": ("rope",),
              "clipped vectors (Shaw)": ("shaw", "shaw-keys"), "DeBERTa's two terms": ("deberta",),
              "a vector for each distance (Transformer-XL)": ("every-distance",)}
    lines = [paragraph(
        f"* Cost over attention without positions on {machine(first)}, forward (with the backward "
        "pass): " + ", ".join(f"{label} {costs(names, 'forward')} "
                              f"({costs(names, 'with backward')})"
                              for label, names in groups.items()) + ".")]
    flash = select(documents, "peers", name=("none",), shape="forward",
                   peer_version="flash attention")
    masked = select(documents, "peers", name=("alibi",), shape="forward", peer_version="mask")
    version = newest(flash)[1][0]["peer_version"].removesuffix(" flash attention")
    lines.append(paragraph(
        f"* Forward, {version}'s flash attention takes "
        f"{span([row['ratio'] for _, row in flash])} times as long: {by_machine(flash, span)}. "
        f"For ALiBi, a mask of floats there, it takes {by_machine(masked, span)}."))
    ggml = select(documents, "ggml", shape="forward")
    whole = [(d, r) for d, r in ggml if "decode" not in r["name"]]
    one = [(d, r) for d, r in ggml if r["name"] == "decode"]
    lines.append(paragraph(
        "* Forward, ggml's flash attention takes as a multiple of our time "
        f"{by_machine(whole, span)}. To decode for one query head from a float32 cache it takes "
        f"{by_machine(one, span)}; below 1, ggml is faster."))
    plain = ("causal", "full", "plain")
    peak = select(documents, "attention goals", shape="forward", name=plain,
                  peer_version="multiply-add peak")
    amx = select(documents, "amx", shape="forward", name=plain, peer_version="multiply-add peak")
    lines.append(paragraph(
        "* Forward, attention without positions reaches these shares of the multiply-add peak: "
        f"{by_machine(peak, percent)}; with AMX {by_machine(amx, percent)}."))
    training = select(documents, "goals training", name=("training step",))
    lines.append(paragraph("* A training step of the laboratory's model, beside the same step with "
                           f"libtorch's operators: {by_machine(training, span)} times as fast."))
    lines.append("* Memory grows as O(N): no operand but a bias of each query has a size of "
                 "queries x keys.\n")
    return "".join(lines), {}


def cost_table(documents):
    document, rows = newest(select(documents, "attention", name=KINDS, unit="s"))
    cells = {}
    for row in rows:
        if number(row, "N") == 2048:
            cells[row["name"], row["shape"].split(",")[0], number(row, "D")] = row["ratio"]
    passes, sizes = ("forward", "with backward"), (64, 128)
    kinds = [kind for kind in KINDS if (kind, passes[0], sizes[0]) in cells]
    lines = []
    for kind in kinds:
        values = [cells.get((kind, which, size)) for which in passes for size in sizes]
        lines.append([*KINDS[kind], *("" if v is None else f"{v:.2f}" for v in values)])
    head = ["kind", "operand", *(f"{which}, D = {size}" for which in passes for size in sizes)]
    chart = svg_chart.ranges(
        "Time over attention without positions", passes,
        [(KINDS[kind][0], {which: (min(v), max(v)) for which in passes
                           if (v := [cells[kind, which, size] for size in sizes
                                     if (kind, which, size) in cells])}) for kind in kinds],
        (1, 1.2, 1.4, 1.6, 1.8), "{:.1f}".format)
    return (table(head, lines) + "\n" +
            "![time over attention without positions, by kind](figures/cost.svg)\n\n" +
            paragraph("N = 2048, 8 heads, float32, times plain attention of the same mask (ReRoPE: "
                      "times RoPE). A mark is one of D = 64 and 128.", source(document)),
            {"cost.svg": chart})


def share(documents):
    series, used = {}, []
    for document in documents:
        found = select([document], "attention growth", name=("causal",), shape="forward",
                       peer_version="multiply-add peak")
        for size in sorted({number(row, "D") for _, row in found}):
            points = sorted((number(row, "N"), 100 * row["ratio"]) for _, row in found
                            if number(row, "D") == size)
            if len(points) > 1:
                series[f"{machine(document)}, D = {size}"] = points
                used += [] if document in used else [document]
    here = {document["machine"] for document in used}
    limits = [row["ratio"] for document, row in
              select(documents, "kernels", name=("limit",), shape="forward, D 64")
              if document["machine"] in here]
    chart = svg_chart.lines("Share of the multiply-add peak, causal, forward", series,
                            ([2**n for n in range(9, 16)], range(40, 101, 10)),
                            ("N, queries and keys", False), (str, "{} %".format))
    return ("![share of the multiply-add peak by length](figures/share.svg)\n\n" +
            paragraph(f"At D = 64 the exponentials leave {percent(limits)} of the peak to "
                      "the products at best ([kernels](internals/kernels.md)).",
                      *map(source, used)), {"share.svg": chart})


def decoding(documents):
    document, rows = newest(select(documents, "decoding", name=("decode, products",)))
    rows = [row for row in document["rows"] if "busy" not in row["shape"]]
    names = {"": "whole call", ", products": "its two products alone"}
    lines = []
    for kind, label in (("decode", "1 head"), ("decode-gqa", "8 heads")):
        for size in (64, 128):
            values = {names[which]: [100 * row["ratio"] for row in rows
                                     if row["name"] == kind + which and number(row, "D") == size]
                      for which in names}
            lines.append((f"{label}, D = {size}",
                          {which: (min(v), max(v)) for which, v in values.items() if v}))
    reading = [row["ours"] for row in rows if row["name"] == "reading"] or [
        row["peer"] for row in rows]
    keys = re.search(r"\d+(?= keys)", rows[0]["shape"])[0]
    chart = svg_chart.ranges("Decoding, share of the speed of reading", list(names.values()),
                             lines, (60, 70, 80, 90, 100), "{} %".format)
    return ("![decoding as a share of the speed of reading](figures/decoding.svg)\n\n" +
            paragraph(f"One query over {keys} cached keys and values in float32, for 1 or 8 query "
                      f"heads of a key head; reading alone reaches {span(reading, '{:.0f}')} GB/s.",
                      source(document)), {"decoding.svg": chart})


def engines(documents):
    """Decoding beside other engines: tokens per second by type and length of the cache, and a chart
    of the shares of the speed of reading."""
    document, rows = newest(select(documents, "engines", unit="tokens/s"))
    cases = list(dict.fromkeys(row["shape"] for row in rows))
    versions = list(dict.fromkeys(row["peer_version"] for row in rows
                                  if row["peer_version"] != "reading"))
    found = {(row["shape"], row["name"], row["peer_version"]): row for row in rows}
    shares, lines = [], []
    for case in cases:
        reading = {name: found.get((case, name, "reading"))
                   for name in ("none", "rope", "rope, rotated keys")}
        peers = {version: found[case, "none", version] for version in versions
                 if (case, "none", version) in found}
        none = reading["none"]
        dtype, keys = re.search(r", (\w+),", case)[1], f"{number(none, 'N')}"
        lines.append([dtype, keys, *(f"{row['ours']:.0f}" if row else ""
                                     for row in reading.values()),
                      *(f"{peers[version]['peer']:.0f}" if version in peers else ""
                        for version in versions), percent([none["ratio"]])])
        share = {"Sextant": none["ratio"],
                 **{version.split()[0]: row["peer"] / none["peer"]
                    for version, row in peers.items()}}
        shares.append((f"{dtype}, {keys} keys",
                       {name: (100 * x, 100 * x) for name, x in share.items()}))
    names = list(dict.fromkeys(name for _, share in shares for name in share))
    chart = svg_chart.ranges("Decoding, share of the speed of reading", names, shares,
                             (0, 25, 50, 75, 100), "{} %".format)
    head = ["cache", "keys", "no positions", "RoPE", "RoPE, rotated keys", *versions, "of reading"]
    layers = re.search(r"\d+ layers.*", cases[0])[0]
    speeds = [row["ours"] for _, row in select([document], "engines", unit="GB/s")]
    return (table(head, lines) + "\n![decoding beside other engines](figures/engines.svg)\n\n" +
            paragraph(f"Tokens per second of attention alone, {layers}; the other engines compute "
                      "it without positions, PyTorch with the queries of a key head as rows where "
                      "that is faster. The last column and the chart are without positions; "
                      f"reading alone reaches {span(speeds, '{:.0f}')} GB/s. {unevenness(rows)}",
                      source(document)), {"engines.svg": chart})


def blocks(documents):
    """An encoder's attention in ggml: times and peaks of memory, beside ggml's operations."""
    document, rows = newest(select(documents, "blocks"))
    found = {}
    for row in rows:
        exact = not row["peer_version"].endswith("flash")
        found.setdefault((row["name"], number(row, "N")), {}).setdefault(
            (row["unit"], row["shape"].rsplit(", ", 1)[1], exact), []).append(row)
    runs = sorted({run for each in found.values() for unit, run, _ in each if unit == "s"})

    def times(each, unit, run, exact):  # of ggml's best
        best = max((row["ratio"] for row in each.get((unit, run, exact), [])), default=None)
        return f"{1 / best:.2g}" if best else ""

    lines = [[name, str(length), *(f"{1e3 * each['s', run, True][0]['ours']:.0f}" for run in runs),
              *(times(each, "s", run, exact) for exact in (True, False) for run in runs),
              f"{each['B', runs[0], True][0]['ours'] / MIB:.0f}", times(each, "B", runs[0], True)]
             for (name, length), each in found.items()]
    columns = [f"{what}, {run}".replace(" 1 threads", " 1 thread")
               for what in ("ms", "ggml: times", "through float16") for run in runs]
    versions = sorted({row["peer_version"].split(", ")[0] for row in rows})
    return (table(["block", "rows", *columns, "MiB", "ggml: times"], lines) + "\n" +
            paragraph(f"{' and '.join(versions)}; the fastest of its float32 graphs, and the peak "
                      "of the process beyond weights and inputs. " + unevenness(rows),
                      source(document))), {}


def relative(documents):
    """Relative attention by the C API beside matrix products of OpenBLAS."""
    document, rows = newest(select(documents, "relative"))
    peers = sorted({row["peer_version"] for row in rows})
    found = {}
    for row in rows:
        found.setdefault((row["name"], row["shape"]), {})[row["peer_version"]] = row
    lines = [[name, str(number(each[peers[0]], "N")), shape.rsplit(", ", 1)[1].split()[0],
              f"{1e3 * each[peers[0]]['ours']:.3g}",
              *(f"{1 / each[peer]['ratio']:.3g}" for peer in peers)]
             for (name, shape), each in found.items()]
    return (table(["attention", "rows", "threads", "ms", *(f"{peer}: times" for peer in peers)],
                  lines) + "\n" +
            paragraph(f"{rows[0]['shape'].split(', ')[1].capitalize()}, all keys visible, without "
                      "projections. " + unevenness(rows), source(document))), {}


def grids(documents):
    """Methods on grids beside the code of transformers, which adds a dense bias."""
    document, rows = newest(select(documents, "grids"))
    found = {}
    for row in rows:
        found.setdefault(row["shape"], {})[row["name"]] = row
    passes, peers = ("forward", "with backward"), ("eager", "sdpa")

    def digits(x):
        return f"{x:.0f}" if x >= 100 else f"{x:.3g}"

    def cells(each, which):
        times = [each[f"{which}, {peer}"] for peer in peers]
        return [digits(1e3 * times[0]["ours"]), *(f"{1 / row['ratio']:.3g}" for row in times)]

    def mebibytes(each, which):
        row = each.get(f"{which}, peak memory, sdpa")
        return [digits(row["ours"]), digits(row["peer"])] if row else ["", ""]

    lines = [[shape, *(cell for which in passes for cell in cells(each, which)),
              *mebibytes(each, passes[0])] for shape, each in found.items()]
    columns = ("ms", *(f"{peer}, times" for peer in peers))
    head = [f"{which}: {what}" for which in passes for what in columns]
    return (table(["case", *head, "MiB", "sdpa, MiB"], lines) + "\n" +
            paragraph(f"{rows[0]['peer_version']}, {document['threads']} threads; times: how many "
                      "times as long the peer takes. MiB: what a forward call adds to the peak of "
                      "a process. LayoutLM's dense bias, which its layers share, is not counted. " +
                      unevenness([row for row in rows if row["unit"] == "s"]),
                      source(document))), {}


def memory(documents):
    document, rows = newest(select(documents, "growth", name=("causal, memory",)))
    measured = sorted((number(row, "N"), row["ours"] / 1e6) for row in rows)
    heads = number(rows[0], "H")
    matrix = [(n, 4e-6 * heads * n * n) for n, _ in measured]
    chart = svg_chart.lines(
        "Memory of the forward pass, MB", {"measured": measured, "a matrix of scores": matrix},
        ([n for n, _ in measured], [10**e for e in range(6)]), ("N, queries and keys", True),
        (str, "{:,}".format), dashed=("a matrix of scores",))
    step, steps = newest(select(documents, "memory", shape="training step"))
    largest = max(steps, key=lambda row: row["ours"])
    usual = [row["ours"] / MIB for row in steps if row["name"].startswith("the other")
             or len(steps) > 30]
    return ("![memory of the forward pass by length](figures/memory.svg)\n\n" +
            paragraph(f"Measured beside the {heads} matrices of 4 N^2 bytes that attention without "
                      "tiles stores.", source(document)) + "\n" +
            paragraph(f"A training step at N = {number(largest, 'N')} needs, beyond its results "
                      f"and gradients, {span(usual, '{:.0f}')} MiB with most methods and "
                      f"{largest['ours'] / MIB:.0f} MiB with `{largest['name']}`, the most.",
                      source(step)), {"memory.svg": chart})


def kernels(documents):
    columns = ("q k", "p v", "softmax", "merge", "in turn", "limit")
    lines = []
    for document in sorted({id(d): d for d, _ in select(documents, "kernels")}.values(),
                           key=lambda d: d["machine"]):
        for size in (64, 128):
            rows = {row["name"]: row for row in document["rows"]
                    if row["shape"] == f"forward, D {size}, one core"}
            lines.append([machine(document), str(size), *(
                "" if name not in rows else percent([rows[name]["ratio"]]) if rows[name]["ratio"]
                else f"{1e6 * rows[name]['ours']:.2f} us" for name in columns)])
    head = ["one core", "D", "`q k`", "`p v`, sums", *columns[2:]]
    return table(head, lines), {}


def dropout(documents):
    document, rows = newest(select(documents, "dropout", peer_version="plain"))
    cells = {(row["name"], row["shape"].split(",")[0], number(row, "D")): row["ratio"]
             for row in rows}
    names = {"dropout": "dropout of a tenth", "softcap": "softcap"}
    columns = [(which, size) for which in ("forward", "with backward") for size in (64, 128)]
    lines = [[label, *(f"{cells[name, which, size]:.2f}" for which, size in columns)]
             for name, label in names.items()]
    return (table(["", *(f"{which}, D = {size}" for which, size in columns)], lines) + "\n" +
            paragraph("N = 2048, 8 heads, float32, every key visible, times plain attention. " +
                      unevenness(rows),
                      source(document))), {}


def cache_error(documents):
    document, rows = newest(select(documents, "cache"))
    names = list(dict.fromkeys(row["name"] for row in rows))
    shapes = list(dict.fromkeys(row["shape"] for row in rows))
    errors = {(row["name"], row["shape"]): row["ours"] for row in rows}
    lines = [[", ".join(shape.split(", ")[:2]),
              *(f"{100 * errors[name, shape]:.2g} %" for name in names)] for shape in shapes]
    return (table(["error", *names], lines) + "\n" +
            paragraph("Root mean square, as a share of that over a float32 cache; "
                      f"{shapes[0].split(', ', 2)[2]}, RoPE. Outliers: 4 columns, 20 times as "
                      "large. Rotated first: keys that were rotated before they were rounded.",
                      source(document))), {}


BLOCKS = {"answer": answer, "cost": cost_table, "share": share, "decoding": decoding,
          "engines": engines, "blocks": blocks, "relative": relative, "grids": grids,
          "memory": memory, "kernels": kernels, "dropout": dropout, "cache-error": cache_error,
          "models": whole_models, "ring": ring, "arms": arms}


def filled(page, documents, figures):
    """The page with its blocks redrawn; their charts are added to `figures`."""
    def draw(name):
        if name not in BLOCKS:
            sys.exit(f"block {name}: expected one of {' '.join(BLOCKS)}")
        body, charts = BLOCKS[name](documents)
        figures.update(charts)
        return body
    return page_blocks.filled(page, "figures", draw)


def drawn(root):
    """{path: content} of all pages and figures."""
    documents, files, figures = read(root / "bench/results"), {}, {}
    for page in PAGES:
        text = (root / page).read_text(encoding="utf-8")
        files[root / page] = filled(text, documents, figures)
    return {**files, **{root / "docs/figures" / name: svg for name, svg in figures.items()}}


def main(arguments, root=ROOT):
    kept = sorted((root / "docs/figures").glob("*.svg"))
    files = {**dict.fromkeys(kept), **drawn(root)}
    return page_blocks.write(files, "--check" in arguments, "bench/draw_figures.py", root)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
