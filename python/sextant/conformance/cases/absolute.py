"""Absolute encodings: terms added to the input, or to queries, keys and values."""

import numpy
import torch
from torch.nn.functional import embedding, layer_norm

from sextant.conformance.case import NotCovered, case


@case(r"learned_absolute", "position_ids")
def learned(c):
    """Rows of a table by position; the model's token embeddings and LayerNorm are torch's."""
    bert = "type_emb" in c
    rows = c.leaf("pos_emb")
    x = embedding(c.tensor("input_ids"), c.leaf("tok_emb"), padding_idx=0 if bert else None)
    if bert:
        x = x + c.leaf("type_emb")[c.tensor("token_type_ids")]
    method = c.library.method("learned", heads=1, head_dim=x.size(2), train_length=rows.size(0))
    sequences = []
    for sequence, positions in zip(x, numpy.broadcast_to(c.arrays["position_ids"], x.shape[:2])):
        first = int(positions[0])
        if not numpy.array_equal(positions, first + numpy.arange(len(positions))):
            raise NotCovered("positions that are not consecutive")
        sequences.append(embed_with(method, sequence[None], [rows], first_query=first))
    x = torch.cat(sequences)
    c.expect("pre_ln", x, c.arrays["pre_ln"])
    c.expect_out(layer_norm(x, x.shape[-1:], c.leaf("ln_w"), c.leaf("ln_b"), c.meta["ln_eps"]))


def embed_with(method, x, parameters, **arguments):
    """Runs ``embed`` of a method with the tensors of the case as its parameters."""
    return torch.ops.sextant.method_embed(method.name, method.shape, method.options,
                                          list(parameters), x, **arguments)


@case(r"hierarchical_decomposition")
def hierarchical(c):
    x, table = c.leaves("x", "pos_emb")
    n, alpha = c.meta["n"], c.meta["alpha"]
    method = c.library.method("hierarchical", heads=1, head_dim=x.size(2), rows=n, alpha=alpha)
    zeros = torch.zeros(1, n * n, x.size(2), dtype=c.dtype)
    all_rows = embed_with(method, zeros, [table])[0]
    ids = c.tensor("position_ids").reshape(-1)
    q = all_rows[ids].reshape(*c.arrays["q"].shape)
    c.expect("q", q, c.arrays["q"])
    c.expect_out(x + q)


@case(r"sinusoidal", "interleaved_d8")
def sinusoidal_tables(c):
    tables = c.library.tables
    for name, rows in c.arrays.items():
        kind, _, rest = name.partition("_")
        if not rest.startswith("d") or not rest[1:].isdigit() or rows.ndim != 2:
            continue
        layout = {"interleaved": "interleaved", "concat": "concatenated", "t2t": "tensor2tensor"}
        if kind in layout:
            got = tables.sinusoid(range(len(rows)), int(rest[1:]), layout[kind])
            c.expect(name, got, rows)
    for name in [n for n in c.arrays if n.startswith("concat_txl_d")]:
        rows = c.arrays[name]
        c.expect(name, tables.sinusoid(range(len(rows)), rows.shape[1], "concatenated"), rows)
    for name in [n for n in c.arrays if n.startswith("fairseq_padidx1_d")]:
        rows = c.arrays[name]
        got = tables.sinusoid(range(len(rows)), rows.shape[1], "tensor2tensor")
        got[1] = 0
        c.expect(name, got, rows)
        method = c.library.method("sinusoidal", heads=1, head_dim=rows.shape[1], layout="fairseq")
        zeros = torch.zeros(1, len(rows) - 2, rows.shape[1], dtype=torch.float64)
        c.expect(f"{name} from the first token on", embed_with(method, zeros, [])[0], rows[2:])
    if "fairseq_mask_tokens" in c:
        token_ids = c.tensor("fairseq_mask_tokens")
        method = c.library.method("sinusoidal", heads=1, head_dim=8, layout="fairseq",
                                  padding_idx=0)
        zeros = torch.zeros(*token_ids.shape, 8, dtype=torch.float64)
        got = embed_with(method, zeros, [], token_ids=token_ids)
        expected = c.arrays["fairseq_mask_out_d8"]
        c.expect("fairseq_mask_out_d8", got, expected, tolerance=2.0**-24)  # a float32 table
    if "large_positions" in c:
        got = tables.sinusoid(c.arrays["large_positions"], 8)
        c.expect("large_interleaved_d8_exact", got, c.arrays["large_interleaved_d8_exact"])
    if "interleaved_d8_base500" in c:
        rows = c.arrays["interleaved_d8_base500"]
        got = tables.sinusoid(range(len(rows)), 8, max_timescale=500)
        c.expect("interleaved_d8_base500", got, rows)
    if "t2t_d8_start5_len4" in c:
        got = tables.sinusoid(range(5, 9), 8, "tensor2tensor")
        c.expect("t2t_d8_start5_len4", got, c.arrays["t2t_d8_start5_len4"])
    if "t2t_d8_min2_max100" in c:
        rows = c.arrays["t2t_d8_min2_max100"]
        got = tables.sinusoid(range(len(rows)), 8, "tensor2tensor", 100, 2)
        c.expect("t2t_d8_min2_max100", got, rows)
    if "gram_interleaved_d32" in c:
        rows = tables.sinusoid(range(len(c.arrays["gram_interleaved_d32"])), 32)
        c.expect("gram_interleaved_d32", rows @ rows.T, c.arrays["gram_interleaved_d32"])
        squares = torch.cdist(rows, rows) ** 2
        c.expect("sqdist_interleaved_d32", squares, c.arrays["sqdist_interleaved_d32"])


