#!/usr/bin/env python3
"""Times Sextant's Python package beside PyTorch's attention, in interleaved rounds of one run.

    SEXTANT_LIBRARY=build/release/lib/libsextant_torch.so PYTHONPATH=python \\
        python3 bench/peers.py --lengths 2048 --methods none,alibi,rope

Peers: torch.nn.functional.scaled_dot_product_attention (`sdpa`), with ALiBi and FIRE as a mask of
floats (FIRE's is computed in every call, since it is trained) and rope as rotated queries and keys;
and compiled flex_attention, if this torch and its compiler support it (forward only on CPUs). Each
time is that of a whole call with newly allocated results, as in a model. "of ours" above 1: ours
is faster.
"""

import argparse
import os
import statistics
import time

import program
import sextant  # before torch: it sets how OpenMP's threads wait
import torch
from torch.nn import functional


def causal_flags(method, length, heads):
    """The arguments of sdpa: causal, or a mask with the bias and -inf for hidden keys."""
    if method != "alibi":
        return {"is_causal": True}
    slopes = torch.tensor([2 ** (-8 * (h + 1) / heads) for h in range(heads)])
    at = torch.arange(length)
    distance = at[:, None] - at[None, :]
    bias = -slopes[:, None, None] * distance
    return {"attn_mask": bias.masked_fill(distance < 0, -torch.inf)[None]}


class Rope:
    """Hugging Face's RoPE: cos and sin are computed once, and halves are swapped."""

    def __init__(self, length, size):
        frequencies = 10000 ** (-torch.arange(0, size, 2, dtype=torch.float64) / size)
        phases = torch.arange(length, dtype=torch.float64)[:, None] * frequencies
        self.cos = torch.cat([phases.cos()] * 2, -1).float()
        self.sin = torch.cat([phases.sin()] * 2, -1).float()

    def __call__(self, x):
        first, second = x.chunk(2, -1)
        return x * self.cos + torch.cat([-second, first], -1) * self.sin


class Fire:
    """FIRE (arXiv 2310.04418): a bias for every pair by tensor operations, from the parameters of a
    sextant.method."""

    def __init__(self, method, length):
        self.of = {name.replace(".", "_"): parameter
                   for name, parameter in method.named_parameters()}
        at = torch.arange(length)
        self.reach = at[:, None].double()
        self.distance = (at[:, None] - at[None, :]).abs().double()
        self.hidden = at[:, None] < at[None, :]

    def layer(self, name, x):
        return functional.linear(x, self.of[f"mlp_{name}_weight"], self.of[f"mlp_{name}_bias"])

    def __call__(self):
        limit = (self.of["L_multiplier"].double() * 512).abs()
        psi = lambda x: torch.log1p((self.of["c"].double() * x).abs())  # noqa: E731
        x = (psi(self.distance) / (psi(torch.maximum(self.reach, limit)) + 1e-6)).float()
        bias = self.layer(2, torch.relu(self.layer(0, x[..., None]))).permute(2, 0, 1)
        return bias.masked_fill(self.hidden, -torch.inf)[None]


def fire(length, heads, size):
    method = sextant.method("fire", heads=heads, head_dim=size)
    bias = Fire(method, length)
    attention = functional.scaled_dot_product_attention
    return method, lambda q, k, v: attention(q, k, v, attn_mask=bias())


def sdpa(method, length, heads, size):
    flags = causal_flags(method, length, heads)
    rotate = Rope(length, size) if method == "rope" else lambda x: x
    return lambda q, k, v: functional.scaled_dot_product_attention(rotate(q), rotate(k), v, **flags)


def flex(method, length, heads, size):
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    slopes = torch.tensor([2 ** (-8 * (h + 1) / heads) for h in range(heads)])
    mask = create_block_mask(lambda b, h, i, j: i >= j, None, None, length, length, device="cpu")
    modify = None
    if method == "alibi":

        def modify(score, b, h, i, j):
            return score - slopes[h] * (i - j)

    rotate = Rope(length, size) if method == "rope" else lambda x: x
    compiled = torch.compile(flex_attention)
    return lambda q, k, v: compiled(rotate(q), rotate(k), v, score_mod=modify, block_mask=mask)


def check(name, ours, theirs):
    wrong = (ours - theirs).abs().max().item()
    if not wrong < 1e-3:
        raise SystemExit(f"peers: {name}: expected both sides to agree to 1e-3, but got {wrong}")


