#!/usr/bin/env python3
"""The error of attention over a cache of each type, beside one of float32.

    SEXTANT_LIBRARY=build/release/lib/libsextant_torch.so PYTHONPATH=python bench/cache_error.py

Keys are normal random numbers, in one case with four columns of 128 that are twenty times as large
in all rows, as in trained models (KIVI, Liu et al. 2024, section 3.1). Queries rotate with RoPE.
Errors are those of the products of queries and keys, and of the output: the root mean square of
the difference over that of the products or outputs. "rotated first" has keys that were rotated
before they were rounded.
"""

import argparse
import shlex
import sys

import program
import records
import result_rows
import sextant
import torch

TYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16, "int8": torch.int8}
OUTLIERS, TIMES = (5, 40, 77, 120), 20
FIRST = "int8, rotated first"


def tensors(options, outliers):
    torch.manual_seed(1)
    shape = (1, options.heads, options.keys, options.head_size)
    q, k, v = torch.randn(3, *shape)
    if outliers:
        k[..., OUTLIERS] *= TIMES
    return q, k, v


def rotated(x):
    return sextant.rotate(x, torch.arange(x.size(2)))


def results(q, k, v, dtype, rotated_first=False):
    """The products of queries and keys, and the output, in float64."""
    cache = sextant.Cache(dtype=dtype)
    if rotated_first:
        q, k = rotated(q), rotated(k)
    out = sextant.attention(q, k, v, method="none" if rotated_first else "rope", cache=cache)
    keys = cache.read(cache.sequences[0])[0].float()
    if not rotated_first:
        q, keys = rotated(q), rotated(keys)
    return q.double() @ keys.double().transpose(2, 3), out.double()


@torch.no_grad()
def measure(options):
    for keys in ("random", "with outliers"):
        given = tensors(options, outliers=keys != "random")
        expected = results(*given, torch.float32)
        cases = {name: (dtype, False) for name, dtype in TYPES.items()}
        cases[FIRST] = (torch.int8, True)
        size = f"N {options.keys}, {options.heads} heads, D {options.head_size}"
        found = {name: results(*given, *case) for name, case in cases.items()}
        for at, what in enumerate(("products", "output")):
            for name in cases:
                difference = (found[name][at] - expected[at]).square().mean()
                error = (difference / expected[at].square().mean()).sqrt().item()
                yield result_rows.row(name, f"{what}, keys {keys}, {size}", "relative", [error])


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=program.positive, default=2048)
    parser.add_argument("--heads", type=program.positive, default=4)
    parser.add_argument("--head-size", type=program.positive, default=128)
    rows = []
    for row in measure(parser.parse_args()):
        print(f"{row['shape']:<55}{row['name']:<22}{row['ours']:.2e}", flush=True)
        rows.append(row)
    path = records.write("cache", rows, commit=records.commit_of("HEAD"), statistic="median",
                         command=shlex.join(["bench/cache_error.py", *sys.argv[1:]]))
    print(path.relative_to(records.ROOT))


if __name__ == "__main__":
    main()