@case(r"sinusoidal", "x", "out")
def sinusoidal_added(c):
    x = c.leaf("x")
    method = c.library.method("sinusoidal", heads=1, head_dim=x.size(-1),
                              token_scale=x.size(-1) ** 0.5)
    c.expect_out(embed_with(method, x, []))


@case(r"clock and binary", "positions", "clock")
def clock_binary(c):
    tables, positions = c.library.tables, c.arrays["positions"]
    c.expect("clock", tables.clock(positions), c.arrays["clock"])
    c.expect(
        "clock_as_written",
        tables.clock(positions, (1, 3600, 43200)),
        c.arrays["clock_as_written"],
        tolerance=1e-10,  # the golden array is computed from rounded angles 2 pi k; ours are exact
    )
    ratios = {"as_written": 3600.0**2, "step1": 3600.0, "div_d": 3600.0 ** (2 / 8)}
    for name, ratio in ratios.items():
        key = f"alien_{name}"
        c.expect(key, tables.alien_clock(positions, ratio, 4), c.arrays[key])
    c.expect("binary01", tables.binary(positions, 8), c.arrays["binary01"])
    c.expect("binary_pm1", tables.binary(positions, 8, signs=True), c.arrays["binary_pm1"])


@case(r"recursive", "p", "p0", "W")
def recursive_tanh(c):
    p0, weight, bias = c.leaves("p0", "W", "b")
    c.expect_out(c.library.tables.tanh_positions(p0, weight, bias, len(c.arrays["p"])), name="p")


