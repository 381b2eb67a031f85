"""RoPE, its relatives, stretches and masks."""
import math

import torch

import sextant
from common import (HEAD_DIM, LENGTH, check, dense, distance, equal, expect, operands, products)

ROOT_D = HEAD_DIM**0.5


def _rotated(x, positions, frequencies):
    """Rotates neighbouring pairs of channels of x [1, heads, rows, d] as complex numbers."""
    pairs = torch.view_as_complex(x.unflatten(3, (-1, 2)).contiguous())
    rotated = pairs * torch.exp(1j * positions.double()[:, None] * frequencies)
    return torch.view_as_real(rotated).flatten(3)


def _rope_by_hand(q, k, v, frequencies, positions=None):
    positions = torch.arange(q.size(2)) if positions is None else positions
    q, k = (_rotated(x, positions, frequencies) for x in (q, k))
    return dense(products(q, k) / ROOT_D, v)


@check
def rope_forms():
    """RoPE: rotated vectors, complex numbers and the notes' sparse form agree; i - j decides."""
    q, k, v = operands()
    found = sextant.attention(q, k, v, "rope", options={"pairing": "interleaved"})
    frequencies = 10000.0 ** (-2 * torch.arange(HEAD_DIM // 2).double() / HEAD_DIM)
    angles = (torch.arange(LENGTH).double()[:, None] * frequencies).repeat_interleave(2, 1)

    def sparse(x):  # x * cos + (-x1, x0, -x3, x2, ...) * sin
        swapped = torch.stack((-x[..., 1::2], x[..., 0::2]), -1).flatten(-2)
        return x * angles.cos() + swapped * angles.sin()
    shifted = sextant.attention(q, k, v, "rope", options={"pairing": "interleaved"}, first_key=1000)
    return [("complex numbers, difference",
             equal(found, _rope_by_hand(q, k, v, frequencies), 1e-13)),
            ("sparse form", equal(found, dense(products(sparse(q), sparse(k)) / ROOT_D, v), 1e-13)),
            ("all positions shifted by 1000", equal(found, shifted, 1e-12))]


@check
def rope_base_1000():
    """base=1000 is the notes' 1000^(-2(i-1)/d); the paper has 10000 and counts from i = 1."""
    q, k, v = operands()
    frequencies = 1000.0 ** (-2 * torch.arange(HEAD_DIM // 2).double() / HEAD_DIM)
    found = sextant.attention(q, k, v, "rope",
                              options={"pairing": "interleaved", "base": 1000.0})
    first = float(sextant.tables.rope_frequencies(HEAD_DIM)[0])
    expect(first == 1, "the first pair is not rotated by one radian a position")
    return [("difference", equal(found, _rope_by_hand(q, k, v, frequencies), 1e-13)),
            ("first frequency of base 10000", first),
            ("with i - 1 counted from i = 0 it were", 10000 ** (2 / HEAD_DIM))]


@check
def rope_bound():
    """RoPE's bound, mean |S_i|, falls in waves; the score of equal vectors falls below zero."""
    frequencies = sextant.tables.rope_frequencies(128)
    d = torch.arange(0, 2049).double()
    rotated = torch.exp(1j * d[:, None] * frequencies)
    bound = rotated.cumsum(1).abs().mean(1)
    equal_vectors = rotated.real.mean(1)
    expect(bound[0] > 2 * bound[1024:].max(), "the bound does not fall")
    rises = int((bound[1:] > bound[:-1]).sum())
    return [(f"bound at distance {n}, of that at 0", float(bound[n] / bound[0]))
            for n in (16, 64, 256, 1024)] + [
        ("distances below 2048 at which it rises", str(rises)),
        ("least score of equal vectors, of that at 0", float(equal_vectors.min()))]


@check
def xpos_sides():
    """XPOS: zeta^(i - j) fades towards the past and grows towards the future."""
    q, k, v = operands()
    growth = sextant.tables.xpos_growth(HEAD_DIM, scale_base=4.0)
    frequencies = sextant.tables.rope_frequencies(HEAD_DIM)
    d = distance().double()[..., None]
    pairs = [torch.view_as_complex(x.unflatten(3, (-1, 2)).contiguous()) for x in (q, k)]
    factors = torch.exp(d * growth + 1j * d * frequencies)
    scores = torch.einsum("bhic,bhjc,ijc->bhij", pairs[0], pairs[1].conj(), factors).real / ROOT_D
    found = sextant.attention(q, k, v, "xpos", options={"scale_base": 4.0})
    return [("difference", equal(found, dense(scores, v), 1e-12)),
            ("slowest and fastest pair's factor for each position, scale_base 512",
             "{:.6f} {:.6f}".format(*sorted(sextant.tables.xpos_growth(HEAD_DIM).exp().tolist())
                                    [::HEAD_DIM // 2 - 1])),
            ("scale_base 4: the fastest pair, 64 positions ahead, times",
             float(torch.exp(-64 * growth.min())))]


@check
def interpolation():
    """PI divides all frequencies, and so all distances, by L_test / L_train."""
    plain = sextant.tables.rope_frequencies(64)
    pi = sextant.tables.stretched_frequencies(64, stretch="linear*4", train_length=128)[0]
    return [("difference from theta / 4", equal(pi, plain / 4, 1e-15))]


@check
def ntk():
    """NTK: k = s^(d/(d-2)), so that the last pair is interpolated exactly and the first not."""
    d, s = 64, 8
    k = s ** (d / (d - 2))
    plain = sextant.tables.rope_frequencies(d)
    found = sextant.tables.stretched_frequencies(d, stretch="ntk*8", train_length=128)[0]
    expected = (10000 * k) ** (-2 * torch.arange(d // 2).double() / d)
    return [("difference from (10000 k)^(-2i/d)", equal(found, expected, 1e-14)), ("k", k),
            ("last pair, times", float(found[-1] / plain[-1])),
            ("first pair, times", float(found[0] / plain[0]))]


@check
def ntk_neighbours():
    """PI makes neighbours look alike, since it lowers the high frequencies; NTK keeps these."""
    def score(stretch):
        options = {"stretch": f"{stretch}*8", "train_length": 128} if stretch else {}
        frequencies = (sextant.tables.stretched_frequencies(64, **options)[0] if options
                       else sextant.tables.rope_frequencies(64))
        return 1 - float(frequencies.cos().mean())
    found = [(name, score(stretch)) for name, stretch in
             (("rope", None), ("PI by 8", "linear"), ("NTK by 8", "ntk"))]
    expect(found[1][1] < 0.001 < found[2][1], f"{found}")
    return [(f"fall of the score from distance 0 to 1: {name}", value)
            for name, value in found]


@check
def values_not_rotated():
    """f_v(x_n, n) of C's derivation has no position in RoPE: with equal scores the values' mean
    comes out."""
    q, k, v = operands()
    mean = v.cumsum(2) / torch.arange(1, LENGTH + 1).view(-1, 1)
    return [("difference from the mean of the values",
             equal(sextant.attention(0 * q, k, v, "rope"), mean, 1e-14))]


@check
def yarn_rotations():
    """r_i = theta_i L_train / L_test makes equation (23) PI; theta_i L_train / 2 pi does not."""
    trained, tested, tau = 128, 1024, 32
    theta = sextant.tables.rope_frequencies(64)

    def gamma(r, tau):
        return ((r - 1) / (tau - 1)).clamp(0, 1)

    def equation_23(r, tau):
        return (gamma(r, tau) + (1 - gamma(r, tau)) * trained / tested) * theta
    literal = equation_23(theta * trained / tested, tau)
    found = []
    for tau in (32, 8):
        parts = {"rope_type": "by-parts", "factor": 8, "beta_fast": tau, "beta_slow": 1,
                 "original_max_position_embeddings": trained}
        library = sextant.tables.stretched_frequencies(64, stretch=parts)[0]
        r = theta * trained / (2 * math.pi)
        found += [(f"tau {tau}: by-parts, difference", equal(library, equation_23(r, tau), 1e-14)),
                  (f"tau {tau}: pairs kept, on the ramp",
                   f"{int((r >= tau).sum())}, {int(((r > 1) & (r < tau)).sum())}")]
    return [("literally: difference from PI", equal(literal, theta / 8, 1e-15)), *found]


@check
def yarn_gain():
    """The notes' YaRN has no temperature: that is by-parts; yarn multiplies by 0.1 ln s + 1."""
    parts, yarn = (
        sextant.tables.stretched_frequencies(64, stretch=f"{name}*8", train_length=128)[1]
        for name in ("by-parts", "yarn"))
    expect(float(parts) == 1, "by-parts has a gain")
    return [("gain of by-parts", float(parts)), ("of yarn", float(yarn)),
            ("0.1 ln 8 + 1", 0.1 * math.log(8) + 1)]


@check
def dynamic_scale():
    """Dynamic: s(pos) = max(L, pos + 1) / L, so nothing changes up to L."""
    plain = sextant.tables.rope_frequencies(64)
    result = []
    for length, s in ((64, 1), (128, 1), (512, 4)):
        frequencies = sextant.tables.stretched_frequencies(
            64, stretch="dynamic-linear", length=length, train_length=128)[0]
        result.append((f"{length} tokens, difference from theta / {s}",
                       equal(frequencies, plain / s, 1e-15)))
    return result


@check
def rerope():
    """(Leaky) ReRoPE in one pass is two score matrices put together; factor to infinity."""
    q, k, v = operands()
    window, d = 8, distance()
    frequencies = sextant.tables.rope_frequencies(HEAD_DIM)

    def by_distance(relative):
        pairs = [torch.view_as_complex(x.unflatten(3, (-1, 2)).contiguous()) for x in (q, k)]
        rotated = torch.exp(1j * relative[..., None] * frequencies)
        return torch.einsum("bhic,bhjc,ijc->bhij", pairs[0], pairs[1].conj(), rotated).real / ROOT_D
    near = by_distance(d.double())
    flat = torch.where(d < window, near, by_distance(torch.full_like(d, window).double()))
    leaky = torch.where(d < window, near, by_distance(window + (d - window) / 4))
    options = {"pairing": "interleaved", "window": window}
    found = sextant.attention(q, k, v, "rerope", options=options)
    return [("rerope, difference", equal(found, dense(flat, v), 1e-13)),
            ("leaky-rerope", equal(
                sextant.attention(q, k, v, "leaky-rerope",
                                  options={"factor": 4.0, **options}),
                dense(leaky, v), 1e-13)),
            ("leaky-rerope with factor 1e9 and rerope", equal(
                sextant.attention(q, k, v, "leaky-rerope",
                                  options={"factor": 1e9, **options}), found, 1e-7))]


@check
def rotation_difference():
    """R_i^T R_j is R_(j-i), as A prints, and not R_(i-j), as D does."""
    def rotation(angle):
        return torch.matrix_exp(angle * torch.tensor([[0., -1.], [1., 0.]], dtype=torch.float64))
    product = rotation(5).T @ rotation(9)
    off = float((product - rotation(-4)).abs().max())
    expect(off > 0.1, "R_(i-j) is no different")
    return [("R_5^T R_9 and R_4, difference", equal(product, rotation(4), 1e-14)),
            ("and R_-4", off)]


@check
def local_attention():
    """A window and chunks of the training length see no distance that training did not have."""
    q, k, v = operands()
    d, position = distance(), torch.arange(LENGTH)
    frequencies = sextant.tables.rope_frequencies(HEAD_DIM)
    scores = products(*(_rotated(x, position, frequencies) for x in (q, k))) / ROOT_D
    same_chunk = (position // 8)[:, None] == position // 8
    return [(name, equal(
        sextant.attention(q, k, v, name,
                          options={name: 8, "options": {"pairing": "interleaved"}}),
        dense(scores.masked_fill(~visible, -torch.inf), v), 1e-13))
        for name, visible in (("window", d < 8), ("chunk", same_chunk))]


@check
def orthogonal():
    """Rotations are orthogonal: the product of vectors at one position is unchanged."""
    q, k, _ = operands()
    position = torch.full((LENGTH,), 12345)
    rotated = [sextant.rotate(x, position) for x in (q, k)]
    return [("difference", equal((rotated[0] * rotated[1]).sum(3), (q * k).sum(3), 1e-13))]
