"""The list of features, and tensors for them."""
import torch

import sextant

FEATURES = []  # (group, line, least torch, function)


def feature(group, torch_version=(1, 13)):
    def add(function):
        FEATURES.append((group, function.__doc__, torch_version, function))
        return function
    return add


def random(*sizes, dtype=torch.float64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*sizes, generator=generator, dtype=torch.float64).to(dtype)


def qkv(queries=5, keys=7, dtype=torch.float64):
    """q, k and v of 2 sequences with 3 heads of 4 columns."""
    return [random(2, 3, rows, 4, dtype=dtype, seed=n) for n, rows in enumerate(
        (queries, keys, keys))]


def hidden(*sizes):
    """A bool mask that shows the last key to every query."""
    mask = random(*sizes, seed=9) < 0.3
    mask[..., -1] = True
    return mask


def method(name="t5", **options):
    torch.manual_seed(0)
    return sextant.method(name, heads=3, head_dim=4, layers=2, dtype=torch.float64, **options)


def dense(q, k, scale=0.5):
    return q @ k.transpose(2, 3) * scale


def sdpa(q, k, v, attn_mask=None, is_causal=False):
    """torch's scaled_dot_product_attention, which torch 1.13 lacks."""
    scores = dense(q, k)
    if is_causal:
        attn_mask = torch.ones(scores.shape[2:], dtype=torch.bool).tril()
    if attn_mask is not None:
        scores = (scores.masked_fill(~attn_mask, -torch.inf) if attn_mask.dtype == torch.bool
                  else scores + attn_mask)
    return scores.softmax(3) @ v
