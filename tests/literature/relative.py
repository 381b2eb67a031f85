"""Encodings by distance: vectors and biases."""
import torch

import sextant
from common import (HEAD_DIM, HEADS, LENGTH, check, dense, distance, equal, expect, gathered, made,
                    operands, products, random)
from scores import Layer, constant

ROOT_D = HEAD_DIM**0.5


@check
def clipped_tables():
    """Shaw: vectors by clip(j - i) on keys and values; clip(i - j) is the table upside down."""
    q, k, v = operands()
    method = made("shaw", clip=3)
    on_keys, on_values = method.tensors()
    rows = (-distance()).clamp(-3, 3) + 3
    scores = (products(q, k) + gathered(q, on_keys, rows)) / ROOT_D
    found = method(q, k, v, causal=False)
    reversed_rows = distance().clamp(-3, 3) + 3
    upside_down = dense((products(q, k) + gathered(q, on_keys.flip(0), reversed_rows)) / ROOT_D, v,
                        False, on_values.flip(0)[reversed_rows])
    return [("difference", equal(found, dense(scores, v, False, on_values[rows]), 1e-13)),
            ("with clip(i - j) and reversed tables", equal(found, upside_down, 1e-13))]


@check
def clipped_sinusoids():
    """NEZHA: Shaw with fixed sinusoids, on values too."""
    q, k, v = operands()
    table = sextant.tables.sinusoid(range(-64, 65), HEAD_DIM)
    rows = (-distance()).clamp(-64, 64) + 64
    scores = (products(q, k) + gathered(q, table, rows)) / ROOT_D
    found = sextant.attention(q, k, v, "nezha", causal=False, options={"flavour": "paper"})
    return [("difference", equal(found, dense(scores, v, False, table[rows]), 1e-13))]


@check
def transformer_xl():
    """Equation (8) of the notes, and a segment behind its memory."""
    q, k, v = operands()
    method = made("transformer-xl")
    u, bias, w = method.tensors()
    rows = sextant.tables.sinusoid(range(LENGTH), HEADS * HEAD_DIM, "concatenated")
    vectors = (rows @ w.T).view(LENGTH, HEADS, HEAD_DIM).transpose(0, 1)
    index = distance().clamp(min=0).expand(1, HEADS, -1, -1)
    by_row = torch.gather((q + bias[:, None]) @ vectors.transpose(1, 2), 3, index)
    scores = (products(q + u[:, None], k) + by_row) / ROOT_D
    found = method(q, k, v)
    behind = method(q[:, :, 8:], k, v)  # 8 rows of memory
    return [("difference", equal(found, dense(scores, v), 1e-13)),
            ("the rows behind a memory of 8", equal(behind, found[:, :, 8:], 1e-13))]


@check
def matrices_on_u_and_v():
    """u W_q, as some notes print it, is another vector than u."""
    w_q = random(HEAD_DIM, HEAD_DIM) / 4
    u = random(HEAD_DIM)
    expect(float((u @ w_q - u).abs().max()) > 0.1, "W_q changed nothing")
    return [("largest difference of u W_q and u", float((u @ w_q - u).abs().max()))]


@check
def tener():
    """TENER: (q_i + c) k_j + (q_i + p) R[i - j], without 1/sqrt(d)."""
    q, k, v = operands()
    method = made("tener", flavour="paper")
    c, p = method.tensors()
    table = sextant.tables.sinusoid(range(-LENGTH, LENGTH), HEAD_DIM)
    rows = distance() + LENGTH
    scores = products(q + c[:, None], k) + gathered(q + p[:, None], table, rows)
    return [("difference", equal(method(q, k, v, causal=False), dense(scores, v, False), 1e-12)),
            ("R[3] - R[-3] in its sines",
             float((table[LENGTH + 3] - table[LENGTH - 3]).abs().max()))]


@check
def t5_bias():
    """T5 adds a scalar: its equation (9) wants + where the notes print =."""
    q, k, v = operands()
    method = made("t5")
    rows = sextant.tables.t5_buckets(distance(), bidirectional=True)
    bias = method.tensors()[0][rows].permute(2, 0, 1)
    found = method(q, k, v, causal=False)
    return [("difference", equal(found, dense(products(q, k) + bias, v, False), 1e-13))]


