"""Piecewise rotations: ReRoPE, Leaky ReRoPE, Self-Extend, dual chunk attention, StreamingLLM."""

import torch

from sextant.conformance.case import case
from sextant.conformance.cases.rotary import base


def attend(c, method, **options):
    """Compares one fused attention call; the last query is at the position of the last key."""
    q, k, v = c.leaves("q", "k", "v")
    out = c.attention(q, k, v, method=method, base=base(c), **options)
    c.expect_out(out)


def dense_scores(c, relative, q, k):
    """Scores of RoPE at the relative positions of the case (half-split pairs)."""
    angles = torch.as_tensor(relative).double()[..., None] * torch.from_numpy(c.arrays["inv_freq"])
    k = k.repeat_interleave(q.size(1) // k.size(1), 1)
    (q1, q2), (k1, k2) = (x.double().chunk(2, -1) for x in (q, k))
    same = torch.einsum("bhif,bhjf,ijf->bhij", q1, k1, angles.cos())
    same = same + torch.einsum("bhif,bhjf,ijf->bhij", q2, k2, angles.cos())
    cross = torch.einsum("bhif,bhjf,ijf->bhij", q1, k2, angles.sin())
    crossed_back = torch.einsum("bhif,bhjf,ijf->bhij", q2, k1, angles.sin())
    return c.meta["scale"] * (same + cross - crossed_back)


def windowed(c, method, **options):
    attend(c, method, window=c.meta["window"], causal="bidirectional" not in c.meta["method"],
           log_n=c.meta.get("training_length"), **options)


@case(r"rerope (prefill|one-token|for bidirectional)", "q", "out", "inv_freq")
def rerope(c):
    windowed(c, "rerope")


@case(r"leaky (rerope prefill|one-token|for bidirectional)", "q", "out", "inv_freq")
def leaky_rerope(c):
    windowed(c, "leaky-rerope", factor=float(c.meta["scaling_factor"]))


@case(r"Inverse Leaky ReRoPE", "distance", "rel_train", "rel_infer")
def inverse_leaky_rerope(c):
    """The weights of the last query at each distance; the values are the identity."""
    distance = c.arrays["distance"].astype(int)
    rows, columns = int(distance.max()) + 1, 8
    generator = torch.Generator().manual_seed(1)
    q, k = (torch.randn(1, 1, rows, columns, generator=generator).to(c.dtype) for _ in "qk")
    v = torch.eye(rows, dtype=c.dtype)[None, None]
    frequencies = 100.0 ** -(torch.arange(4).double() / 4)
    for name, method, options in (
        ("rel_train", "leaky-rerope", {"window": c.meta["w"], "factor": 1 / c.meta["b"]}),
        ("rel_infer", "rope", {}),
    ):
        weights = c.attention(q, k, v, method=method, base=100.0, **options)[0, 0, -1]
        angles = torch.from_numpy(c.arrays[name])[:, None] * frequencies
        keys = k[0, 0, rows - 1 - distance].double()
        (q1, q2), (k1, k2) = (x.chunk(2, -1) for x in (q[0, 0, -1].double(), keys))
        scores = (q1 * k1 + q2 * k2) * angles.cos() + (q1 * k2 - q2 * k1) * angles.sin()
        expected = torch.softmax(scores.sum(1) / columns**0.5, 0)
        c.expect(name, weights[rows - 1 - distance], expected)


@case(r"Self-Extend", "q", "out", "inv_freq")
def self_extend(c):
    log_n = c.meta.get("scale_base", -1)
    attend(c, "self-extend", window=c.meta["neighbor_window"], group=c.meta["group_size"],
           log_n=log_n if log_n > 0 else None)


@case(r"(DCA|Dual Chunk Attention)", "q", "out", "inv_freq")
def dual_chunk(c):
    """The official code merges one attention per kind of chunk, and its gradients treat the weights
    of the merge as constants. Our gradients are those of the whole formula, so the golden gradients
    are compared with the same merge of our results."""
    options = {name: c.meta[name] for name in ("chunk_size", "local_window")}
    options.update(method="dual-chunk", base=base(c), mscale=float(c.meta.get("mscale", 1)))
    q, k, v = c.leaves("q", "k", "v")
    out = c.attention(q, k, v, **options)
    if "k_cached_rotated" in c:
        chunk = c.meta["chunk_size"] - c.meta["local_window"]
        cached = c.arrays["k_cached_rotated"]
        positions = torch.arange(cached.shape[2]) % chunk
        rotated = c.library.rotate(c.tensor("k")[:, :, : len(positions)], positions, base=base(c))
        c.expect("k_cached_rotated", rotated, cached)
    if "gout" not in c:
        c.expect_out(out)
        return
    c.expect("out", out, c.arrays["out"])
    upstream = c.tensor("gout")
    gradients = torch.autograd.grad((out * upstream).sum(), [q, k, v], retain_graph=True)
    for name, got, expected in zip("qkv", gradients, dense_gradients(c)):
        c.expect(f"d{name} of the formula", got, expected)
    merged = 0
    weights = torch.softmax(torch.from_numpy(c.arrays["scores"]), -1)
    for mask in chunk_masks(c):
        part = c.attention(q, k, v, mask=mask[None, None], **options)
        merged = merged + part * (weights * mask).sum(-1, keepdim=True).to(c.dtype)
    c.expect_gradients((merged * upstream).sum())


def dense_gradients(c):
    q, k, v = (c.tensor(name).double().detach().requires_grad_() for name in "qkv")
    scores = dense_scores(c, c.arrays["rel"], q, k) * c.meta.get("mscale", 1) ** 2
    scores = scores.masked_fill(~torch.from_numpy(c.arrays["mask"]), -torch.inf)
    out = torch.softmax(scores, -1) @ v.repeat_interleave(q.size(1) // v.size(1), 1)
    return torch.autograd.grad((out * c.tensor("gout").double()).sum(), [q, k, v])


def chunk_masks(c):
    """Masks of the visible keys in the query's own chunk, in the chunk before, and in older
    chunks."""
    mask = torch.from_numpy(c.arrays["mask"])
    chunk = torch.arange(len(mask)) // (c.meta["chunk_size"] - c.meta["local_window"])
    apart = chunk[:, None] - chunk[None, :]
    return [mask & (apart == 0), mask & (apart == 1), mask & (apart > 1)]


@case(r"StreamingLLM", "q", "out", "visible", "rel")
def streaming(c):
    """One call over all queries, and decoding with a cache that has dropped the hidden keys."""
    sinks, recent = c.meta["start_size"], c.meta["recent_size"]
    options = {"method": "streaming", "sinks": sinks, "recent": recent, "base": base(c)}
    q, k, v = c.leaves("q", "k", "v")
    c.expect_out(c.attention(q, k, v, **options))
    steps = []
    for n, visible in enumerate(torch.from_numpy(c.arrays["visible"])):
        kept = visible.nonzero()[:, 0]
        steps.append(c.attention(q[:, :, n : n + 1], k[:, :, kept], v[:, :, kept], **options))
    c.expect("step by step", torch.cat(steps, 2), c.arrays["out"])
