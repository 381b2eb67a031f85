"""Terms of scores by distance, as layers of transformers' models hand them over."""

from __future__ import annotations

import torch

from sextant._call import compiling
from sextant.encoding import Encoding
from sextant.transformers import masks
from sextant.transformers.interface import Method, attend_visible

NONE = Method("none", {}, None, ())


class Terms(Encoding):
    """Terms of one call: the names of hooks of ``Encoding`` and their values, or functions of the
    hook's arguments."""

    places = False

    def __init__(self, heads, key_heads=None, **hooks):
        super().__init__(heads=heads, key_heads=key_heads)
        self.hooks = hooks

    def _given(self, name, *arguments):
        value = self.hooks.get(name)
        return value(*arguments) if callable(value) else value

    def bias(self, distances):
        return self._given("bias", distances)

    def on_query(self, distances):
        return self._given("on_query", distances)

    def on_key(self, distances):
        return self._given("on_key", distances)

    def on_value(self, distances):
        return self._given("on_value", distances)

    def key_bias(self, k, positions):
        return self._given("key_bias", k, positions)


def by_distance(table, nearest_row, step=-1):
    """A hook that reads a table [heads, rows, ...] at row nearest_row + step * distance, or at the
    nearest row that exists."""
    def hook(distances):
        rows = (nearest_row + step * distances.long()).clamp(0, table.size(1) - 1)
        return table, rows
    return hook


def shared_by_heads(table, nearest_row, step=-1):
    """The hook ``by_distance`` of vectors [rows, columns] that all heads share."""
    return by_distance(table[None], nearest_row, step)


def attend(module, query, key, value, attention_mask, terms=NONE, *, scale, dropout=0.0,
           first_query=None, causal=False, **named):
    """Attention [batch, queries, heads * columns] of a layer: query, key and value [batch, heads,
    rows, columns], a mask of transformers or of the model's own code (bool, or added to scores),
    and a method or ``Terms``. Without a mask, causal and first_query (the key row of query 0)
    tell what queries see."""
    named = {"scale": scale, "dropout_p": dropout if module.training else 0.0, **named}
    first_query = key.size(2) - query.size(2) if first_query is None else first_query
    if attention_mask is None:
        out = terms(query, key, value, causal=causal, first_query=first_query, **named)
    elif masks.is_stated(attention_mask) or (
            compiling() and not masks.is_ranges(attention_mask)):
        out = terms(query, key, value, **named, **masks.traced_place(attention_mask, first_query))
    else:
        out = _by_values(module, query, key, value, attention_mask, terms, named, first_query)
    return out.transpose(1, 2).flatten(2)


@torch.compiler.disable  # the values of the mask decide the call
def _by_values(module, query, key, value, mask, terms, named, first_query):
    mask = masks.of_model(mask, query.size(2), key.size(2), first_query)
    return attend_visible(module, query, key, value, mask, terms, named)


def heads_of(x, heads):
    """[batch, rows, heads * columns] as [batch, heads, rows, columns]."""
    return x.unflatten(2, (heads, -1)).transpose(1, 2)


def cached(module, cache, k, v, cache_position=None):
    """Key and value rows with those of a cache, if there is one. cache_position: for transformers
    before 5."""
    if cache is None:
        return k, v
    more = () if cache_position is None else ({"cache_position": cache_position},)
    return cache.update(k, v, module.layer_idx, *more)


def keys_and_values(module, heads, projections, hidden_states, key_value_states, cache,
                    cache_position=None):
    """The keys and values of a layer by their projections, with the rows of a cache; of an encoder,
    once, if there are key_value_states."""
    at, cross, own = module.layer_idx, key_value_states is not None, cache
    if hasattr(cache, "cross_attention_cache"):
        own = cache.cross_attention_cache if cross else cache.self_attention_cache
        if cross and cache.is_updated.get(at):
            return own.layers[at].keys, own.layers[at].values
        if cross:
            cache.is_updated[at] = True
    k, v = (heads_of(project(key_value_states if cross else hidden_states), heads)
            for project in projections)
    return cached(module, own, k, v, None if cross else cache_position)


def joined(parts):
    """Attention to keys in some parts: parts are pairs of a result [batch, heads, queries, columns]
    and the logarithm of its sum of exponentials, -infinity without a key."""
    if len(parts) == 1:
        return parts[0][0]
    shares = torch.stack([lse for _, lse in parts]).clamp(min=-1e30).softmax(0)
    return sum(share[..., None].to(out.dtype) * out for share, (out, _) in zip(shares, parts))