@check
def t5_buckets():
    """f(8) = 8: each distance below 8 (both directions) or 16 (causal) has its own bucket."""
    both = sextant.tables.t5_buckets(range(20)).tolist()
    causal = sextant.tables.t5_buckets(range(20), bidirectional=False).tolist()
    expect(both[:9] == list(range(9)) and both[9] == 8, f"both directions: {both}")
    expect(causal[:17] == list(range(17)) and causal[17] == 16, f"causal: {causal}")
    return [("both directions, distances 0 to 19", str(both)), ("causal", str(causal))]


def _deberta(q, k, method, both_rows):
    """Content and position in both directions with a row for each distance of the last term."""
    p = method.tensors()[0]
    rows = (distance() + 4).clamp(0, 7)
    position_rows = rows if both_rows else (4 - distance()).clamp(0, 7)
    names = [spec["name"] for spec in method.specs]
    tensors = dict(zip(names, method.tensors()))

    def projected(name):
        weight = next(t for n, t in tensors.items() if n.endswith(f"{name}.weight"))
        bias = next((t for n, t in tensors.items() if n.endswith(f"{name}.bias")), 0)
        return (p @ weight.T + bias).view(8, HEADS, HEAD_DIM).transpose(0, 1)

    def gather(x, table, index):
        return torch.gather(x @ table.transpose(1, 2), 3, index.expand(1, HEADS, -1, -1))
    on_keys = gather(q, projected("pos_proj"), rows)
    on_queries = gather(k, projected("pos_q_proj"), position_rows.T).transpose(2, 3)
    return (products(q, k) + on_keys + on_queries) / (3 * HEAD_DIM) ** 0.5


@check
def deberta():
    """DeBERTa has three terms over sqrt(3d); paper and codes differ in the last term's row."""
    q, k, v = operands()
    found = []
    for flavour, both_rows in (("hugging-face", True), ("paper", False)):
        method = made("deberta", version=1, max_positions=4, flavour=flavour)
        scores = _deberta(q, k, method, both_rows)
        found.append((flavour, equal(method(q, k, v, causal=False), dense(scores, v, False),
                                     1e-13)))
    return found


@check
def variance_of_three_terms():
    """Three terms of independent vectors have the variance 3d, which sqrt(3d) takes away; of shared
    ones each pair of terms adds a covariance."""
    d, draws = 64, 30_000
    q, k, r, s = (random(draws, d) for _ in range(4))
    apart = (q * k).sum(1) + (q * r).sum(1) + (s * k).sum(1)
    shared = (q * k).sum(1) + 2 * (q * r).sum(1)  # if the third term repeated the second
    expect(abs(float(apart.var()) / (3 * d) - 1) < 0.03, "the variance is not 3d")
    return [("variance of three independent terms, of 3d", float(apart.var()) / (3 * d)),
            ("if the third term repeated the second", float(shared.var()) / (3 * d))]


@check
def kerple_and_alibi():
    """kerple-power with p = 1 is ALiBi, but the official clamp a >= 0.01 ends above two slopes."""
    slopes = sextant.tables.alibi_slopes(8)
    q, k = random(1, 8, LENGTH, HEAD_DIM), random(1, 8, LENGTH, HEAD_DIM)
    v = random(1, 8, LENGTH, HEAD_DIM)
    alibi = sextant.attention(q, k, v, "alibi")
    method = sextant.method("kerple-power", heads=8, head_dim=HEAD_DIM, train_length=LENGTH,
                            dtype=torch.float64).requires_grad_(False)
    method.bias_p.fill_(1)
    method.bias_a.copy_(slopes.view_as(method.bias_a))
    off = (method(q, k, v) - alibi).abs().amax((0, 2, 3))
    expect(bool((off[:6] < 1e-13).all() and (off[6:] > 1e-4).all()), f"off by {off}")
    return [("heads 1 to 6 of 8, difference", float(off[:6].max())),
            ("heads 7 and 8, of slopes 1/128 and 1/256", float(off[6:].max()))]


