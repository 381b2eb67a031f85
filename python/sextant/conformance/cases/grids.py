"""Biases and vectors by distance on grids: SAM, Swin, BEiT, LayoutLM."""

import torch

from sextant.conformance.case import case


def attend(c, method, parameters, **named):
    q, k, v = c.leaves("q", "k", "v")
    c.expect_out(
        c.attention(q, k, v, method=method, parameters=parameters, causal=False, **named)
    )


@case(r"SAM decomposed vectors", "rel_pos_h")
def sam(c):
    tables = c.leaves("rel_pos_h", "rel_pos_w")
    attend(c, "sam", tables, grid=c.meta["grid"], tables=c.meta["tables"])


@case(r"Swin table", "table")
def swin(c):
    attend(c, "swin", c.leaves("table"), window=c.meta["window"])


@case(r"Swin v2 continuous bias", "logit_scale")
def swin_continuous(c):
    network = c.leaves("logit_scale", "w1", "b1", "w2")
    grids = {name: c.meta[name] for name in ("window", "trained")}
    attend(c, "swin", network, continuous=True, **grids)


@case(r"BEiT table", "table")
def beit(c):
    attend(c, "beit", c.leaves("table"), grid=c.meta["grid"])


@case(r"LayoutLMv3 biases", "positions")
def layoutlm(c):
    boxes = torch.from_numpy(c.arrays["positions"])
    tables = [c.tensor(name) for name in ("text", "x", "y")]
    attend(c, "layoutlm", tables, query_positions=boxes, key_positions=boxes)