def seconds(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def contestants(method, q, k, v, with_flex):
    """{name: (function of q, k, v; whether it has a backward pass)}. The results of all must agree
    with the first."""
    length, heads, size = q.shape[2], q.shape[1], q.shape[3]
    if method == "fire":
        ours, theirs = fire(length, heads, size)
    else:
        ours = lambda q, k, v: sextant.attention(q, k, v, method)  # noqa: E731
        theirs = sdpa(method, length, heads, size)
    result = {"sextant": (ours, True), "sdpa": (theirs, True)}
    with torch.no_grad():
        ours = result["sextant"][0](q, k, v)
        check(f"sdpa, {method}", ours, result["sdpa"][0](q, k, v))
        if with_flex and method != "fire":  # flex_attention would capture the whole mask
            try:
                call = flex(method, length, heads, size)
                theirs = call(q, k, v)
            except Exception as error:  # a compiler may raise anything
                print(f"flex_attention leaves {method} out: {str(error).strip().splitlines()[0]}")
            else:
                check(f"flex, {method}", ours, theirs)
                result["flex"] = (call, False)
    return result


def passes(call, q, k, v, d_out, has_backward):
    """{pass: function that runs it and returns its seconds}."""

    def forward():
        with torch.no_grad():
            return seconds(lambda: call(q, k, v))

    def both():
        leaves = [x.detach().requires_grad_() for x in (q, k, v)]
        return seconds(lambda: call(*leaves).backward(d_out))

    return {"forward": forward, "both": both} if has_backward else {"forward": forward}


def measure(method, length, options):
    shape = (options.batch, options.heads, length, options.head_size)
    q, k, v, d_out = (torch.randn(shape) for _ in range(4))
    timed = {
        name: passes(call, q, k, v, d_out, has_backward)
        for name, (call, has_backward) in contestants(method, q, k, v, options.flex).items()
    }
    rounds = {(name, kind): [] for name in timed for kind in timed[name]}
    for name, kind in rounds:  # the first call touches new memory
        timed[name][kind]()
    for _ in range(options.rounds):
        for name, kind in rounds:
            rounds[name, kind].append(timed[name][kind]())
    rows = []
    for (name, kind), times in rounds.items():
        ours = rounds["sextant", kind]
        ratios = [theirs / mine for theirs, mine in zip(times, ours)]
        rows.append({"method": method, "length": length, "pass": kind, "by": name,
                     "seconds": times})
        print(
            f"{method:<10} {length:>6} {kind:<8} {name:<8} {1e3 * min(times):>10.2f} "
            f"{1e3 * statistics.median(times):>10.2f} {min(times) / min(ours):>8.2f} "
            f"{statistics.median(ratios):>8.2f}",
            flush=True,
        )
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lengths", type=program.numbers, default=[2048],
                        help="queries and keys, causal")
    parser.add_argument("--methods", type=lambda x: x.split(","), default=["none", "alibi", "rope"])
    parser.add_argument("--batch", type=program.positive, default=1)
    parser.add_argument("--heads", type=program.positive, default=8,
                        help="for alibi a power of two")
    parser.add_argument("--head-size", type=program.positive, default=64)
    parser.add_argument("--threads", type=program.positive, default=os.cpu_count())
    parser.add_argument("--rounds", type=program.positive, default=5)
    parser.add_argument("--flex", action="store_true",
                        help="flex_attention too, which is compiled first")
    parser.add_argument("--json", type=program.writable, help="write all numbers to this file")
    options = parser.parse_args()
    for method in options.methods:
        if method not in ("none", "alibi", "rope", "fire"):
            parser.error(f"--methods: expected some of none, alibi, rope, fire, but got {method}")
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    print(
        f"torch {torch.__version__}, {options.threads} threads, batch {options.batch}, "
        f"{options.heads} heads of {options.head_size}, {options.rounds} rounds\n"
    )
    print(f"{'':<26} {'':<8} {'ms':>21} {'of ours':>17}")
    print(
        f"{'method':<10} {'length':>6} {'pass':<8} {'by':<8} {'least':>10} {'median':>10} "
        f"{'least':>8} {'median':>8}"
    )
    measured = []
    for method in options.methods:
        for length in options.lengths:
            measured += measure(method, length, options)
    program.write(options.json, {"torch": torch.__version__, "threads": options.threads,
                                 "measured": measured})


if __name__ == "__main__":
    main()
