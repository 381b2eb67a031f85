"""Encodings that are added to the input; clock and binary."""
import math

import torch

import sextant
from common import (HEAD_DIM, HEADS, LENGTH, Failed, check, equal, expect, made, operands, products,
                    random, share_by_distance)


@check
def permuted_tokens():
    """Without positions (and without a mask) permuting tokens permutes outputs."""
    q, k, v = operands()
    order = torch.randperm(LENGTH)
    whole = sextant.attention(q, k, v, causal=False)
    mixed = sextant.attention(q[:, :, order], k[:, :, order], v[:, :, order], causal=False)
    return [("difference", equal(mixed, whole[:, :, order], 1e-14))]


@check
def notebook_code():
    """The notebook's sinPosition, 200 positions of width 256, is tables.sinusoid."""
    expected = torch.zeros(200, 256, dtype=torch.float64)
    for i in range(128):
        angle = torch.arange(200).double() / 10000 ** (2 * i / 256)
        expected[:, 2 * i], expected[:, 2 * i + 1] = angle.sin(), angle.cos()
    found = sextant.tables.sinusoid(range(200), 256)
    product = found @ found.T
    return [("difference", equal(found, expected, 1e-12)),
            ("pe.dot(pe.T) on its diagonal", float(product.diagonal().mean()))]


@check
def first_position():
    """The vector of position 0 at width 512 is 0, 1, 0, 1, ..."""
    row = sextant.tables.sinusoid([0], 512)[0].view(256, 2)
    return [("difference", equal(row, torch.tensor([0.0, 1.0]).expand(256, 2), 0))]


@check
def sum_of_positions():
    """p[a + b] is a linear map of p[a]: each pair is rotated by b w_i."""
    a, b = 37, 91
    p = sextant.tables.sinusoid([a, b, a + b], 64).view(3, 32, 2)
    (sa, ca), (sb, cb) = p[0].T, p[1].T
    rotated = torch.stack((sa * cb + ca * sb, ca * cb - sa * sb), 1)
    return [("difference", equal(rotated, p[2], 1e-14))]


@check
def product_of_sinusoids():
    """p_i . p_j depends on i - j only, is even, and decays with distance."""
    p = sextant.tables.sinusoid(range(128), 512)
    product = p @ p.T
    diagonals = [product.diagonal(d) for d in range(128)]
    varies = max(float(each.max() - each.min()) for each in diagonals)
    expect(varies < 1e-10, f"diagonals vary by {varies:.3g}")
    return [("variation along diagonals", varies),
            ("product at distance 0", float(product[0, 0])),
            ("at distance 8", float(product[0, 8])), ("at distance 64", float(product[0, 64]))]


@check
def random_matrix_between():
    """With a random W_q W_k^T between, p_i W p_j no longer shows distance."""
    p = sextant.tables.sinusoid(range(128), 128)
    shares = []
    for _ in range(5):
        scores = p @ (random(128, 128) @ random(128, 128).T) @ p.T
        shares.append(share_by_distance(scores[None]))
    expect(max(shares) < 0.5, f"distance explains up to {max(shares):.2f} of the variance")
    return [("share of variance that distance explains, without a matrix", "1"),
            ("with one, the least of 5", min(shares)),
            ("largest", max(shares))]


@check
def hierarchical_digits():
    """n rows make n * n distinct positions; the first n are the table; no line joins neighbours."""
    n = 10
    method = made("hierarchical", rows=n)
    rows = method.embed(torch.zeros(1, n * n, HEADS * HEAD_DIM, dtype=torch.float64))[0]
    table = method.tensors()[0]
    distinct = len({tuple(row) for row in rows.tolist()})
    expect(distinct == n * n, f"only {distinct} rows differ")
    middle = (rows[12] - (rows[11] + rows[13]) / 2).norm() / (rows[13] - rows[11]).norm()
    expect(middle > 0.1, "row 12 lies half between rows 11 and 13")
    return [("first n rows, difference from the table", equal(rows[:n], table, 1e-15)),
            ("distinct rows", str(distinct)),
            ("row 12 from the middle of 11 and 13, of their distance", float(middle))]


