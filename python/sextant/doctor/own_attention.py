"""The laws of a model's own attention function, measured from outside.

A layer calls the function with queries, keys, values, its mask and its arguments. The function is
called again with the same mask and arguments, and with operands that make its result readable:

* Values that are one at their own position, in a channel of their own: the output is the weights.
* Queries of zero: every visible key has the same weight, and a hidden one none, whatever built the
  mask; what is missing to a sum of one went to a sink.
* Keys whose products with a query are 0, small and large: logarithms of the ratios of weights are
  differences of scores. The small one gives the scale, the large one the softcap.
* Keys and values that are the number of their head, bit by bit: the head that each query reads.

No code of the function is read, and its kernel does not matter.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Any, Callable

import numpy as np

SMALL, LARGE = 0.5, 15.0  # scores
UNCAPPED = 5e-3  # a softcap lowers the large score by more than this part
Attend = Callable[[Any, Any, Any], Any]  # of queries, keys and values


@dataclass(frozen=True)
class Law:
    """visible: [batch, heads, queries, keys]. scales, softcaps: by head, of a product of query and
    key; softcap inf: none; None: fewer than three visible keys. sinks: by head, -inf: none.
    key_heads, value_heads: the head that each head of queries reads."""

    visible: np.ndarray
    scales: np.ndarray | None
    softcaps: np.ndarray | None
    sinks: np.ndarray
    key_heads: list[int] | None
    value_heads: list[int] | None


def function_of(module: Any, name: str) -> Callable | None:
    """The attention function that a layer's code calls for an implementation, if it is found."""
    for kind in type(module).__mro__:
        own = vars(sys.modules.get(kind.__module__, object))
        named = [n for n in own if n.endswith("eager_attention_forward")]
        if name == "eager" and named:
            return own[min(named, key=len)]
        functions = own.get("ALL_ATTENTION_FUNCTIONS", ())
        if name != "eager" and name in functions:
            return functions[name]
    return None


def weights(attend: Attend, query: Any, key: Any, value: Any) -> np.ndarray:
    """[batch, heads, queries, keys]. One call shows as many keys as a value has channels."""
    keys, channels = value.shape[2], value.shape[3]
    parts = []
    for first in range(0, keys, channels):
        count = min(channels, keys - first)
        one = value.new_zeros(value.shape)
        one[:, :, range(first, first + count), range(count)] = 1
        parts.append(attend(query, key, one)[..., :count].transpose(1, 2).float().cpu().numpy())
    return np.nan_to_num(np.concatenate(parts, -1).astype(float))


def _softcap(small: float, large: float) -> tuple[float, float]:
    """(slope, cap) of cap * tanh(slope * x / cap), from its values at SMALL and LARGE."""
    slope, cap = small / SMALL, math.inf
    if not large < slope * LARGE * (1 - UNCAPPED) or large <= 0 or small <= 0:
        return slope, cap
    for _ in range(20):
        low, high = large, 1e6
        for _ in range(60):
            cap = math.sqrt(low * high)
            low, high = (cap, high) if cap * math.tanh(slope * LARGE / cap) < large else (low, cap)
        slope = cap * math.atanh(min(small / cap, 1 - 1e-12)) / SMALL
    return slope, cap


def _bits(count: int, places: int) -> np.ndarray:
    return np.arange(count)[:, None] >> np.arange(places)[None] & 1


def law_of(attend: Attend, query: Any, key: Any, value: Any, scaling: float | None) -> Law:
    """The law for a mask and arguments that `attend` holds. scaling: that of the call, if any,
    from which the sizes of products are chosen."""
    import torch
    none, heads, key_heads = torch.zeros_like(query), query.shape[1], key.shape[1]
    even = weights(attend, none, torch.zeros_like(key), value)
    visible = even > 1e-12
    seen = np.nonzero(visible[0, :, -1].all(0))[0]
    total = even[0, :, -1].sum(-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        sinks = np.where(1 - total > 1e-5, np.log(len(seen) * (1 - total) / total), -np.inf)
    places = max(1, (value.shape[1] - 1).bit_length())
    coded = torch.zeros_like(value)
    coded[..., :places] = torch.tensor(_bits(value.shape[1], places), dtype=value.dtype,
                                       device=value.device)[:, None]
    got = attend(none, torch.zeros_like(key), coded)[0, -1, :, :places].float().cpu().numpy()
    value_heads = ((got > total[:, None] / 2) << np.arange(places)).sum(-1).tolist() \
        if len(seen) else None
    if len(seen) < 3:
        return Law(visible, None, None, sinks, None, value_heads)

    def scores(products: np.ndarray) -> np.ndarray:
        """Differences of scores from that of the first visible key, [heads, seen], where products
        [key heads, seen] are those of queries and keys."""
        queries, keys = none.clone(), torch.zeros_like(key)
        queries[..., 0] = 1
        keys[:, :, seen, 0] = torch.tensor(products, dtype=key.dtype, device=key.device)
        ratios = weights(attend, queries, keys, value)[0, :, -1][:, seen] / even[0, :, -1][:, seen]
        with np.errstate(divide="ignore"):
            return np.log(ratios) - np.log(ratios[:, :1])
    unit = 1 / (scaling or query.shape[-1] ** -0.5)
    products = np.zeros((key_heads, len(seen)))
    products[:, 1:3] = SMALL * unit, LARGE * unit
    differences = scores(products)
    laws = [_softcap(float(row[1]), float(row[2])) for row in differences]
    scales, caps = np.array([law[0] for law in laws]) / unit, np.array([law[1] for law in laws])
    places, read = max(1, (key_heads - 1).bit_length()), None
    if places < len(seen) and bool((differences[:, 2] > 1).all()):
        products = np.zeros((key_heads, len(seen)))
        products[:, 1:places + 1] = _bits(key_heads, places) * LARGE * unit
        one = scores(products)[:, 1:places + 1] > differences[:, 2:3] / 2
        read = (one << np.arange(places)).sum(-1).tolist()
    return Law(visible, scales, caps, sinks, read, value_heads)