@check
def equation_1_2():
    """The notes' equation 1.2 is DeBERTa v3 with shared projections, up to its scale."""
    d = HEADS * HEAD_DIM
    x, w_q, w_k = random(LENGTH, d), random(d, d) / 8, random(d, d) / 8
    v = operands()[2]
    method = made("deberta", version=3, buckets=0, norm=False, max_positions=LENGTH)
    for name, parameter in method.named_parameters():
        if "key_proj" in name or "query_proj" in name:
            weight = w_k if "key_proj" in name else w_q
            parameter.data = weight.T.contiguous() if "weight" in name else torch.zeros(d).double()
    p = method.tensors()[0]
    rows = (distance() + LENGTH).clamp(0, 2 * LENGTH - 1)

    def heads(y):
        return y.view(-1, HEADS, HEAD_DIM).transpose(0, 1)[None]
    q, k, p_q, p_k = (heads(y) for y in (x @ w_q, x @ w_k, p @ w_q, p @ w_k))
    index = rows.expand(1, HEADS, -1, -1)
    scores = (products(q, k) + torch.gather(products(q, p_k), 3, index)
              + torch.gather(products(k, p_q), 3, index.transpose(2, 3)).transpose(2, 3))
    return [("difference", equal(method(q, k, v, causal=False),
                                 dense(scores / (3 * HEAD_DIM) ** 0.5, v, False), 1e-12))]


@check
def alibi():
    """ALiBi: - m_h |i - j| both ways; with the causal mask keys in the future have weight 0."""
    q, k, v = operands()
    slopes = sextant.tables.alibi_slopes(HEADS)[:, None, None]
    scores = products(q, k) / ROOT_D - slopes * distance().abs()
    zero = scores.masked_fill(distance() < 0, 0)  # the notes' "0 else", taken literally
    found = sextant.attention(q, k, v, "alibi")
    literal = float((dense(zero, v, False) - found).abs().max())
    expect(literal > 0.1, "a score of 0 would hide the future too")
    return [("causal, difference", equal(found, dense(scores, v), 1e-14)),
            ("both ways", equal(sextant.attention(q, k, v, "alibi", causal=False),
                                dense(scores, v, False), 1e-14)),
            ('"0 else", taken literally, is off by', literal)]


@check
def alibi_slopes():
    """8 heads have the slopes 1/2, 1/4, ... 1/256."""
    expected = torch.tensor([2.0**-h for h in range(1, 9)], dtype=torch.float64)
    return [("difference", equal(sextant.tables.alibi_slopes(8), expected, 0))]


@check
def kerple():
    """KERPLE: - r1 |i - j|^r2 and - r1 ln(1 + r2 |i - j|)."""
    q, k, v = operands()
    result = []
    for name, bias in (("kerple-log", lambda p, a, d: -p * (1 + a * d).log()),
                       ("kerple-power", lambda p, a, d: -a * d**p)):
        method = made(name)
        for parameter in method.parameters():
            parameter.data = parameter.data.abs() + 0.1
        p, a = (getattr(method, f"bias_{each}")[:, :] for each in "pa")
        scores = products(q, k) / ROOT_D + bias(p, a, distance().abs().double())
        result.append((name, equal(method(q, k, v), dense(scores, v), 1e-13)))
    return result


@check
def sandwich():
    """Sandwich: + lambda p_i . p_j, with lambda_h = heads / (8 (h + 1))."""
    q, k, v = operands()
    p = sextant.tables.sinusoid(range(LENGTH), 128)
    strength = HEADS / (8 * torch.arange(1, HEADS + 1, dtype=torch.float64))
    scores = products(q, k) / ROOT_D + strength[:, None, None] * (p @ p.T)
    found = sextant.attention(q, k, v, "sandwich", options={"first_index": 0})
    return [("difference", equal(found, dense(scores, v), 1e-13))]


@check
def direction():
    """ALiBi's scores are the same on both sides of a query, Shaw's and T5's are not."""
    result = []
    for name, sees in (("alibi", False), ("kerple-log", False), ("sandwich", False),
                       ("shaw", True), ("t5", True), ("tener", True)):
        x = constant(17, 6)
        row = Layer(name).scores(x, x, causal=False)[:, 8]
        difference = float((row - row.flip(1)).abs().max())
        expect((difference > 1e-9) == sees, f"{name}: sides differ by {difference:.3g}")
        result.append((f"{name}, left minus right", difference))
    return result
