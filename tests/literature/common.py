"""Random data, dense attention and comparisons for the checks."""
import pathlib
import sys

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
import sextant  # noqa: E402

HEADS, HEAD_DIM, LENGTH = 4, 16, 24


class Failed(Exception):
    """A statement does not hold."""


def check(function):
    function.is_check = True
    return function


def equal(left, right, bound):
    """The largest difference, which must not exceed the bound."""
    difference = float((left - right).abs().max())
    if not difference <= bound:
        raise Failed(f"expected a difference of at most {bound:g}, but got {difference:.3g}")
    return difference


def expect(holds, text):
    if not holds:
        raise Failed(text)


def random(*sizes, seed=None):
    """Normal numbers, by torch's generator or, with a seed, by one of their own."""
    generator = None if seed is None else torch.Generator().manual_seed(seed)
    return torch.randn(sizes, generator=generator, dtype=torch.float64)


def operands(length=LENGTH):
    """q, k, v [1, heads, length, head_dim]."""
    return [random(1, HEADS, length, HEAD_DIM) for _ in range(3)]


def made(name, **options):
    """The method with random parameters for one layer."""
    method = sextant.method(name, heads=HEADS, head_dim=HEAD_DIM, train_length=LENGTH,
                            dtype=torch.float64, **options)
    for parameter in method.parameters():
        parameter.data = random(*parameter.shape) / 4
    return method.requires_grad_(False)


def distance(length=LENGTH):
    """i - j, [length, length]."""
    positions = torch.arange(length)
    return positions[:, None] - positions


def dense(scores, v, causal=True, values=None):
    """Softmax attention; values [queries, keys, head_dim] are added to v by pair."""
    if causal:
        scores = scores.masked_fill(distance(scores.size(-1)) < 0, -torch.inf)
    p = scores.softmax(-1)
    out = p @ v
    return out if values is None else out + torch.einsum("bhij,ijd->bhid", p, values)


def products(q, k):
    return q @ k.transpose(2, 3)


def gathered(q, table, rows):
    """q_i . table[rows[i, j]] of a table [rows, d]."""
    return torch.gather(q @ table.T, 3, rows.expand(*q.shape[:2], -1, -1))


def by_distance(scores):
    """The scores of a square matrix by distance i - j >= 0: a list of [heads, pairs]."""
    return [scores.diagonal(-d, 1, 2) for d in range(scores.size(1))]


def share_by_distance(scores):
    """The share of the variance of the visible scores j < i that distance explains, mean over
    heads; None if they do not vary."""
    diagonals = by_distance(scores)[1:]
    shares = []
    for head in range(scores.size(0)):
        groups = [each[head][each[head].isfinite()] for each in diagonals]
        groups = [each for each in groups if each.numel()]
        total = torch.cat(groups)
        if total.var(unbiased=False) < 1e-18:
            continue
        within = sum(((each - each.mean()) ** 2).sum() for each in groups) / total.numel()
        shares.append(1 - within / total.var(unbiased=False))
    return float(sum(shares) / len(shares)) if shares else None
