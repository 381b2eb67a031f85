"""RoPE in its pairings, whole and partial."""

from sextant.conformance.case import case


def pairing(c):
    text = c.meta["method"].lower()
    return "interleaved" if "interleaved" in text else "half-split"


@case(r"RoPE, (half-split|interleaved)", "pos_q", "pos_k", "mask")
def rope(c):
    q, k, v = c.leaves("q", "k", "v")
    options = {"pairing": pairing(c), "base": c.meta["base"]}
    if "rotary_dim" in c.meta:
        options["dim"] = c.meta["rotary_dim"]
    first = {"first_query": int(c.arrays["pos_q"][0]), "first_key": int(c.arrays["pos_k"][0])}
    c.expect_out(c.library.attention(q, k, v, method="rope", **first, **options))
