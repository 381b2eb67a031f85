"""Rotary encodings: RoPE in all its layouts, XPOS, positions with several axes."""

import numpy
import torch

from sextant.conformance.case import case


def pairing(c):
    return "interleaved" if "interleaved" in c.meta["method"].lower() else "half-split"


def base(c, frequencies="inv_freq"):
    """The base of a case: from its meta, or from its frequencies theta_f = base^(-f / pairs)."""
    if "base" in c.meta:
        return c.meta["base"]
    theta = c.arrays[frequencies]
    return float(theta[1] ** -len(theta))


def irregular(positions):
    return bool((numpy.diff(positions) != 1).any())


def visibility(c):
    """The arguments of attention for positions and visibility. Positions that are not consecutive
    are passed explicitly, with the mask of the case instead of causal."""
    pos_q, pos_k = (c.arrays[f"pos_{n}"] if f"pos_{n}" in c else None for n in "qk")
    if pos_q is None:
        return {"causal": "mask" in c}
    if irregular(pos_q) or irregular(pos_k):
        return {"causal": False,
                "mask": torch.from_numpy(c.arrays["mask"])[None, None] if "mask" in c else None,
                "query_positions": torch.from_numpy(pos_q),
                "key_positions": torch.from_numpy(pos_k)}
    return {"causal": "mask" in c, "first_query": int(pos_q[0]), "first_key": int(pos_k[0])}


def expect_rotated(c, options):
    """Compares the arrays q_rot and k_rot if the case contains them."""
    for name in "qk":
        if f"{name}_rot" in c and f"pos_{name}" in c and hasattr(c.library, "rotate"):
            positions = torch.from_numpy(c.arrays[f"pos_{name}"])
            rotated = c.library.rotate(c.tensor(name), positions, **options)
            c.expect(f"{name}_rot", rotated, c.arrays[f"{name}_rot"])


@case(r"RoPE,? (half-split|interleaved)", "q", "k", "v", "out", "pos_q", "pos_k")
def rope(c):
    q, k, v = c.leaves("q", "k", "v")
    options = {"pairing": pairing(c), "base": base(c)}
    if "rotary_dim" in c.meta:
        options["dim"] = c.meta["rotary_dim"]
    if "OPPOSITE" in c.meta["method"]:
        options["sense"] = "clockwise"
    expect_rotated(c, options)
    c.expect_out(c.attention(q, k, v, method="rope", **visibility(c), **options))


@case(r"RoPE interleaved on the TRAILING", "q", "kv", "out")
def rope_trailing(c):
    """DeepSeek-V4: keys are also the values, both are rotated, and the output is rotated back."""
    options = {"pairing": "interleaved", "columns": "last", "dim": c.meta["rotary_dim"],
               "base": base(c)}
    q, kv = c.leaves("q", "kv")
    positions = torch.from_numpy(c.arrays["pos"])
    rotated = c.library.rotate(kv, positions, **options)
    c.expect("kv_rot", rotated, c.arrays["kv_rot"])
    out = c.attention(q, kv, rotated, method="rope", query_positions=positions,
                      key_positions=positions, **options)
    c.expect("out_before_inverse", out, c.arrays["out_before_inverse"])
    c.expect_out(c.library.rotate(out, positions, back=True, **options))


@case(r"RoPE with learnable log-frequencies", "log_freq")
def rope_trained(c):
    q, k, v = c.leaves("q", "k", "v")
    c.expect_out(
        c.attention(q, k, v, method="rope", train=True, sense="clockwise",
                    parameters=[c.leaf("log_freq")])
    )


@case(r"weight permutation interleaved", "Wq", "Wk", "row_index")
def rope_layout(c):
    x, index = c.tensor("x"), torch.from_numpy(c.arrays["row_index"])
    heads, head_dim = c.arrays["scores_interleaved"].shape[1], 2 * len(c.arrays["inv_freq"])
    positions = torch.from_numpy(c.arrays["pos"])

    def scores(wq, wk, pairing):
        q, k = ((x @ w.T).view(-1, heads, head_dim).transpose(0, 1)[None] for w in (wq, wk))
        options = {"pairing": pairing, "base": base(c)}
        q, k = (c.library.rotate(y, positions, **options) for y in (q, k))
        return q @ k.transpose(2, 3)

    wq, wk = c.tensor("Wq"), c.tensor("Wk")
    c.expect("Wq_half", wq[index], c.arrays["Wq_half"])
    c.expect("Wk_half", wk[index], c.arrays["Wk_half"])
    for name, got in (("scores_interleaved", scores(wq, wk, "interleaved")),
                      ("scores_half_permuted", scores(wq[index], wk[index], "half-split")),
                      ("scores_half_unpermuted", scores(wq, wk, "half-split"))):
        c.expect(name, got, c.arrays[name])


@case(r"RoPE angle precision at large positions", "positions", "cos")
def rope_large_positions(c):
    for n, b in enumerate(c.meta["bases"]):
        cos, sin = c.library.tables.rope_cos_sin(c.arrays["positions"], c.meta["rotary_dim"], b)
        c.expect("cos", cos, c.arrays["cos"][n], 1e-15)
        c.expect("sin", sin, c.arrays["sin"][n], 1e-15)
        theta = c.library.tables.rope_frequencies(c.meta["rotary_dim"], b)
        c.expect("theta", theta, c.arrays["theta"][n], 1e-15)


