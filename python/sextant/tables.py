"""The numbers that encodings are made of. float64 or int64 tensors on the CPU, right at any position.

distance is always query position minus key position: positive for keys in the past.
"""

import torch


def _integers(x):
    return torch.as_tensor(x, dtype=torch.int64).contiguous()


def alibi_slopes(heads, max_bias=8.0):
    """ALiBi's slopes, [heads] (Press et al. 2021; the authors' rule for any number of heads)."""
    return torch.ops.sextant.alibi_slopes(heads, max_bias)


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
    (Transformer-XL) or tensor2tensor (also fairseq and TENER)."""
    return torch.ops.sextant.sinusoid(
        _integers(positions), width, layout, max_timescale, min_timescale
    )


def rope_speeds(dim, base=10000.0):
    """theta_f = base ** (-2 f / dim) in radians per position, [dim / 2]."""
    return torch.ops.sextant.rope_speeds(dim, base)


def rope_cos_sin(positions, dim, base=10000.0):
    """cos and sin of position * theta_f, [positions, dim / 2] each: exact phases, any position."""
    return torch.ops.sextant.rope_cos_sin(_integers(positions), dim, base)