@check
def recurrence():
    """recursive: p[k + 1] = tanh(W p[k] + b) from p[0]."""
    start, weight, bias = random(8), random(8, 8) / 3, random(8)
    rows = [start]
    for _ in range(9):
        rows.append((weight @ rows[-1] + bias).tanh())
    found = sextant.tables.tanh_positions(start, weight, bias, 10)
    return [("difference", equal(found, torch.stack(rows), 1e-14))]


@check
def complex_parameters():
    """Complex words have three values where a real one has one: amplitude, frequency, phase."""
    names = {"amplitude": "word", "frequency": "word-and-component", "phase": "word-and-component"}
    method = made("complex", vocabulary=100, **names)
    count, words = sum(p.numel() for p in method.parameters()), 100 * HEADS * HEAD_DIM // 2
    expect(count == 3 * words, f"{count} parameters, of {words} amplitudes")
    r, w, theta = (random(100, 32) for _ in range(3))
    ids, positions = torch.tensor([[5, 7, 5]]), torch.tensor([[1, 2, 3]])
    real, imaginary = sextant.tables.complex_embedding(ids, positions, r, w, theta)
    expected = r[ids] * torch.exp(1j * (w[ids] * positions[..., None] + theta[ids]))
    return [("parameters beside amplitudes", count / words),
            ("difference from equation (11)",
             equal(torch.complex(real, imaginary).abs().add(0 * real), expected.abs(), 1e-14)),
            ("of the real parts", equal(real, expected.real, 1e-13))]


@check
def clock_hands():
    """With periods of 1, 3600 and 43200 seconds the first hand stands still."""
    hands = sextant.tables.clock(range(0, 7200), (1, 3600, 43200))
    moves = float((hands[:, :2] - hands[:1, :2]).abs().max())
    expect(moves < 1e-9, f"the first hand moves by {moves:.3g}")
    return [("movement of the first hand", moves),
            ("of the second", float((hands[:, 2:4] - hands[:1, 2:4]).abs().max()))]


@check
def clock_wraps():
    """A clock is a circle: 11:59:59 is nearer to 0:00:01 than 0:05:01 is."""
    twelve = 12 * 3600
    near, far, hour, start = sextant.tables.clock(
        [twelve - 1, 5 * 60 + 1, twelve + 59 * 60 + 59, 1])

    def cosine(a):
        return float(a @ start / 3)
    expect(cosine(near) > cosine(far), "the circle is not closed")
    return [("cosine of 11:59:59 and 0:00:01", cosine(near)),
            ("of 0:05:01 and 0:00:01", cosine(far)),
            ("of 12:59:59, as the notes print, and 0:00:01", cosine(hour))]


@check
def hour_hand():
    """The hour hand alone tells every second of its circle, if its digits suffice."""
    hand = sextant.tables.clock(range(43200), (43200,))
    found = [(f"of 43200 seconds distinct in {name}", float(hand.to(dtype).unique(dim=0).size(0)))
             for name, dtype in (("float32", torch.float32), ("bfloat16", torch.bfloat16))]
    expect(found[0][1] == 43200 > found[1][1], f"{found}")
    return found


@check
def clock_units():
    """Days to years extend the clock; within 1024 seconds their hands hardly move."""
    hands = sextant.tables.clock(range(1024), (60, 3600, 43200, 86400, 604800, 31536000))
    moves = (hands.amax(0) - hands.amin(0)).view(6, 2).amax(1)
    return [(f"range of the {name}'s hand in 1024 seconds", float(moves[n]))
            for n, name in enumerate(("second", "minute", "hour", "day", "week", "year"))]


@check
def slow_columns():
    """Low bits alternate and high ones stand still: within L most of a binary code is constant."""
    bits = sextant.tables.binary(range(128), 16)
    sinusoid = sextant.tables.sinusoid(range(128), 16)
    moving = [int((code.amax(0) - code.amin(0) > 0.1).sum()) for code in (bits, sinusoid)]
    return [("of 16 bits that move within 128 positions", moving[0]),
            ("of 16 columns of sinusoids that move by 0.1", moving[1])]


