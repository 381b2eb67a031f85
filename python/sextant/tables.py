"""The constants that encodings are computed from, as float64 or int64 tensors on the CPU.

Phases and buckets are exact at any position. A distance is always query position minus key
position: positive for keys in the past. Positions and distances are sequences or tensors of
integers. Arguments out of range raise RuntimeError.
"""

# mypy: disable-error-code="no-any-return"
# (operators have no types)

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Union

import torch
from torch import Tensor

from sextant import _operators  # noqa: F401  (registers torch.ops.sextant)
from sextant._errors import InvalidValue
from sextant._old_names import warn_of_old_name

Integers = Union[Sequence[int], Tensor, range]


def _integers(x: Integers) -> Tensor:
    return torch.as_tensor(x, dtype=torch.int64).contiguous()


def alibi_slopes(heads: int, max_bias: float = 8.0, train_length: int | None = None,
                 length: int | None = None) -> Tensor:
    """ALiBi's slopes, [heads], all above 0 (Press et al. 2021; for numbers of heads that are no
    powers of two by the authors' rule).

    max_bias is finite and at least 0. With train_length and length, the slopes are interpolated for
    sequences of length tokens: multiplied by train_length / length if length is the larger
    (Al-Khateeb et al. 2023).
    """
    return torch.ops.sextant.alibi_slopes(heads, max_bias, train_length or 0, length or 0)


def sandwich_bias(distances: Integers, heads: int, sinusoid_width: int = 128, first_index: int = 1,
                  *, strength: float | None = None, ratio: float = 8.0) -> Tensor:
    """Sandwich's bias of each distance, [heads, distances] (Chi et al. 2022).

    sinusoid_width is even. first_index is the first summand of the sum of cosines: 1 as in the
    paper, 0 for the product of two sinusoids. Head h has the factor heads / (ratio * (h + 1)), or
    every head has the factor strength. Both are above 0; with a strength, ratio is the default.
    """
    return torch.ops.sextant.sandwich_bias(_integers(distances), heads, sinusoid_width, first_index,
                                           strength, ratio)


def t5_buckets(distances: Integers, buckets: int = 32, max_distance: int = 128,
               bidirectional: bool = True) -> Tensor:
    """T5's bucket of each distance, int64 in [0, buckets), by the integer-exact rule (Raffel et al.
    2019). Buckets of both directions must be even in number."""
    return torch.ops.sextant.t5_buckets(_integers(distances), buckets, max_distance, bidirectional)


def deberta_rows(distances: Integers, buckets: int = 256, max_positions: int = 512,
                 flavour: Literal["hugging-face", "microsoft"] = "hugging-face") -> Tensor:
    """The row of DeBERTa v2/v3's relative embedding for each distance, int64 in [0, 2 * buckets)
    (He et al. 2020).

    flavour "microsoft" clips distances to max_positions - 1 first, "hugging-face" does not. Raises
    ValueError for any other flavour.
    """
    if flavour not in ("hugging-face", "microsoft"):
        raise InvalidValue(
            f"deberta_rows: flavour: expected hugging-face or microsoft, but got {flavour!r}"
        )
    return torch.ops.sextant.deberta_rows(_integers(distances), buckets, max_positions,
                                          flavour == "microsoft")


def sinusoid(positions: Integers, width: int,
             layout: Literal["interleaved", "concatenated", "tensor2tensor"] = "interleaved",
             max_timescale: float = 10000.0, min_timescale: float = 1.0) -> Tensor:
    """Sinusoidal position vectors, [positions, width] (Vaswani et al. 2017).

    layout is "interleaved" (the paper), "concatenated" (Transformer-XL) or "tensor2tensor" (also
    TENER; fairseq uses it with the first token at position 2). min_timescale is for tensor2tensor
    only. "concatenated" needs an even width.
    """
    return torch.ops.sextant.sinusoid(_integers(positions), width, layout, max_timescale,
                                      min_timescale)


def rope_frequencies(dim: int, base: float = 10000.0) -> Tensor:
    """RoPE's frequencies theta_f = base ** (-2 f / dim), in radians per position, [dim / 2] (Su et
    al. 2021)."""
    return torch.ops.sextant.rope_frequencies(dim, base)


def rope_cos_sin(positions: Integers, dim: int, base: float = 10000.0) -> tuple[Tensor, Tensor]:
    """cos and sin of position * theta_f, [positions, dim / 2] each, with exact phases."""
    return torch.ops.sextant.rope_cos_sin(_integers(positions), dim, base)


def stretched_frequencies(dim: int, base: float = 10000.0,
                          stretch: dict[str, Any] | str | None = None, length: int = 1,
                          train_length: int | None = None) -> tuple[Tensor, float, float]:
    """(frequencies [dim / 2], gain, score factor) of RoPE stretched for a sequence of ``length``
    tokens.

    stretch is the option of the method "rope": a dict with Hugging Face's keys, {"rope_type":
    "yarn", "factor": 8, "original_max_position_embeddings": 4096}, or "yarn*8" with train_length.
    "pi" and "dynamic-pi" are Hugging Face's "linear" and the dynamic form of it.
    Frequencies are in radians per position. gain multiplies rotated queries and keys, the score
    factor (DeepSeek's) multiplies all scores."""
    return torch.ops.sextant.stretched_frequencies(dim, base, json.dumps(stretch), length,
                                                   train_length or 0)


