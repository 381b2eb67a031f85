#!/usr/bin/env python3
"""Tests methods for the three conditions of a good encoding, and for the terms that they keep.

usage: draw_conditions.py [--check]

Writes docs/data/conditions.json, from which draw_literature.py draws two tables; --check
writes nothing and fails if the file differs from a fresh one. It needs a built library
(python/sextant finds it) and takes some 15 seconds.

The methods of literature/terms.toml are run with their defaults at 4 heads of 16, L = 64, with
random parameters and projections: scores.py. The fields of a method:

  unique      positions 0 .. 1023 (of a relative method: distances) that no other one equals,
              counted from 0 to the first repetition, and "to": how many were tried
  relative    whether s_ij - s_ii of equal contents is a function of i - j: "yes", "up to L" or
              "no", with the share of its variance that i - j explains
  any_length  whether the scores of the first 64 positions stay what they are in 128 and in 256:
              "yes", "no", or the first length that is refused
  direction   whether s(i, i + d) differs from s(i, i - d) without the causal mask
  terms       which of the four terms of (x_i + p_i) W_q W_k^T (x_j + p_j)^T the scores have beside
              the first; "1": positions change the first term itself, as rotations do
"""
import argparse
import json
import pathlib
import sys
import tomllib

import torch

from common import by_distance, random, share_by_distance
from scores import TRAINED, WIDTH, Layer, constant

ROOT = pathlib.Path(__file__).resolve().parents[2]
RESULT = ROOT / "docs/data/conditions.json"
TERMS = ROOT / "docs/data/literature/terms.toml"
LONGEST = 1024
LONGEST_UNIQUE = {"floater": 128}  # an untrained flow grows: scores leave float64's range
SAME = 1e-9  # scores in float64, of size 1 to 100
# Forms of methods whose cells may differ from those of the method itself.
VARIANTS = ["alibi:interpolation=dynamic", 'rope:stretch="dynamic-ntk":dynamic=length',
            'rope:stretch="yarn*8"', 'rope:stretch="dynamic-ntk"',
            "relative-key:position_embedding_type=relative_key_query", "tupe:relative=false",
            "tener:flavour=paper", "complex:flavour=conjugate", "recursive:cell=gru",
            "kerple-power:form=weight"]


def largest(differences):
    """The largest difference of scores; of two hidden keys it is 0, of a hidden one infinite."""
    return float(differences.nan_to_num(nan=0, posinf=1e9, neginf=-1e9).abs().max())


def first_refused(arm):
    """The largest of the lengths that the method accepts, and the first one it refuses or None."""
    accepted = 0
    for length in (TRAINED, 2 * TRAINED, LONGEST):
        try:
            Layer(arm).scores(constant(length, 1), constant(length, 2), queries=1)
        except RuntimeError:
            return accepted, length
        accepted = length
    return accepted, None


def prefix_without_repetition(codes):
    """The length of the longest prefix of the rows of codes [n, width] without two equal rows."""
    seen = set()
    for number, row in enumerate((codes / SAME).round().tolist()):
        if tuple(row) in seen:
            return number
        seen.add(tuple(row))
    return len(codes)


def unique(layer, length):
    """How many positions, or distances, have a code of their own."""
    added = layer.method.embed(torch.zeros(1, length, WIDTH, dtype=torch.float64)
                               + constant(1, 3))[0]
    if not torch.equal(added, added[:1].expand_as(added)):
        return prefix_without_repetition(added)
    row = layer.scores(constant(length, 1), constant(length, 2), queries=1)[:, 0]
    visible = row.isfinite().all(0)
    return prefix_without_repetition(row[:, visible].flip(1).T)


def is_relative(layer, rows):
    x = constant(rows, 4)
    scores = layer.scores(x, x)
    largest_in_diagonal = max(largest(each - each[:, -1:]) for each in by_distance(scores))
    return largest_in_diagonal < SAME, share_by_distance(scores)


def relative(layer, accepted):
    within, share = is_relative(layer, TRAINED)
    if accepted == TRAINED:
        return "yes" if within else "no", share
    past, share_past = is_relative(layer, 2 * TRAINED)
    return "yes" if past else "up to L" if within else "no", share if past else share_past


def any_length(arm, refused):
    if refused:
        return str(refused)
    x = constant(LONGEST, 5)
    short, *others = (Layer(arm).scores(x[:n], x[:n], causal=False)[:, :TRAINED, :TRAINED]
                      for n in (TRAINED, 2 * TRAINED, 4 * TRAINED))
    return "yes" if all(largest(each - short) < SAME for each in others) else "no"


def direction(layer, name):
    if name in ("chunk", "window", "sink"):  # as the wrapped method
        return None
    x = constant(2 * 8 + 1, 6)
    row = layer.scores(x, x, causal=False)[:, 8]
    return largest(row - row.flip(1)) > SAME


def varies(scores):
    return largest(scores - scores[:, :1]) > SAME


def terms(layer):
    """The terms of the last query's scores with 32 keys. Contents of zero leave positions alone."""
    n = 32
    zero = torch.zeros(n, WIDTH, dtype=torch.float64)
    x_q, x_k, same_k = constant(n, 7), random(n, WIDTH, seed=8), constant(n, 9)

    def row(a, b):
        return layer.scores(a, b, queries=1)[:, 0]

    neither, query, key = row(zero, zero), row(x_q, zero), row(zero, x_k)
    both = row(x_q, same_k) - query - row(zero, same_k) + neither
    found = {"1": varies(both), "2": varies(query - neither), "3": varies(key - neither),
             "4": varies(neither)}
    return [name for name, there in found.items() if there]


def tested(arm):
    accepted, refused = first_refused(arm)
    layer, name = Layer(arm), arm.split(":")[0]
    kind, share = relative(layer, accepted)
    tried = min(accepted, LONGEST_UNIQUE.get(name, accepted))
    return {"unique": unique(layer, tried), "to": tried, "relative": kind,
            "share": None if share is None else round(share, 2),
            "any_length": any_length(arm, refused), "direction": direction(layer, name),
            "terms": None if name == "complex" else terms(layer)}


def document():
    methods = tomllib.loads(TERMS.read_text("utf-8"))
    return {arm: tested(arm) for arm in [*sorted(methods), *VARIANTS]}


def alike(committed, fresh):
    """Whether two documents agree; shares may differ by rounding to two decimals."""
    if list(committed) != list(fresh):
        return False
    for old, new in zip(committed.values(), fresh.values()):
        shares = old.pop("share"), new.pop("share")
        if (old != new or (shares[0] is None) != (shares[1] is None)
                or shares[0] is not None and abs(shares[0] - shares[1]) > 0.011):
            return False
    return True


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true",
                        help="write nothing and fail if the file differs from a fresh one")
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)
    lines = (f" {json.dumps(arm)}: {json.dumps(found)}" for arm, found in document().items())
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    if not given.check:
        RESULT.write_text(text, encoding="utf-8")
        return 0
    if RESULT.is_file() and alike(json.loads(RESULT.read_text(encoding="utf-8")), json.loads(text)):
        return 0
    print("docs/data/conditions.json: stale; run tests/literature/draw_conditions.py and "
          "tests/literature/draw_literature.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
