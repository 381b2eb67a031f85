"""Attention without positions."""

from sextant.conformance.case import case


@case(r"NoPE")
def nope(c):
    q, k, v = c.leaves("q", "k", "v")
    c.expect_out(c.attention(q, k, v, method="none"))
