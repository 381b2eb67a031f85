"""Scalar biases: ALiBi, KERPLE, Sandwich, FIRE, the gates of FoX."""

import numpy
import torch

from sextant.conformance.case import case


def visibility(c):
    """The positions of a case: causal if it has a mask; the last query is at the last key."""
    return {"causal": "mask" in c}


def attend(c, method, parameters=(), names=("q", "k", "v"), **options):
    q, k, v = c.leaves(*names)
    return c.attention(q, k, v, method=method, parameters=list(parameters), **visibility(c),
                       **options)


@case(r"ALiBi (causal$|symmetric)", "q", "out")
def alibi(c):
    if "slopes" in c:
        slopes = c.library.tables.alibi_slopes(len(c.arrays["slopes"]))
        c.expect("slopes", slopes, c.arrays["slopes"])
    c.expect_out(attend(c, "alibi"))


@case(r"ALiBi causal with gradient", "slopes", "d_slopes")
def alibi_trained(c):
    c.expect_out(attend(c, "alibi", [c.leaf("slopes")], train="one"))


@case(r"ALiBi asymmetric", "slopes_left", "slopes_right")
def alibi_two_sided(c):
    slopes = c.leaves("slopes_left", "slopes_right")
    c.expect_out(attend(c, "alibi", slopes, train="two"))


@case(r"BLOOM ALiBi with left padding", "attention_mask")
def alibi_left_padding(c):
    q, k, v = c.leaves("q", "k", "v")
    not_padding = torch.from_numpy(c.arrays["attention_mask"]) != 0
    mask = not_padding[:, None, None, :]
    real = not_padding[:, None, :, None]  # golden results of padding queries are arbitrary
    for flavour in ("paper", "bloom"):
        out = c.attention(q, k, v, method="alibi", mask=mask, flavour=flavour)
        c.expect(f"out ({flavour})", out * real, torch.from_numpy(c.arrays["out"]) * real)


@case(r"Falcon-RW ALiBi", "q", "out")
def alibi_falcon(c):
    q, k, v = c.leaves("q", "k", "v")
    c.expect_out(c.attention(q, k, v, method="alibi", flavour="falcon"))


@case(r"ALiBi slopes for n heads", "slopes")
def alibi_slopes(c):
    for name, max_bias, tolerance in (("slopes", 8, 1e-15), ("slopes_ggml", 8, 1e-15),
                                      ("slopes_bloom", 8, 2**-23), ("slopes_mpt_max8", 8, 2**-23),
                                      ("slopes_mpt_max16", 16, 2**-23)):
        table = c.arrays[name]
        got = numpy.zeros_like(table)
        for heads in range(1, table.shape[0]):
            got[heads, :heads] = c.library.tables.alibi_slopes(heads, max_bias)
        c.expect(name, got, table, tolerance)


@case(r"ALiBi position interpolation", "slopes_interp")
def alibi_interpolation(c):
    slopes, lengths = c.arrays["slopes"], c.arrays["L"]
    train = int(c.arrays["L_train"])
    got = [c.library.tables.alibi_slopes(len(slopes), 8, train, int(n)) for n in lengths]
    c.expect("slopes_interp", torch.stack(got), c.arrays["slopes_interp"], 1e-15)
    # The method does the same for sequences longer than the training length.
    q, k = torch.zeros(1, len(slopes), 1, 8), torch.zeros(1, len(slopes), 2 * train, 8)
    v = torch.arange(2.0 * train).expand(1, len(slopes), 1, -1).transpose(2, 3)
    q, k, v = q.to(c.dtype), k.to(c.dtype), (v / (2 * train)).contiguous().to(c.dtype)
    out = c.attention(q, k, v, method="alibi", interpolation="dynamic", train_length=train)
    bias = torch.from_numpy(slopes / 2)[:, None] * torch.arange(2.0 * train, dtype=torch.float64)
    expected = (bias.softmax(-1)[None, :, None] @ v.double()).squeeze(2)
    c.expect("dynamic", out.squeeze(2), expected)


@case(r"error of BLOOM ALiBi tensor when built in bf16", "max_abs_err")
def alibi_bfloat16(c):
    """The error of the key-position form in bfloat16, recomputed from our slopes."""
    slopes = c.library.tables.alibi_slopes(len(c.arrays["slopes"]))
    c.expect("slopes", slopes, c.arrays["slopes"], 1e-15)
    keys = torch.arange(4096)
    built = (slopes.bfloat16()[:, None] * keys.bfloat16()).double()
    exact = slopes[:, None] * keys
    c.expect("max_abs_err", (built - exact).abs().amax(1), c.arrays["max_abs_err"], 1e-12)
    c.expect("n_zero_steps", (built.diff(dim=1) == 0).sum(1), c.arrays["n_zero_steps"], 0)


