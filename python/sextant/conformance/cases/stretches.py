"""RoPE stretched for longer sequences, fixed and dynamic, and position-dependent query factors."""

import json
import re

import numpy
import torch

from sextant.conformance.case import case

# The golden frequencies are themselves inexact by some float64 ulp.
FREQUENCY_TOLERANCE = 4e-15


def positions(c, name="pos"):
    return torch.from_numpy(numpy.ascontiguousarray(c.arrays[name]))


def number(x):
    return torch.tensor(x, dtype=torch.float64)


def expect_frequencies(c, name, frequencies, expected=None, tolerance=FREQUENCY_TOLERANCE):
    """Compares frequencies by relative error, pair by pair: the slowest pairs matter most."""
    expected = torch.as_tensor(c.arrays[name] if expected is None else expected).double()
    zero = expected == 0
    ratio = torch.where(zero, 1 + frequencies,
                        frequencies / torch.where(zero, 1 + expected, expected))
    c.expect(name, ratio, torch.ones_like(expected), tolerance)


def cos_sin(c, positions, dim, dtype=torch.float64, **options):
    """cos and sin, [rows, dim / 2] each, with the gain: the rotation of a row of pairs (1, 0)."""
    x = torch.zeros(1, 1, len(positions), dim, dtype=dtype)
    x[..., : dim // 2] = 1
    rotated = c.library.rotate(x, positions, **options)[0, 0]
    return rotated[:, : dim // 2], rotated[:, dim // 2 :]


def factor_of(c):
    return float(re.search(r"(?:scale|alpha)[ =](\d+)", c.meta["method"])[1])


STRETCHES = {
    "PI": "linear",
    "NTK-aware": "ntk",
    "first NTK-by-parts code": "part-ntk",
    "YaRN": "yarn",
}


@case(r"(PI|NTK-aware|first NTK-by-parts code|YaRN)\b.*", "q", "out", "inv_freq", "cos")
def fixed(c):
    name = next(n for n in STRETCHES if c.meta["method"].startswith(n))
    stretch = {"rope_type": STRETCHES[name], "factor": factor_of(c)}
    if name in ("first NTK-by-parts code", "YaRN"):
        length = re.search(r"L=(\d+)", c.meta["method"])
        stretch["original_max_position_embeddings"] = int(length[1])
    options = {"base": float(c.meta["base"]), "stretch": stretch}
    q, k, v = c.leaves("q", "k", "v")
    frequencies, gain, _ = c.library.tables.stretched_frequencies(q.size(3), **options)
    # PI's official class divides positions and leaves the frequencies unchanged.
    expect_frequencies(c, "inv_freq", frequencies * (stretch["factor"] if name == "PI" else 1))
    c.expect("mscale", number(gain), number(c.meta.get("mscale", 1.0)), 1e-15)
    cos, sin = cos_sin(c, positions(c), q.size(3), **options)
    for what, got in (("cos", cos), ("sin", sin)):
        c.expect(what, torch.cat([got, got], 1), c.arrays[what], 1e-13)
    c.expect_out(c.attention(q, k, v, method="rope", **options))


DYNAMIC = {
    "pi": {"rope_type": "dynamic-linear"},
    "ntk": {"rope_type": "dynamic-ntk"},
    "yarn_code": {"rope_type": "dynamic-yarn"},
    "yarn_paper": {"rope_type": "dynamic-yarn", "ramp": "turns"},
}


@case(r"exact per-query dynamic scaling", "q", "theta", "mscale")
def dynamic_exact(c):
    kind = re.search(r"\((\w+)\)", c.meta["method"])[1]
    stretch = DYNAMIC[kind] | {"original_max_position_embeddings": c.meta["L"]}
    if kind.startswith("yarn"):
        stretch |= {name: c.meta[name] for name in ("beta_fast", "beta_slow")}
    options = {"base": c.meta["base"], "stretch": stretch}
    q, k, v = c.leaves("q", "k", "v")
    for i, position in enumerate(c.arrays["pos"]):
        frequencies, gain, _ = c.library.tables.stretched_frequencies(
            q.size(3), length=int(position) + 1, **options
        )
        expect_frequencies(c, "theta", frequencies, c.arrays["theta"][i])
        c.expect("mscale", number(gain), number(c.arrays["mscale"][i]), 1e-15)
    c.expect_out(c.attention(q, k, v, method="rope", dynamic="query", **options))
    # Decoding with unrotated keys gives the same.
    steps = [
        c.attention(q[:, :, i : i + 1], k[:, :, : i + 1], v[:, :, : i + 1], method="rope",
                    **options)
        for i in range(q.size(2))
    ]
    c.expect("out, decoded", torch.cat(steps, 2), c.arrays["out"])


@case(r"HF dynamic NTK through", "seq_len", "inv_freq_fresh")
def dynamic_hugging_face(c):
    """The frequencies of a new module. A module that is called again keeps older frequencies, which
    is a defect of the official class."""
    config = c.meta["config"]
    for n, length in enumerate(c.arrays["seq_len"]):
        frequencies, _, _ = c.library.tables.stretched_frequencies(
            config["dim"],
            base=config["base"],
            length=int(length),
            stretch={"rope_type": "dynamic", "factor": config["factor"],
                     "original_max_position_embeddings": config["max_position_embeddings"]},
        )
        expect_frequencies(c, "inv_freq_fresh", frequencies, c.arrays["inv_freq_fresh"][n],
                           2.0**-22)


@case(r"dynamic NTK inv_freq", "seq", "factor", "inv_freq")
def dynamic_ntk(c):
    options = {"base": c.meta["base"]}
    length = {"original_max_position_embeddings": c.meta["L"]}
    for n, factor in enumerate(c.arrays["factor"]):
        for m, seq in enumerate(c.arrays["seq"]):
            frequencies, _, _ = c.library.tables.stretched_frequencies(
                c.meta["dim"],
                length=int(seq),
                stretch={"rope_type": "dynamic", "factor": float(factor), **length},
                **options,
            )
            expect_frequencies(c, "inv_freq", frequencies, c.arrays["inv_freq"][n, m], 2e-14)
    for seq, alpha in zip(c.arrays["qwen_len"], c.arrays["qwen_alpha"]):
        got, _, _ = c.library.tables.stretched_frequencies(
            c.meta["dim"], length=int(seq), stretch={"rope_type": "qwen-ntk", **length}, **options
        )
        fixed, _, _ = c.library.tables.stretched_frequencies(
            c.meta["dim"], stretch={"rope_type": "ntk", "factor": float(alpha)}, **options
        )
        expect_frequencies(c, "qwen_alpha", got, fixed)


@case(r"jquesnelle dynamic YaRN and dynamic linear", "yarn_cos_50")
def dynamic_classes(c):
    """The official classes never shrink: after a call with length 128, length 100 uses the scale
    of 128."""
    dim = 2 * len(c.arrays["yarn_inv_freq_after_50"])
    length = {"original_max_position_embeddings": 64}
    for name, scaled in ((50, 50), (65, 65), (128, 128), (100, 128)):
        yarn = {"rope_type": "dynamic-yarn", **length}
        frequencies, gain, _ = c.library.tables.stretched_frequencies(
            dim, stretch=yarn, length=scaled)
        expect_frequencies(c, f"yarn_inv_freq_after_{name}", frequencies)
        c.expect("mscale", number(gain), c.arrays[f"yarn_mscale_after_{name}"], 1e-15)
        rows = torch.tensor([0, 1, name // 2, name - 1])
        for kind in ("yarn", "linear"):
            stretch = {"rope_type": f"dynamic-{kind}", **length}
            cos, _ = cos_sin(c, rows, dim, stretch=stretch, dynamic=scaled)
            what = f"{kind}_cos_{name}"
            c.expect(what, torch.cat([cos, cos], 1), c.arrays[what], 1e-13)


@case(r"LongRoPE: theta_i/factor_i", "rescale_factors", "inv_freq")
def longrope(c):
    factors = c.arrays["rescale_factors"].tolist()
    dim, factor = 2 * len(factors), c.meta["extended"] / c.meta["original"]
    stretch = {"rope_type": "longrope", "short_factor": [1.0] * len(factors),
               "long_factor": factors, "factor": factor,
               "original_max_position_embeddings": c.meta["original"]}
    extended = c.meta["original"] + 1
    frequencies, gain, _ = c.library.tables.stretched_frequencies(
        dim, base=c.meta["base"], stretch=stretch, length=extended
    )
    expect_frequencies(c, "inv_freq", frequencies)
    c.expect("mscale_su", number(gain), number(c.meta["mscale_su"]), 1e-15)
    for policy, attention in (("su", None), ("yarn", c.meta["mscale_yarn"]), ("1.25", 1.25)):
        variant = stretch if attention is None else stretch | {"attention_factor": attention}
        cos, sin = cos_sin(c, positions(c, "positions"), dim, base=c.meta["base"], stretch=variant,
                           dynamic=extended)
        for what, got in ((f"cos_{policy}", cos), (f"sin_{policy}", sin)):
            c.expect(what, torch.cat([got, got], 1), c.arrays[what], 1e-12)
    # Factors that grow with the length are divisors like fixed ones.
    for n, length in enumerate(c.arrays["dynamic_len"]):
        grown = (max(length / c.meta["original"], 1) - 1) / (factor - 1)
        variant = stretch | {"long_factor": [1 + (f - 1) * grown for f in factors]}
        frequencies, _, _ = c.library.tables.stretched_frequencies(
            dim, base=c.meta["base"], stretch=variant, length=extended
        )
        expect_frequencies(c, "dynamic_inv_freq", frequencies, c.arrays["dynamic_inv_freq"][n])


@case(r"NTK-RoPE variants")
def ntk_variants(c):
    kinds = {
        "ntk_original": {"rope_type": "ntk"},
        "ntk_fixed_b1": {"rope_type": "ntk-mixed", "exponent": 1},
        "ntk_mixed_b0.75": {"rope_type": "ntk-mixed"},
        "ntk_mixed_b0.625": {"rope_type": "ntk-mixed", "exponent": 0.625},
        "pi_b0": {"rope_type": "linear"},
        "b0_75": {"rope_type": "ntk-mixed"},
    }
    for name in c.arrays:
        dim, factor, kind = re.fullmatch(r"(?:official_)?d(\d+)_k(\d+)_(.*)", name).groups()
        frequencies, _, _ = c.library.tables.stretched_frequencies(
            int(dim), stretch=kinds[kind] | {"factor": int(factor)}
        )
        expect_frequencies(c, name, frequencies)


GPT_OSS = {"rope_type": "yarn", "factor": 32.0, "original_max_position_embeddings": 4096,
           "truncate": False}


@case(r"gpt-oss RoPE", "inv_freq", "inv_freq_truncated", "cos")
def gpt_oss(c):
    dim = 2 * len(c.arrays["inv_freq"])
    frequencies, gain, _ = c.library.tables.stretched_frequencies(
        dim, base=150000.0, stretch=GPT_OSS)
    expect_frequencies(c, "inv_freq", frequencies)
    c.expect("concentration", number(gain), number(c.meta["concentration"]), 1e-14)
    whole, _, _ = c.library.tables.stretched_frequencies(dim, base=150000.0,
                                                         stretch=GPT_OSS | {"truncate": True})
    expect_frequencies(c, "inv_freq_truncated", whole)
    cos, sin = cos_sin(c, positions(c, "positions"), dim, base=150000.0, stretch=GPT_OSS)
    c.expect("cos", cos, c.arrays["cos"], 1e-12)
    c.expect("sin", sin, c.arrays["sin"], 1e-12)


@case(r"DeepSeek MLA decoupled RoPE", "q_pe", "k_pe", "out")
def deepseek(c):
    """Rotated channels beside unrotated ones, rotated keys shared by all heads, scores scaled by
    mscale^2."""
    rope, start = c.meta["rope"], c.meta["start_pos"]
    stretch = {"rope_type": "yarn", "factor": rope["factor"],
               "original_max_position_embeddings": rope["original"], "beta_fast": rope["beta_fast"],
               "beta_slow": rope["beta_slow"], "mscale": rope["mscale"],
               "mscale_all_dim": rope["mscale"], "scale_scores": True}
    options = {"base": rope["base"], "pairing": "interleaved", "stretch": stretch}
    _, gain, score = c.library.tables.stretched_frequencies(rope["dim"], base=rope["base"],
                                                            stretch=stretch)
    c.expect("gain", number(gain), number(1.0), 1e-15)
    c.expect("mscale", number(score), number(c.meta["mscale"] ** 2), 1e-14)
    q_nope, q_pe, k_nope, k_pe, v = c.leaves("q_nope", "q_pe", "k_nope", "k_pe", "v")
    positions = torch.arange(start, start + q_pe.size(1))
    for name, x in (("q_pe", q_pe), ("k_pe", k_pe)):
        rotated = c.library.rotate(x.transpose(1, 2), positions, **options).transpose(1, 2)
        c.expect(f"{name}_rot", rotated, c.arrays[f"{name}_rot"])
    q = torch.cat([q_nope, q_pe], 3).transpose(1, 2)
    k = torch.cat([k_nope, k_pe.expand(-1, -1, k_nope.size(2), -1)], 3).transpose(1, 2)
    out = c.attention(q, k, v.transpose(1, 2), method="rope", dim=rope["dim"], columns="last",
                      first_query=start, first_key=start, **options)
    c.expect_out(out.transpose(1, 2))


@case(r"three readings of NTK-by-parts", "inv_freq_paper", "inv_freq_code")
def ntk_by_parts_variants(c):
    dim = 2 * len(c.arrays["theta"])
    stretch = {"rope_type": "yarn", "factor": 8, "original_max_position_embeddings": 4096}
    theta, _, _ = c.library.tables.stretched_frequencies(dim)
    expect_frequencies(c, "theta", theta)
    paper, _, _ = c.library.tables.stretched_frequencies(dim, stretch=stretch | {"ramp": "turns"})
    code, gain, _ = c.library.tables.stretched_frequencies(dim, stretch=stretch)
    expect_frequencies(c, "inv_freq_paper", paper)
    expect_frequencies(c, "inv_freq_code", code)
    c.expect("sqrt_inv_t", number(gain), number(c.meta["sqrt_inv_t"]), 1e-14)


@case(r"cos/sin tables of the ggml CPU rope", "positions", "plain_cos")
def ggml(c):
    """ggml multiplies up its angles in float32. Our angles are exact, so the difference is ggml's
    rounding error."""
    rows = positions(c, "positions")
    for name, setting in c.meta["cases"].items():
        kind = "yarn" if setting["ext_factor"] else "linear"
        stretch = {"rope_type": kind, "factor": setting["factor"]}
        if kind == "yarn":
            stretch["original_max_position_embeddings"] = setting["n_ctx_orig"]
        cos, sin = cos_sin(c, rows, setting["n_dims"], base=setting["base"], stretch=stretch)
        for n, position in enumerate(rows.tolist()):
            allowed = 4 * 2.0**-24 * position + 2.0**-20
            c.expect(f"{name}_cos", cos[n], c.arrays[f"{name}_cos"][n], allowed)
            c.expect(f"{name}_sin", sin[n], c.arrays[f"{name}_sin"][n], allowed)


@case(r"p-RoPE", "q", "out", "inv_freq")
def proportional(c):
    stretch = {"rope_type": "proportional", "partial_rotary_factor": c.meta["p"]}
    options = {"base": c.meta["base"], "stretch": stretch}
    q, k, v = c.leaves("q", "k", "v")
    frequencies, _, _ = c.library.tables.stretched_frequencies(q.size(3), **options)
    expect_frequencies(c, "inv_freq", frequencies)
    for name in "qk":
        rotated = c.library.rotate(c.tensor(name), torch.arange(q.size(2)), **options)
        c.expect(f"{name}_rot", rotated, c.arrays[f"{name}_rot"])
    c.expect_out(c.attention(q, k, v, method="rope", **options))


@case(r"logn attention query scale", "pos", "rerope")
def logn(c):
    for n, length in enumerate(c.arrays["L"]):
        for law, names in (("logn", ("rerope", "qwen1")), ("logn-unclipped", ("unclipped",))):
            got = c.library.tables.query_factors(c.arrays["pos"], law, int(length))
            for name in names:
                c.expect(name, got, c.arrays[name][n], 1e-14)


@case(r"Scalable-Softmax", "n", "log_n")
def ssmax(c):
    c.expect("log_n", c.library.tables.query_factors(c.arrays["n"] - 1, "ssmax"),
             c.arrays["log_n"], 1e-14)
    # In attention, queries are multiplied by ln n and by a trained factor per head.
    generator = torch.Generator().manual_seed(1)
    q, k, v = torch.randn(3, 1, 2, 5, 4, generator=generator, dtype=torch.float64).to(c.dtype)
    scale = torch.tensor([0.5, 0.2], dtype=c.dtype)
    got = c.attention(q, k, v, method="rope", query_scale="ssmax", parameters=[scale])
    rows = torch.arange(1, 6).double().log().to(c.dtype)[:, None] * scale[:, None, None]
    c.expect("attended", got, c.attention(q * rows, k, v, method="rope"))


@case(r"position dependent query temperature", "pos", "llama4")
def temperature(c):
    factors, rows = c.library.tables.query_factors, c.arrays["pos"]
    length, strength = int(c.meta["floor_scale"]), c.meta["attn_scale"]
    c.expect("llama4", factors(rows, "llama4", length, strength), c.arrays["llama4"], 1e-14)
    c.expect("ministral3_beta0_1_orig8192", factors(rows, "ministral", 8192, 0.1),
             c.arrays["ministral3_beta0_1_orig8192"], 1e-14)


def config_of(given):
    """A complete Hugging Face configuration from that of a case. Some cases have only its parts,
    and none has the defaults of the configuration class."""
    if "rope_scaling" in given or "rope_parameters" in given:
        return filled_in(given)
    sizes = ("head_dim", "hidden_size", "num_attention_heads", "max_position_embeddings",
             "qk_rope_head_dim", "model_type")
    config = {name: given[name] for name in sizes if name in given}
    if "dim" in given:
        config["head_dim"] = given["dim"]
    rope = {k: v for k, v in given.items() if k not in sizes and k not in ("dim", "base")}
    if "base" in given:
        rope["rope_theta"] = given["base"]
    rope.setdefault("rope_type", rope.pop("type", "default"))
    return filled_in(config | {"rope_parameters": rope})


def filled_in(config):
    """Adds a missing head size by the rule of ROPE_INIT_FUNCTIONS, and values for the channels
    and layers that the case does not use."""
    filled = dict(config)
    if not filled.keys() & {"head_dim", "qk_rope_head_dim"} and "num_attention_heads" in filled:
        filled["head_dim"] = filled["hidden_size"] // filled["num_attention_heads"]
    if "qk_rope_head_dim" in filled:
        filled.setdefault("qk_nope_head_dim", 128)
    if filled.get("model_type", "").startswith("gemma3"):
        filled.setdefault("rope_local_base_freq", 10000.0)
    return filled


@case(r"inv_freq and attention factor of published rope_scaling blocks")
def published(c):
    for key, entry in c.meta["configs"].items():
        length = int(key.split("@seq")[1]) if "@seq" in key else 1
        config = json.dumps(config_of(entry["config"]))
        frequencies, gain, score = c.library.tables.config_frequencies(config, length=length)
        expect_frequencies(c, f"{key}|inv_freq", frequencies, tolerance=1e-13)
        c.expect("attention_factor", number(gain), number(entry["attention_factor"]),
                 1e-14)
        if "softmax_scale_multiplier" in entry:
            c.expect("softmax_scale_multiplier", number(score),
                     number(entry["softmax_scale_multiplier"]), 1e-14)
