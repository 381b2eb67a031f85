"""T5, mT5 and umT5."""

import re

import torch
from torch.nn.functional import linear

from sextant.conformance.case import case
from sextant.conformance.cases._heads import merge, split


@case(r"(um)?t5$", "rel_bias", "q_w")
def t5(c):
    x, table = c.leaf("x"), c.leaf("rel_bias")
    heads, causal = c.meta["H"], c.meta["causal"]
    q, k, v = (split(linear(x, c.leaf(name)), heads) for name in ("q_w", "k_w", "v_w"))
    if "past_k" in c:
        k, v = (torch.cat([c.tensor(f"past_{n}"), new], 2) for n, new in (("k", k), ("v", v)))
    out = c.attention(q, k, v, method="t5", causal=causal, bidirectional=not causal,
                      buckets=c.meta["num_buckets"], max_distance=c.meta["max_distance"],
                      parameters=[table])
    c.expect_out(linear(merge(out), c.leaf("o_w")))


@case(r"t5 buckets", "relative_position")
def t5_buckets(c):
    for name, expected in c.arrays.items():
        rule = re.fullmatch(r"(?:bucket|exact)_(bi|causal)_nb(\d+)_md(\d+)", name)
        if rule:
            got = c.library.tables.t5_buckets(-c.arrays["relative_position"], int(rule[2]),
                                              int(rule[3]), rule[1] == "bi")
            c.expect(name, got, expected, 0)