KERPLE_FORMS = {"_ap_": "bias", "__ap": "weight", "_ap_ap": "bias-and-weight"}


@case(r"KERPLE code path .original. = ALiBi", "q", "out")
def kerple_original(c):
    """The power 1 with ALiBi's slopes. The code clamps them like its own parameters, so it is not
    quite ALiBi."""
    slopes = c.library.tables.alibi_slopes(c.arrays["q"].shape[1]).to(c.dtype).view(-1, 1, 1)
    c.expect_out(attend(c, "kerple-power", [torch.ones_like(slopes), slopes]))


@case(r"KERPLE log", "bias_p", "bias_a")
def kerple_log(c):
    c.expect_out(attend(c, "kerple-log", c.leaves("bias_p", "bias_a")))


@case(r"KERPLE power(:| bias| .weight)")
def kerple_power(c):
    form = KERPLE_FORMS[c.meta["pos_emb_option"].removeprefix("kerple_power")]
    names = [n for n in ("bias_p", "bias_a", "wei_p", "wei_a") if n in c]
    c.expect_out(attend(c, "kerple-power", c.leaves(*names), form=form))


@case(r"KERPLE (log|power) symmetric", "r1", "r2")
def kerple_symmetric(c):
    log = c.meta["method"].startswith("KERPLE log")
    p, a = c.leaves("r1", "r2") if log else c.leaves("r2", "r1")
    pair = [p.view(-1, 1, 1), a.view(-1, 1, 1)]
    c.expect_out(attend(c, "kerple-log" if log else "kerple-power", pair))


def first_index(method_name):
    return 1 if "i=1" in method_name else 0


@case(r"Sandwich (causal|symmetric)", "q", "out")
def sandwich(c):
    options = {"sinusoid_width": c.meta["dbar"], "first_index": first_index(c.meta["method"])}
    q, k, v = c.leaves("q", "k", "v")
    distances = torch.arange(q.size(2))[:, None] - torch.arange(k.size(2))
    bias = c.library.tables.sandwich_bias(distances.flatten(), q.size(1), **options)
    if "bias" in c:
        c.expect("bias", bias.view(c.arrays["bias"].shape), c.arrays["bias"], 1e-12)
    c.expect_out(attend(c, "sandwich", **options))


@case(r"FIRE:", "mlp_0_weight", "bias")
def fire(c):
    names = ("c", "L_multiplier", "mlp_0_weight", "mlp_0_bias", "mlp_2_weight", "mlp_2_bias")
    options = {"threshold": float(c.meta["init_L"])}
    hidden = c.arrays["mlp_0_bias"].shape[0]
    c.expect_out(attend(c, "fire", c.leaves(*names), hidden=hidden, **options))


@case(r"Forgetting attention \(FoX\)", "fgate_logit", "out")
def fox(c):
    """The tensors of the case are [batch, length, heads, ...]."""
    q, k, v = (x.transpose(1, 2) for x in c.leaves("q", "k", "v"))
    gates = c.leaf("fgate_logit").unflatten(2, (k.size(1), -1)).transpose(1, 2)
    window = c.meta.get("window")
    name, options = ("window", {"of": "fox", "window": window}) if window else ("fox", {})
    heads, width = q.size(1), q.size(1) * q.size(3)
    unread = [torch.zeros(heads, width, dtype=c.dtype), torch.zeros(heads, dtype=c.dtype)]
    k = torch.cat((k, gates), 3)
    out = c.attention(q, k, v, method=name, parameters=unread, **options)
    c.expect_out(out.transpose(1, 2))


@case(r"Sandwich bias table", "distance", "bias_i1")
def sandwich_tables(c):
    table = c.library.tables.sandwich_bias
    distance, small = c.arrays["distance"], c.arrays["distance_small"]
    heads = c.meta["heads"]
    for first in (0, 1):
        c.expect(f"bias_i{first}", table(distance, heads, c.meta["dbar"], first),
                 c.arrays[f"bias_i{first}"], 1e-12)
        c.expect(f"small_i{first}", table(small, 5, 16, first),
                 c.arrays[f"small_dbar16_h5_i{first}"], 1e-12)
    # NeMo's bias differs by a constant per head, which cancels in softmax.
    shift = c.arrays["bias_i1"] - c.arrays["bias_nemo"]
    shifted = table(distance, heads, c.meta["dbar"], 1) - shift[:, :1]
    c.expect("bias_nemo", shifted, c.arrays["bias_nemo"], 1e-12)
