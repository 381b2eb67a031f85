"""TENER: the score of the official code and that of the paper."""

from torch.nn.functional import linear

from sextant.conformance.case import case
from sextant.conformance.cases._heads import merge, split


@case(r"tener$", "r_r_bias", "r_w_bias", "out_paper")
def tener(c):
    q, k, v = [split(x, c.meta["H"]) for x in linear(c.leaf("x"), c.leaf("qkv_w")).chunk(3, -1)]
    place = dict(method="tener", scaled=c.meta["scaled"], causal=False,
                 mask=c.tensor("mask")[:, None, None] != 0,
                 parameters=c.leaves("r_r_bias", "r_w_bias"))
    c.expect_out(merge(c.attention(q, k, v, **place)))
    # The paper's score, with projected keys and frequencies as in the code.
    paper = c.attention(q, k, v, flavour="paper", layout="tensor2tensor", **place)
    c.expect("out_paper", merge(paper), c.arrays["out_paper"])
