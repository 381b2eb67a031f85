"""Rotary position embedding of a tensor, outside attention."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from sextant._attention import rotary_positions
from sextant._call import options_text, rename_options


def rotate(x: Tensor, positions: Tensor, *, back: bool = False, **options: Any) -> Tensor:
    """Rotates each row of x, [batch, heads, rows, columns], by its position, with exact phases.

    positions are int64 [rows], [batch, rows] or [1 or batch, axes, rows], as in
    ``sextant.attention``; **options are those of the method "rope". back rotates the other way, the
    inverse up to the gain of a stretch: DeepSeek-V4 rotates shared keys and values, and rotates its
    outputs back at the position of the query. Differentiable in x. bfloat16 and float16 are rotated
    in float32 and rounded once. x may be on a CUDA device; positions are on the CPU.

    Raises RuntimeError, which names the argument that does not fit.
    """
    rename_options(options)
    rotated: Tensor = torch.ops.sextant.rotate(x, rotary_positions(positions),
                                               options_text(options), back)
    return rotated