def config_frequencies(config: str, length: int = 1) -> tuple[Tensor, float, float]:
    """The result of ``stretched_frequencies`` for a model, from the contents of its config.json (a
    string). Models with several types of layers give that of the first."""
    return torch.ops.sextant.config_frequencies(config, length)


def query_factors(positions: Integers, law: str, length: int = 0, strength: float = 0.0) -> Tensor:
    """The factor by which a query at each position is multiplied, [positions].

    i is the position, negative ones count as 0; L is length, and s strength, which is at least 0:

      none            1
      logn            max(1, ln(i + 1) / ln L)               Su; Qwen; L at least 2
      logn-unclipped  ln(i + 1) / ln L                       L at least 2
      ssmax           ln(i + 1), times a trained factor      Nakanishi 2025
      llama4          1 + s ln(1 + floor((i + 1) / L))       L at least 1
      ministral       1 + s ln(1 + floor(i / L))             L at least 1
    """
    return torch.ops.sextant.query_factors(_integers(positions), law, length, strength)


def clock(positions: Integers, periods: Sequence[int] = (60, 3600, 43200)) -> Tensor:
    """sin and cos of the angles of clock hands, [positions, 2 * len(periods)]. Hand j turns once
    per periods[j] positions, which is at least 1."""
    return torch.ops.sextant.clock(_integers(positions), list(periods))


def alien_clock(positions: Integers, ratio: float, hands: int) -> Tensor:
    """sin and cos of position / ratio**j (radians) for j = 0 .. hands - 1, [positions, 2 hands].
    ratio is at least 1."""
    return torch.ops.sextant.alien_clock(_integers(positions), ratio, hands)


def binary(positions: Integers, bits: int, signs: bool = False) -> Tensor:
    """The bits of each position, least significant first, as 0 and 1 or (signs) as -1 and 1:
    [positions, bits], 1 to 63 bits. Negative positions count modulo 2^bits."""
    return torch.ops.sextant.binary(_integers(positions), bits, signs)


def tanh_positions(start: Tensor, weight: Tensor, bias: Tensor, length: int) -> Tensor:
    """Positions of a recurrence, [length, width]: p[0] = start, p[k + 1] = tanh(weight p[k] +
    bias). Differentiable."""
    return torch.ops.sextant.tanh_positions(start, weight, bias, length)


def gru_positions(h0: Tensor, weights: Sequence[Tensor], length: int) -> Tensor:
    """Positions of a GRU, [length, ..., width], the recurrent baseline of FLOATER's authors.

    The input of step k is the time 0.01 k, the first state h0 [depth, ..., width]; row 0 is one
    step after h0. weights are w_ih, w_hh, b_ih, b_hh of each layer, in torch's gate order.
    Differentiable.
    """
    return torch.ops.sextant.gru_positions(h0, list(weights), length)


def floater_positions(start: Tensor, weights: Sequence[Tensor], length: int,
                      flow: Literal["linear", "convolution"] = "linear",
                      gradient: Literal["solver", "adjoint"] = "solver") -> Tensor:
    """FLOATER's positions, [length, 3, layers, width] (Liu et al. 2020): the solution of dp/dt =
    h(t, p) at the times 0.01 k.

    start [3, layers, width] is p(0). weights are W1, b1, W2, b2 of the flow h, "linear" or
    "convolution" (for which width is even). Gradients pass through the "solver" or solve the
    "adjoint" equation; only first derivatives exist.
    """
    return torch.ops.sextant.floater_positions(start, list(weights), length, flow, gradient)


def complex_embedding(ids: Tensor, positions: Tensor, r: Tensor, w: Tensor,
                      theta: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Real and imaginary part of r e^(i (w pos + theta)) for each token, [batch, length, D] each
    (Wang et al. 2020). Differentiable.

    ids and positions are int64 [batch, length], r is [vocabulary, D]; w is [vocabulary, D], [D] or
    [vocabulary, 1], theta [vocabulary, D] or None for zeros.
    """
    return torch.ops.sextant.complex_embedding(ids, positions, r, w,
                                               [] if theta is None else [theta])


def xpos_growth(dim: int, gamma: float = 0.4, scale_base: float = 512.0, *,
                xi: float | None = None) -> Tensor:
    """XPOS's growth per position of each pair, [dim / 2], as a natural logarithm: below 0, so that
    scores decay with distance (Sun et al. 2022). gamma and scale_base are above 0. With xi, above 0
    and at most 1, every pair has the growth ln(xi); gamma and scale_base are then the defaults."""
    return torch.ops.sextant.xpos_growth(dim, gamma, scale_base, xi)


# Names of an older version, which the next one does not have.
_OLD_NAMES = {f"{of}_speeds": f"{of}_frequencies" for of in ("rope", "stretched", "config")}

if not TYPE_CHECKING:
    def __getattr__(name: str) -> Any:
        if name not in _OLD_NAMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        warn_of_old_name(name, _OLD_NAMES[name], 2)
        return globals()[_OLD_NAMES[name]]
