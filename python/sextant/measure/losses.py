"""Losses of a causal model by position, in nats per token and per byte.

A block is N + 1 tokens of one document, N the longest length; the last N are predicted. At length n
the last n are, so that the last tokens of a block are the same at all lengths. The model gets n
tokens: those before each predicted one, the first of which is the token that its tokenizer puts
before every text, such as <s>, if it does. Models that were trained so compute no sensible loss
without it. All losses of one block and length come from one forward pass, and are summed in bins of
positions.
"""

from __future__ import annotations

import functools
import pathlib
import time
from typing import TYPE_CHECKING, Any

import numpy

from sextant._files import read_bytes
from sextant.measure.errors import MeasureError

if TYPE_CHECKING:
    from sextant.measure.arm import Arm, Progress
    from sextant.measure.model import Loaded

ROWS = 1024  # of logits at a time: 200 MB in float32 for a vocabulary of 49152


def work(arm: Arm) -> tuple[int, int]:
    """The tokens of the arm, and those that are already done."""
    asked = arm.assignment["losses"]
    return (asked["blocks"] * sum(asked["lengths"]),
            sum(record["length"] for record in arm.records()))


def measure(arm: Arm, loaded: Loaded, progress: Progress) -> None:
    """Adds the missing records {"block", "length", "nats", "tokens", "bytes"}, each a list by bin,
    "last": [nats, tokens, bytes] of the last `stride` tokens, and "seconds"."""
    from sextant.measure import model

    asked = arm.assignment["losses"]
    rule = f"windows begin with {loaded.spelled(loaded.begin)}" if loaded.begin else ""
    arm.check_rule(rule)
    found = {(record["block"], record["length"]) for record in arm.records()}
    progress.add(0, f"{arm.name}, cutting the text into tokens")
    text = arm.folder / arm.assignment["text"]
    tokens, sizes = blocks_of(loaded, text.resolve(), tuple(arm.assignment["ends"]),
                              max(asked["lengths"]), asked["blocks"])
    with model.positions(loaded, arm.assignment["candidate"]):
        check_head(loaded.model)
        for block in range(asked["blocks"]):
            for length in asked["lengths"]:
                if (block, length) in found:
                    continue
                progress.check_stop()
                progress.add(0, f"{arm.name}, block {block + 1}/{asked['blocks']}, {length} tokens")
                began = time.monotonic()
                nats = token_losses(loaded.model, window(tokens[block], length, loaded.begin)
                                    )[-length:]
                arm.append({"block": block, "length": length,
                            **binned(nats, sizes[block][-length:], asked["bin"]),
                            "last": sums(nats, sizes[block], asked["stride"]),
                            "seconds": round(time.monotonic() - began, 2)})
                progress.add(length, arm.name)
        arm.finish(**model.facts(loaded))


def window(block: numpy.ndarray, length: int, begin: list[int]) -> numpy.ndarray:
    """The tokens whose last `length` are predicted: those of a block, after the tokens `begin`, or
    after the block's own token if there are none."""
    if not begin:
        return block[-length - 1:]
    return numpy.concatenate([numpy.array(begin, dtype=block.dtype), block[-length:]])


def binned(nats: numpy.ndarray, sizes: numpy.ndarray, width: int) -> dict[str, list]:
    """Sums by bin of `width` positions; the last bin may be shorter."""
    starts = numpy.arange(0, len(nats), width)
    counts = numpy.diff([*starts, len(nats)])
    return {"nats": [round(float(x), 5) for x in numpy.add.reduceat(nats, starts)],
            "tokens": counts.tolist(),
            "bytes": numpy.add.reduceat(sizes[-len(nats):], starts).tolist()}


def sums(nats: numpy.ndarray, sizes: numpy.ndarray, last: int) -> list:
    return [round(float(nats[-last:].sum()), 5), last, int(sizes[-last:].sum())]


