"""Random data, dense attention and comparisons for the checks."""
import pathlib
import sys

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
import sextant  # noqa: E402,F401

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


def random(*sizes):
    return torch.randn(sizes, dtype=torch.float64)


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
