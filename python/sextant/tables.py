"""The numbers that encodings are made of. float64 or int64 tensors on the CPU, right at any
position.

distance is always query position minus key position: positive for keys in the past.
"""

import json

import torch


def _integers(x):
    return torch.as_tensor(x, dtype=torch.int64).contiguous()


def alibi_slopes(heads, max_bias=8.0, train_length=None, length=None):
    """ALiBi's slopes, [heads] (Press et al. 2021; the authors' rule for any number of heads).

    With train_length and length interpolated to read length tokens (Al-Khateeb et al. 2023).
    """
    return torch.ops.sextant.alibi_slopes(heads, max_bias, train_length or 0, length or 0)


def sandwich_bias(distances, heads, sinusoid_width=128, first_index=1):
    """Sandwich's bias of each distance, [heads, distances] (Chi et al. 2022)."""
    return torch.ops.sextant.sandwich_bias(_integers(distances), heads, sinusoid_width, first_index)


def t5_buckets(distances, buckets=32, max_distance=128, bidirectional=True):
    """T5's bucket of each distance, in [0, buckets), by the integer-exact rule."""
    return torch.ops.sextant.t5_buckets(_integers(distances), buckets, max_distance, bidirectional)


def deberta_rows(distances, buckets=256, max_positions=512, flavour="hugging-face"):
    """DeBERTa v2/v3's row of the relative embedding for each distance, in [0, 2 * buckets).

    flavour "microsoft" clips distances to max_positions - 1 first, "hugging-face" does not.
    """
    if flavour not in ("hugging-face", "microsoft"):
        raise ValueError(
            f"deberta_rows: flavour: expected hugging-face or microsoft, but got {flavour!r}"
        )
    return torch.ops.sextant.deberta_rows(
        _integers(distances), buckets, max_positions, flavour == "microsoft"
    )


def sinusoid(positions, width, layout="interleaved", max_timescale=10000.0, min_timescale=1.0):
    """Sinusoidal rows [positions, width]; layout interleaved (the paper), concatenated
    (Transformer-XL) or tensor2tensor (also TENER; fairseq's are these, the first token's at
    position 2)."""
    return torch.ops.sextant.sinusoid(
        _integers(positions), width, layout, max_timescale, min_timescale
    )


def rope_speeds(dim, base=10000.0):
    """theta_f = base ** (-2 f / dim) in radians per position, [dim / 2]."""
    return torch.ops.sextant.rope_speeds(dim, base)


def rope_cos_sin(positions, dim, base=10000.0):
    """cos and sin of position * theta_f, [positions, dim / 2] each: exact phases, any position."""
    return torch.ops.sextant.rope_cos_sin(_integers(positions), dim, base)


def stretched_speeds(dim, base=10000.0, stretch=None, length=1, train_length=None):
    """(speeds [dim / 2], gain, score factor) of RoPE stretched for a text of ``length`` tokens.

    stretch as the option of the method "rope": a dict in Hugging Face's words, {"rope_type":
    "yarn", "factor": 8, "original_max_position_embeddings": 4096}, or "yarn*8" with train_length.
    gain multiplies turned queries and keys, the score factor (DeepSeek's) all scores."""
    return torch.ops.sextant.stretched_speeds(
        dim, base, json.dumps(stretch), length, train_length or 0
    )


def config_speeds(config, length=1):
    """The same of a model, by the text of its config.json (its first type of layer)."""
    return torch.ops.sextant.config_speeds(config, length)


def query_factors(positions, law, length=0, strength=0.0):
    """What queries at these positions are multiplied by; law: none, logn, logn-unclipped, ssmax (to
    be multiplied by a trained number), llama4 or ministral."""
    return torch.ops.sextant.query_factors(_integers(positions), law, length, strength)


def clock(positions, periods=(60, 3600, 43200)):
    """sin and cos of the hands of a clock, hand j turning once per periods[j] positions."""
    return torch.ops.sextant.clock(_integers(positions), list(periods))


def alien_clock(positions, ratio, hands):
    """sin and cos of position / ratio**j (radians) for j = 0 .. hands - 1, [positions, 2 hands]."""
    return torch.ops.sextant.alien_clock(_integers(positions), ratio, hands)


def binary(positions, bits, signs=False):
    """The bits of each position, least significant first, as 0 and 1 or (signs) as -1 and 1."""
    return torch.ops.sextant.binary(_integers(positions), bits, signs)


def tanh_positions(start, weight, bias, length):
    """p[0] = start, p[k+1] = tanh(weight p[k] + bias): [length, width]. Differentiable."""
    return torch.ops.sextant.tanh_positions(start, weight, bias, length)


def gru_positions(h0, weights, length):
    """A GRU over the time 0.01 k from h0 [depth, ..., width]; weights w_ih, w_hh, b_ih, b_hh of
    each layer. [length, ..., width], row 0 one step after h0. Differentiable."""
    return torch.ops.sextant.gru_positions(h0, list(weights), length)


def floater_positions(start, weights, length, flow="linear", gradient="solver"):
    """FLOATER's positions [length, 3, layers, width] from start [3, layers, width]; weights W1, b1,
    W2, b2 of the flow ("linear" or "convolution"); gradients through the "solver" or by the
    "adjoint"."""
    return torch.ops.sextant.floater_positions(start, list(weights), length, flow, gradient)


def complex_embedding(ids, positions, r, w, theta=None):
    """Re and Im of r e^(i (w pos + theta)) for each word; see Wang et al. 2020. Differentiable."""
    return torch.ops.sextant.complex_embedding(
        ids, positions, r, w, [] if theta is None else [theta]
    )


def xpos_growth(dim, gamma=0.4, scale_base=512.0):
    """XPOS's growth per position of each pair, natural log, [dim / 2]: below 0, scores fade."""
    return torch.ops.sextant.xpos_growth(dim, gamma, scale_base)