@functools.lru_cache(maxsize=1)
def _documents(tokenizer: Any, path: pathlib.Path, ends: tuple[int, ...], least: int
               ) -> list[tuple[numpy.ndarray, numpy.ndarray]]:
    """The tokens of each document of at least `least` bytes, and their sizes in bytes of UTF-8.

    ends: the offsets in the file at which documents end."""
    try:
        data = read_bytes(path)
    except OSError as error:
        raise MeasureError(f"{path}: cannot read it: {error.strerror}") from error
    found = []
    for begin, end in zip((0, *ends), ends):
        if end - begin < least:
            continue
        text = data[begin:end].decode("utf-8", errors="replace")
        encoded = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True,
                            verbose=False)
        offsets = numpy.array(encoded["offset_mapping"], dtype=numpy.int64).reshape(-1, 2)
        # Tokens within a character have its offsets; the first of them gets its bytes.
        last = numpy.maximum.accumulate(offsets[:, 1]) if len(offsets) else offsets[:, 1]
        in_bytes = numpy.zeros(len(text) + 1, dtype=numpy.int64)
        codes = numpy.frombuffer(text.encode("utf-32-le"), dtype=numpy.uint32)
        in_bytes[1:] = numpy.cumsum(1 + (codes >= 0x80) + (codes >= 0x800) + (codes >= 0x10000))
        found.append((numpy.array(encoded["input_ids"], dtype=numpy.int64),
                      numpy.diff(in_bytes[last], prepend=0)))
    return found


def blocks_of(loaded: Loaded, path: pathlib.Path, ends: tuple[int, ...], longest: int, count: int
              ) -> tuple[list[numpy.ndarray], list[numpy.ndarray]]:
    """`count` blocks of longest + 1 tokens, evenly over the text and each within one document, and
    the bytes of their last `longest` tokens."""
    documents = _documents(loaded.tokenizer, path, ends, longest + 1)
    places = [(number, start) for number, (tokens, _) in enumerate(documents)
              for start in range(0, len(tokens) - longest, longest)]
    if len(places) < count:
        most = max((len(tokens) for tokens, _ in documents), default=0)
        raise MeasureError(f"text: expected {count} sequences of {longest + 1} tokens, each within "
                           f"one document, but got {len(places)}; the longest document has {most}")
    tokens, sizes = [], []
    for n in range(count):
        number, start = places[n * len(places) // count]
        tokens.append(documents[number][0][start:start + longest + 1])
        sizes.append(documents[number][1][start + 1:start + longest + 1])
    return tokens, sizes


def token_losses(model: Any, tokens: numpy.ndarray) -> numpy.ndarray:
    """-log p of each token but the first, float64."""
    import torch

    ids = torch.from_numpy(tokens)[None]
    with torch.no_grad():
        parts = []
        targets = ids[0, 1:]
        for first, logits in logits_in_slices(model, ids[:, :-1]):
            rows = targets[first:first + logits.size(0)]
            parts.append(torch.nn.functional.cross_entropy(logits.float(), rows, reduction="none"))
        losses = torch.cat(parts).double().numpy()
    if not numpy.isfinite(losses).all():
        raise MeasureError("losses: expected finite numbers, but the model gives "
                           f"{losses[~numpy.isfinite(losses)][0]}")
    return losses


def logits_in_slices(model: Any, ids: Any):
    """(first row, logits [rows, vocabulary]) of one sequence [1, n], ROWS rows at a time.

    The model without its head computes all rows once; then the whole model is called with its body
    replaced by a function that returns some of these rows, so that whatever it does beside the
    product with the vocabulary (a cap, a scale) is done."""
    body = getattr(model, model.base_model_prefix, None)
    if body is None or body is model:
        yield 0, model(input_ids=ids, use_cache=False).logits[0]
        return
    found = body(input_ids=ids, use_cache=False)
    hidden = found.last_hidden_state
    before = body.__dict__.get("forward")
    for first in range(0, hidden.size(1), ROWS):
        part = type(found)(last_hidden_state=hidden[:, first:first + ROWS])
        body.forward = lambda *_, part=part, **__: part
        try:
            logits = model(input_ids=ids[:, first:first + ROWS], use_cache=False).logits[0]
        finally:
            del body.forward
            if before is not None:
                body.forward = before
        yield first, logits


def check_head(model: Any) -> None:
    """Raises MeasureError if logits in slices are not those of the model."""
    import torch

    size = model.config.get_text_config(decoder=True).vocab_size
    ids = torch.randint(0, size, (1, 8), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        whole = model(input_ids=ids, use_cache=False).logits[0].float()
        got = torch.cat([logits for _, logits in logits_in_slices(model, ids)]).float()
    if not torch.allclose(got, whole, rtol=1e-3, atol=1e-3 * float(whole.abs().max())):
        raise MeasureError(f"{type(model).__name__}: expected the model's own logits when its head "
                           "is computed apart, but they differ")
