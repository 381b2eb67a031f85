"""The attention "sextant" of transformers' attention interface.

A layer calls ``attend(module, query, key, value, attention_mask, ...)`` with query [batch, heads,
queries, head_dim] and key and value [batch, key_heads, keys, head_dim], whose rotary positions are
in them already. The mask is that of ``masks.visibility``, or one that the caller made.
"""

import inspect
from dataclasses import dataclass
from typing import Any

import torch
from transformers import AttentionInterface, AttentionMaskInterface

from sextant._attention import Named
from sextant._attention import attend as attend_by
from sextant._call import Call, compiling, options_text
from sextant.transformers import masks, rows
from sextant.transformers.errors import ModelError
from sextant.transformers.swap import refuse_weights

NAME = "sextant"

# Arguments of attention interfaces that say nothing about scores and weights.
NO_EFFECT = frozenset(("cache_position", "deterministic", "logits_to_keep", "max_length_k",
                       "max_length_q", "num_items_in_batch", "output_hidden_states",
                       "output_router_logits", "position_embeddings", "position_ids", "return_dict",
                       "seq_idx", "use_cache"))


def attend(module, query, key, value, attention_mask, scaling=None, dropout=0.0, *,
           is_causal=None, sliding_window=None, softcap=None, s_aux=None, position_bias=None,
           cu_seq_lens_q=None, cu_seq_lens_k=None, output_attentions=None, **others):
    """Returns [batch, queries, heads, head_dim] and None, as there are no weights to return.

    Raises ModelError for arguments that it does not know, and for those that ask for weights."""
    for name, argument in others.items():
        if argument is not None and name not in NO_EFFECT:
            raise ModelError(f"{name}: expected None, as Sextant's attention has no such argument, "
                             "but got a value")
    refuse_weights(module, output_attentions)
    name, options, train_length, parameters = method_of(module, position_bias)
    method = Method(name, options, train_length, parameters)
    named = {"scale": scaling, "softcap": softcap, "dropout_p": dropout, "sink": s_aux}
    packed = cu_seq_lens_q is not None or cu_seq_lens_k is not None
    if attention_mask is not None and attention_mask.dtype != torch.int64 and (
            attention_mask.size(3) > key.size(2)):
        attention_mask = attention_mask[..., :key.size(2)]  # as transformers' own attention does
    if not packed and (masks.is_stated(attention_mask) or (
            compiling() and is_traced(attention_mask, query, key, method))):
        place = (_without_mask(module, query, key, is_causal, sliding_window)
                 if attention_mask is None else masks.traced_place(
                     attention_mask, key.size(2) - query.size(2)))
        out = method(query, key, value, **named, **place)
    else:
        out = _by_values(module, query, key, value, attention_mask, method, named, is_causal,
                         sliding_window, cu_seq_lens_q, cu_seq_lens_k)
    return out.transpose(1, 2).contiguous(), None


def is_traced(mask, query, key, method):
    """Whether torch.compile can trace a call: nothing depends on values of the mask."""
    of_all_rows = method.name == "none" or query.size(2) == key.size(2)
    return not masks.is_ranges(mask) and of_all_rows and not method.places


@torch.compiler.disable  # the values of the mask decide the call
def _by_values(module, query, key, value, mask, method, named, is_causal, sliding_window, *sums):
    return attend_visible(module, query, key, value, mask, method, named, is_causal,
                          sliding_window, _lengths(*sums))


def attend_visible(module, query, key, value, attention_mask, method, named, is_causal=None,
                   sliding_window=None, lengths=None):
    """Attention [batch, heads, queries, columns] by a method, a function of query, key, value and
    keywords of a call (such as ``named``), of what a mask of transformers shows."""
    if attention_mask is None:
        place = _without_mask(module, query, key, is_causal, sliding_window)
        if lengths is not None:
            place = {"causal": place["causal"], "packed_queries": lengths[0],
                     "packed_keys": lengths[1]}
        return method(query, key, value, **named, **place)
    if masks.is_ranges(attention_mask):
        if lengths is not None:
            if lengths[0] != lengths[1]:
                raise ModelError("cu_seq_lens_k: expected those of cu_seq_lens_q, "
                                 f"{list(lengths[0])}, beside a mask, but got {list(lengths[1])}")
            attention_mask = masks.narrowed(attention_mask, lengths[0], key.size(2))
        return _by_ranges(module, query, key, value, attention_mask, method, named)
    if lengths is not None:
        raise ModelError("cu_seq_lens_q: expected None beside an attention_mask of queries and "
                         f"keys, {list(attention_mask.shape)}, but got {list(lengths[0])}")
    if not method.places or attention_mask.size(2) == 1:
        first_query = masks.first_query_of(attention_mask, query.size(2), key.size(2))
        if method.places:
            _check_positions(module, key, first_query, torch.ones(1, 1, dtype=torch.bool))
        return method(query, key, value, **named, causal=False, first_query=first_query,
                      mask=attention_mask)
    raise ModelError("attention_mask: expected one that shows consecutive keys to each query, "
                     f"as the model is stretched, but got {list(attention_mask.shape)}")


