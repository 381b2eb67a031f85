"""The T5 family: its table goes to the kernel instead of a bias of heads x queries x keys.

A layer asks the attention interface with a position_bias that ``compute_bias`` makes. It returns
the table itself here, [buckets, heads], and nothing for cross-attention, whose bias is zeros;
``interface.method_of`` reads them. Before transformers 5 the layers compute attention themselves,
and hand a bias to the next layer.
"""

from typing import Any

from transformers import EncoderDecoderCache

from sextant.transformers.errors import ModelError
from sextant.transformers.interface import Method, method_of
from sextant.transformers.reach import asks_interface
from sextant.transformers.swap import before, refuse_given, refuse_weights, replaces
from sextant.transformers.terms import attend, cached, heads_of


def _has_bias(module):
    return before(module, "has_relative_attention_bias")


# Without a bias the layer would make zeros of heads x queries x keys.
_HERE: dict[str, Any] = dict(by="t5", terms=_has_bias, when=asks_interface,
                             has_relative_attention_bias=True)


@replaces("T5Attention.compute_bias", "t5", **_HERE)
@replaces("MT5Attention.compute_bias", "mt5", **_HERE)
@replaces("UMT5Attention.compute_bias", "umt5", **_HERE)
@replaces("SwitchTransformersAttention.compute_bias", "switch_transformers", **_HERE)
@replaces("LongT5Attention.compute_bias", "longt5", **_HERE)
@replaces("Pop2PianoAttention.compute_bias", "pop2piano", **_HERE)
@replaces("Pix2StructTextAttention.compute_bias", "pix2struct", **_HERE)
def _table(module, *_, **__):
    return _table_of(module, _has_bias(module))


def _table_of(module, has_bias):
    if not has_bias:
        return next(module.parameters()).new_zeros(0)
    # A copy: a layer under torch.utils.checkpoint must not return its parameter itself.
    return module.relative_attention_bias.weight.clone()


def _computes_itself(module):
    if asks_interface(module):
        return False
    if getattr(module, "pruned_heads", None):
        raise ModelError("pruned_heads: expected none, as the table has a column for each head, "
                         f"but got {sorted(module.pruned_heads)}")
    return True


_BEFORE_5: dict[str, Any] = dict(by="t5", when=_computes_itself, ranges=True,
                                 terms=lambda module: module.has_relative_attention_bias)


@replaces("T5Attention", "t5", **_BEFORE_5)
@replaces("MT5Attention", "mt5", **_BEFORE_5)
@replaces("SwitchTransformersAttention", "switch_transformers", **_BEFORE_5)
@replaces("LongT5Attention", "longt5", **_BEFORE_5)
@replaces("Pop2PianoAttention", "pop2piano", **_BEFORE_5)
@replaces("Pix2StructTextAttention", "pix2struct", **_BEFORE_5)
def _attend(module, hidden_states, mask=None, key_value_states=None, position_bias=None,
            past_key_values=None, layer_head_mask=None, query_length=None, use_cache=False,
            output_attentions=False, cache_position=None):
    refuse_weights(module, output_attentions)
    refuse_given(layer_head_mask=layer_head_mask)
    names = ("q", "o") if hasattr(module, "q") else ("query", "output")
    project_q, project_out = (getattr(module, name) for name in names)
    q = heads_of(project_q(hidden_states), module.n_heads)
    k, v = _keys(module, hidden_states, key_value_states, past_key_values, cache_position)
    table = position_bias
    if table is None:
        table = _table_of(module, module.has_relative_attention_bias)
    causal = getattr(module, "is_decoder", True) and key_value_states is None
    first_query = int(cache_position[0]) if causal and cache_position is not None else None
    out = attend(module, q, k, v, None if mask is None else mask[:, :, :, :k.size(2)],
                 Method(*method_of(module, table)), scale=1.0, dropout=module.dropout,
                 first_query=first_query, causal=causal)
    return project_out(out), table


def _keys(module, hidden_states, key_value_states, cache, cache_position):
    """Key and value rows, with those of a cache. Rows of cross-attention are made once."""
    own, cross = cache, key_value_states is not None
    if isinstance(cache, EncoderDecoderCache):
        own = cache.cross_attention_cache if cross else cache.self_attention_cache
        if cross and cache.is_updated.get(module.layer_idx):
            return own.layers[module.layer_idx].keys, own.layers[module.layer_idx].values
        if cross:
            cache.is_updated[module.layer_idx] = True
    names = ("k", "v") if hasattr(module, "k") else ("key", "value")
    k, v = (heads_of(getattr(module, name)(key_value_states if cross else hidden_states),
                     module.n_heads) for name in names)
    return cached(module, own, k, v, None if cross else cache_position)


@replaces("UMT5Block", "umt5")
def _umt5_block(module, *arguments, **named):
    """Its attention is not told whether weights are asked for."""
    refuse_weights(module, named.get("output_attentions"))
    return type(module).forward(module, *arguments, **named)


@replaces("UMT5Attention", "umt5", **_BEFORE_5)
def _umt5(module, hidden_states, encoder_hidden_states=None, past_key_values=None,
          attention_mask=None, layer_head_mask=None, cache_position=None):
    out, _ = _attend(module, hidden_states, attention_mask, encoder_hidden_states, None,
                     past_key_values, layer_head_mask, cache_position=cache_position)
    return out, None
