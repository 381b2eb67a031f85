"""Blocks of bench/draw_figures.py on whole models, and on processes and machines sharing work."""
import pathlib
import sys

from figure_rows import MIB, newest, select, source, unevenness

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "scripts"))

from page_blocks import paragraph, table  # noqa: E402  (the path above)


def whole_models(documents):
    document, rows = newest(select(documents, "models"))
    ratios, ours = {}, {}
    for row in rows:
        case = row["name"], row["shape"]
        ours[case, row["unit"]] = row["ours"]
        found = ratios.setdefault(case, {})
        if row["peer_version"]:
            peer, version = row["peer_version"].split(", ")
            found[peer, row["unit"]] = row["ratio"]

    def times(ratio):
        return f"{1 / ratio:.2g}" if ratio else "-"

    lines = []
    for case, found in ratios.items():
        batch, length, dtype = (part.split(" ")[-1] for part in case[1].split(", "))
        lines.append([case[0], dtype, f"{batch} x {length}",
                      *(times(found.get((peer, unit))) for unit in ("s", "B")
                        for peer in ("eager", "sdpa")),
                      f"{ours[case, 'B'] / MIB:.3g}"])
    return (table(["sizes of", "dtype", "batch x length", "time: eager", "sdpa", "memory: eager",
                   "sdpa", "MiB"], lines) + "\n" +
            paragraph("How many times as long the same model takes with the attention of "
                      f"{version} as with `accelerate`, and its peak memory beyond the weights; "
                      "MiB: that with `accelerate`. Lengths are tokens, frames (10 ms for "
                      "Parakeet, 20 ms for Wav2Vec2-BERT), samples at 16 kHz (SpeechT5) or the "
                      "side of a picture (SAM). One forward pass without gradients, random "
                      "weights, a vocabulary of 1000. -: the model has no such attention, or its "
                      "matrices do not fit.", unevenness(rows), source(document))), {}


def ring(documents):
    document, rows = newest(select(documents, "ring"))
    timed = [row for row in rows if row["ratio"]]
    ratios = {(row["shape"], row["name"]): row["ratio"] for row in timed}
    lines = [[shape.rsplit(" ", 1)[0], *(f"{ratios[shape, name]:.2f}"
                                         for name in ("forward", "backward"))]
             for shape in dict.fromkeys(row["shape"] for row in timed)]
    sent = {row["name"]: f"{row['ours'] / MIB:.3g} MiB" for row in rows if row["unit"] == "bytes"}
    length, heads, columns = timed[0]["shape"].rsplit(" ", 1)[1].split("x")
    return (table(["method, keys", "forward", "backward"], lines) + "\n" +
            paragraph("The time of two processes with one thread each over that of one process "
                      f"with two threads: {length} rows, {heads} heads, {columns} columns. In a "
                      f"step a rank sends {sent['forward']} forward and {sent['backward']} "
                      "backward, here over the loopback device.", unevenness(timed),
                      source(document))), {}


def arms(documents):
    document, (row,) = newest(select(documents, "arms"))
    return paragraph(f"Two workers on one machine took {row['ratio']:.2f} of the time of one "
                     f"({row['shape']}; 0.5 is perfect).", unevenness([row]), source(document)), {}