@case(r"recursive", "param_weight_ih_l0")
def recursive_gru(c):
    names = [f"param_{kind}_l{layer}" for layer in (0, 1)
             for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
    p = c.library.tables.gru_positions(c.leaf("p0"), c.leaves(*names), len(c.arrays["p"]))
    c.expect_out(p, name="p")
    expect_parameter_gradients(c, p, names)


def expect_parameter_gradients(c, p, names, prefix="grad_", tolerance=None):
    """Compares the gradient of each parameter param_X with the array grad_X (for this prefix)."""
    wanted = [n for n in names if f"{prefix}{n.removeprefix('param_')}" in c]
    loss = (p * c.tensor("g")).sum()
    for name, grad in zip(wanted, torch.autograd.grad(loss, c.leaves(*wanted), retain_graph=True)):
        key = f"{prefix}{name.removeprefix('param_')}"
        c.expect(key, grad, c.arrays[key], tolerance)


@case(r"floater_ode")
def floater(c):
    linear = c.meta["flow"] == "flow_func_linear"
    kinds = ("0.linear", "2.linear") if linear else ("0.conv", "2.conv_tr")
    names = [f"param_layers.{kind}.{part}" for kind in kinds for part in ("weight", "bias")]
    flow = "linear" if linear else "convolution"
    length = len(c.arrays["p"])
    for gradient, prefix in (("solver", "grad_"), ("adjoint", "gradadj_")):
        p = c.library.tables.floater_positions(c.leaf("p0"), c.leaves(*names), length, flow,
                                               gradient)
        c.expect(f"p ({gradient})", p, c.arrays["p"])
        # The official adjoint itself differs by 1e-8 from the derivative of its solver.
        tolerance = 1e-7 if gradient == "adjoint" and c.dtype == torch.float64 else None
        expect_parameter_gradients(c, p, ["p0", *names], prefix, tolerance)


@case(r"floater_attention")
def floater_attention(c):
    """Tests where the biases, which the case contains, are added."""
    x, w_in, w_out, b_out = c.leaves("x", "in_proj_w", "out_w", "out_b")
    heads = c.meta["H"]
    parts = []
    for part, weight in zip("qkv", w_in.chunk(3)):
        y = x @ weight.T + c.leaf(f"bias_{part}")[:, None]
        parts.append(y.view(*y.shape[:2], heads, -1).permute(1, 2, 0, 3))
    out = c.attention(*parts, method="none", causal=bool(c.meta["causal"]))
    out = out.permute(2, 0, 1, 3).flatten(2)
    c.expect_out(out @ w_out.T + b_out)


@case(r"complex_order embedding")
def complex_embedding(c):
    """Tests the function of token ids and positions, and the method whose parameters are the
    tables."""
    ids, positions = c.tensor("input_ids"), c.tensor("positions")
    tables = c.leaves(*(n for n in ("r", "w", "theta") if n in c))
    vocabulary, width = c.arrays["r"].shape
    first = int(positions[0, 0])
    if not torch.equal(positions, (first + torch.arange(ids.size(1))).expand_as(ids)):
        raise NotCovered("positions that are not consecutive")

    def sharing(name):
        if name not in c:
            return "none"
        shape = c.arrays[name].shape
        return "component" if len(shape) == 1 else "word" if shape[1] == 1 else "word-and-component"

    method = c.library.method("complex", heads=1, head_dim=2 * width, amplitude="word",
                              frequency=sharing("w"), phase=sharing("theta"), vocabulary=vocabulary)
    zeros = torch.zeros(*ids.shape, 2 * width, dtype=c.dtype)
    embedded = embed_with(method, zeros, tables, first_query=first - 1, token_ids=ids)
    for re, im in (c.library.tables.complex_embedding(ids, positions, *tables),
                   embedded.chunk(2, -1)):
        c.expect("re", re, c.arrays["re"])
        c.expect("im", im, c.arrays["im"])
        c.expect_gradients((re * c.tensor("g_re")).sum() + (im * c.tensor("g_im")).sum())


@case(r"complex_order initial frequencies")
def complex_period(c):
    """Every token starts with the same frequencies; those of the padding token are zero."""
    table = c.arrays["table"]
    width = table.shape[1]
    method = c.library.method("complex", heads=1, head_dim=2 * width, dtype=torch.float64)
    start = method.tensors()[0].detach()
    rows = start.repeat(len(table), 1)
    rows[(table == 0).all(axis=1)] = 0
    c.expect("table", rows, table, tolerance=2.0**-24)


@case(r"complex attention")
def complex_attention(c):
    parts = {n: c.leaf(n) for n in ("q_re", "q_im", "k_re", "k_im", "v_re", "v_im")}
    q, k, v = (torch.cat([parts[f"{x}_re"], parts[f"{x}_im"]], -1)[:, None] for x in "qkv")
    mask = ~c.tensor("mask")[:, None] if "mask" in c else None
    d = c.arrays["v_re"].shape[-1]
    if c.meta["continue_complex"]:
        def weights_of(real, imaginary):
            queries = torch.cat([real, imaginary], -1)[:, None]
            return c.attention(queries, k, v, method="none", causal=False, mask=mask)[:, 0]

        by_re = weights_of(parts["q_re"], -parts["q_im"])
        by_im = weights_of(parts["q_im"], parts["q_re"])
        out_re = by_re[..., :d] - by_im[..., d:]
        out_im = by_re[..., d:] + by_im[..., :d]
    else:
        method = c.library.method("complex", heads=1, head_dim=2 * d, dtype=c.dtype)
        out = method(q, k, v, causal=False, mask=mask)[:, 0]
        out_re, out_im = out[..., :d], out[..., d:]
    c.expect("out_re", out_re, c.arrays["out_re"])
    c.expect("out_im", out_im, c.arrays["out_im"])
    c.expect_gradients((out_re * c.tensor("g_re")).sum() + (out_im * c.tensor("g_im")).sum())