@case(r"exact RoPE phase by 64-bit fixed point", "positions", "cos", "err")
def rope_phase(c):
    """Our phases have 128 bits; they differ from the 64-bit phases by at most the error that the
    case gives for these."""
    positions = c.arrays["positions"]
    for n, b in enumerate(c.meta["bases"]):
        cos, sin = c.library.tables.rope_cos_sin(positions.astype(numpy.int64),
                                                 c.meta["rotary_dim"], b)
        for row in range(len(positions)):
            allowed = c.arrays["err"][n, row] + 1e-15
            c.expect("cos", cos[row], c.arrays["cos"][n, row], allowed)
            c.expect("sin", sin[row], c.arrays["sin"][n, row], allowed)


@case(r"XPOS (\(interleaved|one-token|continuation|half-split)", "q", "out")
def xpos(c):
    q, k, v = c.leaves("q", "k", "v")
    halves = "half-split" in c.meta["method"]
    options = {"pairing": "half-split" if halves else "interleaved"}
    for name in ("scale_base", "gamma", "base"):
        if name in c.meta:
            options[name] = c.meta[name]
    # A single new token sees all keys, and its case has no mask.
    arguments = visibility(c) | {"causal": c.meta.get("causal", True)}
    c.expect_out(c.attention(q, k, v, method="xpos", **arguments, **options))


@case(r"XPOS zeta\^", "zeta", "factor")
def xpos_range(c):
    growth = c.library.tables.xpos_growth(2 * len(c.arrays["zeta"]))
    distance = torch.from_numpy(c.arrays["distance"])[:, None].double()
    c.expect("zeta", (512 * growth).exp(), c.arrays["zeta"], 1e-14)
    c.expect("log_factor", distance * growth, c.arrays["log_factor"], 1e-14)
    c.expect("factor", (distance * growth).exp(), c.arrays["factor"], 1e-12)


@case(r"(interleaved )?M-RoPE", "positions", "q")
def mrope(c):
    q, k, v = c.leaves("q", "k", "v")
    positions = torch.from_numpy(c.arrays["positions"])[None]
    order = "interleaved" if c.meta["method"].startswith("interleaved") else "blocks"
    options = {"base": c.meta["base"], "axes": order, "sections": c.meta["mrope_section"]}
    for name in "qk":
        rotated = c.library.rotate(c.tensor(name), positions, **options)
        c.expect(f"{name}_rot", rotated, c.arrays[f"{name}_rot"])
    mask = torch.from_numpy(c.arrays["mask"])[None, None]
    c.expect_out(
        c.attention(q, k, v, method="rope", causal=False, mask=mask, query_positions=positions,
                    key_positions=positions, **options)
    )


@case(r"axis of every pair for the published sections", "qwen2vl", "qwen3vl")
def mrope_axes(c):
    for name, order, sections in (("qwen2vl", "blocks", [16, 24, 24]),
                                  ("qwen3vl", "interleaved", [24, 20, 20])):
        # A position of 1 on one axis rotates the pairs of this axis, and no other.
        pairs = len(c.arrays[name])
        x = torch.zeros(3, 1, 1, 2 * pairs, dtype=torch.float64)
        x[..., :pairs] = 1
        positions = torch.eye(3, dtype=torch.int64)[:, :, None]
        rotated = c.library.rotate(x, positions, axes=order, sections=sections)
        moved = rotated[:, 0, 0, pairs:] != 0
        c.expect("one axis each", moved.sum(0), torch.ones(pairs), 0)
        c.expect(name, moved.double().argmax(0), c.arrays[name], 0)


@case(r"2D RoPE of the Qwen2-VL vision tower", "pos_hw")
def rope_vision(c):
    options = {"axes": "restart", "sections": 2 * [c.arrays["freqs"].shape[1] // 2]}
    positions = torch.from_numpy(c.arrays["pos_hw"]).T.contiguous()[None]
    rotated = {}
    for name in "qk":
        x = c.tensor(name).transpose(0, 1)[None]  # the case has [rows, heads, columns]
        rotated[name] = c.library.rotate(x, positions, **options)[0]
        c.expect(f"{name}_rot", rotated[name].transpose(0, 1), c.arrays[f"{name}_rot"])
    c.expect("scores", rotated["q"] @ rotated["k"].transpose(1, 2), c.arrays["scores"])


@case(r"rotation by axes", "positions", "rotated")
def rope_axes(c):
    positions = torch.from_numpy(c.arrays["positions"])[None]
    c.expect("rotated", c.library.rotate(c.tensor("x"), positions, **c.meta["options"]),
             c.arrays["rotated"])


def grid(c):
    """The positions of an image's patches, [1, 2, rows]: x, then y."""
    across, down = c.meta["grid"]
    n = torch.arange(across * down)
    return torch.stack([n % across, n // across])[None]


@case(r"RoPE-Axial for ViT", "q", "out")
def rope_axial(c):
    q, k, v = c.leaves("q", "k", "v")
    quarter = q.size(3) // 4
    positions = grid(c)
    c.expect_out(
        c.attention(q, k, v, method="rope", causal=False, pairing="interleaved",
                    base=c.meta["theta"], axes="restart", sections=[quarter, quarter],
                    query_positions=positions, key_positions=positions)
    )


@case(r"RoPE-Mixed for ViT", "freqs")
def rope_mixed(c):
    q, k, v = c.leaves("q", "k", "v")
    positions = grid(c)
    c.expect_out(
        c.attention(q, k, v, method="rope-mixed", causal=False, query_positions=positions,
                    key_positions=positions, parameters=[c.leaf("freqs")])
    )
