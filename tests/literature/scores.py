"""Scores of a method as the library computes them, for the checks of docs/literature.md.

A model's layer is two fixed random matrices: q = embed(x) W_q, k = embed(x) W_k. Scores are
recovered from attention with unit vectors as values, so they are those of the fused operator. A
softmax shows a row of scores up to a constant; here the constant is the score of the query with the
key at its own position, so a row is s_ij - s_ii.
"""
import json

import torch

from common import HEAD_DIM, HEADS, random, sextant

WIDTH = HEADS * HEAD_DIM
TRAINED = 64  # L

# Options and parameters that keep a method's scores in float64's range over 1024 positions, or that
# let its threshold lie at L; keys in the future need skew's unmasked table.
OPTIONS = {"fire": {"threshold": TRAINED}, "skew": {"unmasked": True}}
PARAMETERS = {"kerple-power": {"bias_p": 0.5}, "fox": {"fgate_proj_bias": 3.0}}


def split_name(arm):
    """("alibi", {"interpolation": "dynamic"}) of "alibi:interpolation=dynamic"."""
    name, *pairs = arm.split(":")
    options = dict(OPTIONS.get(name, {}))
    for pair in pairs:
        key, value = pair.split("=", 1)
        try:
            options[key] = json.loads(value)
        except json.JSONDecodeError:
            options[key] = value
    return name, options


class Layer:
    """One layer with a method, random parameters and random projections."""

    def __init__(self, arm):
        self.name, options = split_name(arm)
        torch.manual_seed(0)
        self.method = sextant.method(self.name, heads=HEADS, head_dim=HEAD_DIM, width=WIDTH,
                                     train_length=TRAINED, dtype=torch.float64, **options)
        for number, parameter in enumerate(self.method.parameters()):
            size = 0.05 if self.name == "floater" else 0.3  # its flow grows exponentially
            parameter.data += size * random(*parameter.shape, seed=number)
        for name, value in PARAMETERS.get(self.name, {}).items():
            if hasattr(self.method, name):  # another form may lack it
                getattr(self.method, name).data.fill_(value)
        self.w_q, self.w_k = (random(WIDTH, WIDTH, seed=seed) / WIDTH**0.5 for seed in (100, 101))

    def projected(self, x, weight, last):
        """Projects the input x [rows, width] with positions added to [1, heads, rows, head_dim]."""
        x = self.method.embed(x.unsqueeze(0))
        if last:
            x = self.method.embed(x, last=True)
        return (x @ weight).unflatten(2, (HEADS, HEAD_DIM)).transpose(1, 2)

    def weights(self, x_q, x_k, queries, causal):
        """The attention weights [heads, queries, keys] of the last queries over all keys."""
        keys = x_k.size(0)
        q = self.projected(x_q, self.w_q, last=True)[:, :, -queries:]
        k = self.method.keys(self.projected(x_k, self.w_k, last=False), x_k.unsqueeze(0))
        blocks = -(-keys // HEAD_DIM)
        units = torch.zeros(blocks + 1, 1, keys, HEAD_DIM, dtype=torch.float64)
        for key in range(keys):
            units[key // HEAD_DIM, 0, key, key % HEAD_DIM] = 1
        size = blocks + 1
        out = self.method(q.expand(size, -1, -1, -1), k.expand(size, -1, -1, -1),
                          units.expand(-1, HEADS, -1, -1), causal=causal)
        without = out[-1:]  # the values of a method by distance alone
        out = out[:-1] - without if without.abs().max() > 0 else out[:-1]
        return out.permute(1, 2, 0, 3).flatten(2)[:, :, :keys]

    def scores(self, x_q, x_k, queries=None, causal=True):
        """s_ij - s_ii, [heads, queries, keys], of the last queries; -inf where j is not visible."""
        keys = x_k.size(0)
        queries = queries or keys
        with torch.no_grad():
            logs = self.weights(x_q, x_k, queries, causal).clamp_min(0).log()
        own = torch.arange(keys - queries, keys).view(1, -1, 1).expand(HEADS, -1, 1)
        return logs - logs.gather(2, own)


def constant(rows, seed):
    """The same random content at every position, [rows, width]."""
    return random(1, WIDTH, seed=seed).expand(rows, -1).contiguous()