@dataclass
class Method:
    """A method with its options, as attention is called with."""

    name: str
    options: dict
    train_length: int | None
    parameters: tuple

    @property
    def places(self) -> bool:
        """Whether results depend on positions, and not on distances alone."""
        return self.name not in ("none", "t5")

    def __call__(self, query, key, value, **named):
        heads, columns = query.size(1), query.size(3)
        shape = [1, heads, key.size(1), columns, heads * columns,
                 key.size(2) if self.train_length is None else self.train_length]
        method = Named(self.name, shape, options_text(self.options), list(self.parameters))
        return attend_by(method, query, key, value, Call(**named))


@dataclass
class Positions:
    """The position_ids of a forward pass of a stretched model, [1 or batch, queries], and whether
    they begin again within a row: the mask must then separate packed sequences."""

    ids: torch.Tensor
    resets: bool


def note_positions(config, positions):
    """Notes the Positions of the forward pass in progress."""
    masks.STRETCHED.add(id(config))
    _POSITIONS[id(config)] = positions


_POSITIONS: dict[int, Any] = {}  # by id of the configuration


def _check_positions(module, key, first_query, sees_itself):
    """Checks the positions of a call against those of the cached rows: once for all layers."""
    noted = _POSITIONS.get(id(getattr(module, "config", None)))
    if noted is not None and module.__dict__.get("_sextant_rows"):
        rows.check(module, key, first_query, sees_itself, noted.ids)
    return noted is not None and noted.resets


def _lengths(queries, keys):
    """The cumulative lengths of flash attention as tuples, (of queries, of keys); None without."""
    if queries is None and keys is None:
        return None
    return tuple(tuple((x if x is not None else y).tolist())
                 for x, y in ((queries, keys), (keys, queries)))


def _by_ranges(module, query, key, value, ranges, method, named):
    view = masks.view_of(ranges, key.size(2))
    resets = method.places and _check_positions(
        module, key, *masks.own_rows(ranges))
    if resets and "packed_queries" not in view.arguments:
        raise ModelError("position_ids: expected consecutive ones where the model does not "
                         "separate packed sequences (transformers does without cache and "
                         "attention_mask), but they begin again")
    if method.places and len(set(view.origins)) > 1:
        # Entries of the batch have other positions in the same rows.
        views = [masks.view_of(masks.entry(ranges, b), key.size(2)) for b in range(query.size(0))]
        return torch.cat([_in_view(*(x[b:b + 1] for x in (query, key, value)), one, method, named)
                          for b, one in enumerate(views)])
    return _in_view(query, key, value, view, method, named)


def _in_view(query, key, value, view, method, named):
    first, last = view.keys
    if last == first:
        return query.new_zeros(*query.shape[:3], value.size(3))
    if view.keys != (0, key.size(2)):
        key, value = key[:, :, first:last], value[:, :, first:last]
        if named.get("key_bias") is not None:
            named = {**named, "key_bias": named["key_bias"][..., first:last]}
    place = dict(view.arguments)
    if method.places and "packed_queries" not in place:
        place["first_key"] = view.origins[0] + first
        place["first_query"] += place["first_key"]
    return method(query, key, value, **named, **place)


def _without_mask(module, query, key, is_causal, sliding_window):
    """The visibility that sdpa's interface gives to a layer without a mask."""
    causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
    place = {"causal": bool(causal) and query.size(2) > 1,
             "first_query": 0 if causal and query.size(2) > 1 else key.size(2) - query.size(2)}
    if sliding_window is not None:
        raise ModelError(f"sliding_window: expected a mask beside it, but got {sliding_window} "
                         "alone")
    return place


def method_of(module, position_bias):
    """The method by which a layer computes attention, its options, length of training and
    parameters."""
    if position_bias is None:
        return *getattr(module, "_sextant_method", ("none", {}, None)), ()
    if position_bias.numel() == 0:  # of cross-attention: see t5.py
        return "none", {}, None, ()
    if position_bias.dim() != 2:
        raise ModelError(
            f"position_bias: {type(module).__name__}: expected the table of the T5 family" +
            (", which a model has after sextant.transformers.accelerate(model)"
             if hasattr(module, "compute_bias") and "_sextant_replaced" not in module.__dict__
             else "") +
            f", but got a bias by query and key, {list(position_bias.shape)}")
    options = {"buckets": position_bias.size(0),
               "max_distance": module.relative_attention_max_distance,
               "bidirectional": not getattr(module, "is_decoder", True)}
    return "t5", options, None, (position_bias,)


# The names of all arguments that a call may have.
KNOWN = NO_EFFECT | frozenset(inspect.signature(attend).parameters) - {"module", "others"}


def register():
    """Registers the interface with transformers. Calls after the first change nothing."""
    AttentionInterface.register(NAME, attend)
    AttentionMaskInterface.register(NAME, masks.visibility)
