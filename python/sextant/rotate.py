"""Turning by position, outside attention."""

import torch

from sextant.attention import options_text, rotary_positions


def rotate(x, positions, *, back=False, **options):
    """x [batch, heads, rows, columns] with each row turned by its position, with exact phases.

    positions as in ``sextant.attention``: int64 [rows], [batch, rows] or [1 or batch, axes, rows];
    options are those of the method "rope". back turns the other way, which undoes it: DeepSeek-V4
    turns shared keys and values, and its outputs back at the query's position. Differentiable in x.
    x of bfloat16 or float16 is turned in float32 and rounded once.
    """
    return torch.ops.sextant.rotate(x, rotary_positions(positions), options_text(options), back)
