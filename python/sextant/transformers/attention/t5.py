"""The T5 family: its table goes to the kernel instead of a bias of heads x queries x keys.

A layer asks the attention interface with a position_bias that ``compute_bias`` makes. It returns
the table itself here, [buckets, heads], and nothing for cross-attention, whose bias is zeros;
``interface.method_of`` reads them. Before transformers 5 the layers compute attention themselves,
and hand a bias to the next layer.
"""

from typing import Any

from sextant.transformers.errors import ModelError
from sextant.transformers.interface import Method, method_of
from sextant.transformers.reach import asks_interface
from sextant.transformers.swap import before, refuse_given, refuse_weights, replaces
from sextant.transformers.terms import attend, heads_of, keys_and_values


def _has_bias(module):
    return before(module, "has_relative_attention_bias")


def _classes(name="", but="", **named):
    """Registers a function for the attention of all of the family but one folder."""
    def register(function):
        for kind, folder in (("T5", "t5"), ("MT5", "mt5"), ("UMT5", "umt5"),
                             ("SwitchTransformers", "switch_transformers"), ("LongT5", "longt5"),
                             ("Pop2Piano", "pop2piano"), ("Pix2StructText", "pix2struct")):
            if folder != but:
                replaces(f"{kind}Attention{name}", folder, by="t5", **named)(function)
        return function
    return register


# Without a bias the layer would make zeros of heads x queries x keys.
@_classes(".compute_bias", when=asks_interface, terms=_has_bias, has_relative_attention_bias=True)
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


_BEFORE_5: dict[str, Any] = dict(when=_computes_itself, ranges=True,
                                 terms=lambda module: module.has_relative_attention_bias)


@_classes(but="umt5", **_BEFORE_5)
def _attend(module, hidden_states, mask=None, key_value_states=None, position_bias=None,
            past_key_values=None, layer_head_mask=None, query_length=None, use_cache=False,
            output_attentions=False, cache_position=None):
    refuse_weights(module, output_attentions)
    refuse_given(layer_head_mask=layer_head_mask)
    names = ("q", "k", "v", "o") if hasattr(module, "q") else ("query", "key", "value", "output")
    project_q, *projections, project_out = (getattr(module, name) for name in names)
    q = heads_of(project_q(hidden_states), module.n_heads)
    k, v = keys_and_values(module, module.n_heads, projections, hidden_states, key_value_states,
                           past_key_values, cache_position)
    table = position_bias
    if table is None:
        table = _table_of(module, module.has_relative_attention_bias)
    causal = getattr(module, "is_decoder", True) and key_value_states is None
    first_query = int(cache_position[0]) if causal and cache_position is not None else None
    out = attend(module, q, k, v, None if mask is None else mask[:, :, :, :k.size(2)],
                 Method(*method_of(module, table)), scale=1.0, dropout=module.dropout,
                 first_query=first_query, causal=causal)
    return project_out(out), table


@replaces("UMT5Block", "umt5")
def _umt5_block(module, *arguments, **named):
    """Its attention is not told whether weights are asked for."""
    refuse_weights(module, named.get("output_attentions"))
    return type(module).forward(module, *arguments, **named)


@replaces("UMT5Attention", "umt5", by="t5", **_BEFORE_5)
def _umt5(module, hidden_states, encoder_hidden_states=None, past_key_values=None,
          attention_mask=None, layer_head_mask=None, cache_position=None):
    out, _ = _attend(module, hidden_states, attention_mask, encoder_hidden_states, None,
                     past_key_values, layer_head_mask, cache_position=cache_position)
    return out, None