@check
def levels():
    """2 x - 1 takes away the mean that bits of 0 and 1 add to every input, and doubles the rest."""
    plain, signs = (sextant.tables.binary(range(128), 7, signs=each) for each in (False, True))
    expect(float(signs.mean(0).abs().max()) == 0, "levels of -1 and 1 have a mean")
    return [("mean of bits of 0 and 1", float(plain.mean())),
            ("their deviation", float(plain.std(0, unbiased=False).mean())),
            ("of -1 and 1", float(signs.std(0, unbiased=False).mean()))]


@check
def any_length():
    """Sinusoids are defined at every position; a trained table of 512 rows ends at its last."""
    x = torch.zeros(1, 600, HEADS * HEAD_DIM, dtype=torch.float64)
    rows = made("sinusoidal").embed(x, first_query=10**9)
    expect(bool(rows.isfinite().all()), "rows at a billion are not finite")
    try:
        made("learned", rows=512).embed(x)
    except Exception as error:
        return [("sinusoidal at position 1e9, largest", float(rows.abs().max())),
                ("learned, 512 rows, 600 tokens", str(error).splitlines()[0])]
    raise Failed("learned has a row past its table")


@check
def alien_clock():
    """3600^(2j) leaves one hand that moves; divided by d all of them do."""
    positions = range(200)
    alien = sextant.tables.alien_clock(positions, 3600.0**2, 3).view(200, 3, 2)
    divided = sextant.tables.sinusoid(positions, 16, max_timescale=3600.0).view(200, 8, 2)
    still = float(alien[:, 1:, 0].abs().max())
    expect(still < 1e-4, f"the second hand reaches {still:.3g}")
    return [("largest sine of the later hands", still),
            ("least of the largest sines with /d, d = 16",
             float(divided[..., 0].abs().amax(0).min())),
            ("the same as sinusoids of base 3600^6 and width 6", equal(
                alien.flatten(1), sextant.tables.sinusoid(positions, 6, max_timescale=3600.0**6),
                1e-9))]


@check
def next_frequency():
    """Each frequency is base^(2/d) times lower than the one before: 1.2 only near d = 100."""
    return [(f"d = {d}", 10000 ** (2 / d)) for d in (64, 100, 128, 256, 512)] + [
        ("d at which it is 1.2", 2 * math.log(10000) / math.log(1.2))]


@check
def binary_digits():
    """The notes' table of binary positions has the lowest bit first, which is little-endian."""
    expected = torch.tensor([[int(bit) for bit in row] for row in
                             ("1000", "0100", "1100", "0010", "1010", "0110")]).double()
    found = sextant.tables.binary(range(1, 7), 4)
    signs = sextant.tables.binary(range(1, 7), 4, signs=True)
    return [("difference", equal(found, expected, 0)),
            ("of 2 x - 1", equal(signs, 2 * expected - 1, 0))]


@check
def lost_channel():
    """A lost channel moves a binary position further than a sinusoidal one, of their variance."""
    def moved(code):
        code = code - code.mean(0)
        lost = code.square().sum(0).max() / code.square().sum()
        return float(lost)
    bits = moved(sextant.tables.binary(range(256), 8, signs=True))
    sinusoid = moved(sextant.tables.sinusoid(range(256), 128))
    expect(bits > sinusoid, "the binary code loses less")
    return [("share of the variance in the largest of 8 bits", bits),
            ("in the largest of 128 columns of sinusoids", sinusoid)]


@check
def four_terms():
    """Equation (7): (x_i + p_i) W_q W_k^T (x_j + p_j)^T has four terms."""
    d = HEADS * HEAD_DIM
    x, w_q, w_k = random(LENGTH, d), random(d, d) / 8, random(d, d) / 8
    p = sextant.method("sinusoidal", heads=HEADS, head_dim=HEAD_DIM).embed(
        torch.zeros(1, LENGTH, d, dtype=torch.float64))[0]
    q, k = ((x + p) @ w for w in (w_q, w_k))
    parts = sum(a @ w_q @ w_k.T @ b.T for a in (x, p) for b in (x, p))
    return [("difference", equal(q @ k.T, parts, 1e-10)),
            ("and of the products of heads", equal(
                products(q.view(1, LENGTH, HEADS, -1).transpose(1, 2),
                         k.view(1, LENGTH, HEADS, -1).transpose(1, 2)).sum(1)[0], parts, 1e-10))]
