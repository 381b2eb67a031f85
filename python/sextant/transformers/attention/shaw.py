"""Vectors by distance as of Shaw et al.: scores q.(k + A[d]), and values v + C[d].

Their code looks a vector up for each query and key, or multiplies queries with all vectors and
shifts the products to queries x keys.
"""

import torch

from sextant.transformers.reach import asks_interface
from sextant.transformers.swap import refuse_given, refuse_weights, replaces
from sextant.transformers.terms import NONE, Terms, attend, heads_of, shared_by_heads


def keys_and_values(module, hidden_states, key_value_states, cache, cache_position=None):
    """The keys and values of a layer with k_proj and v_proj, those of an encoder if there are
    key_value_states, with the rows of a cache."""
    at, given = module.layer_idx, hidden_states if key_value_states is None else key_value_states
    cross, both = key_value_states is not None, hasattr(cache, "cross_attention_cache")
    own = getattr(cache, ("self", "cross")[cross] + "_attention_cache", cache)
    if both and cross and cache.is_updated.get(at):
        return own.layers[at].keys, own.layers[at].values
    k, v = (heads_of(project(given), module.num_heads)
            for project in (module.k_proj, module.v_proj))
    if cache is not None:
        k, v = own.update(k, v, at, {"cache_position": None if cross else cache_position})
        if both and cross:
            cache.is_updated[at] = True
    return k, v


@replaces("SpeechT5RelativePositionalEncoding", "speecht5")
def _all_vectors(module, hidden_states):
    # A copy: a layer under torch.utils.checkpoint must not get a parameter itself.
    return module.pe_k.weight.clone()


def _own(module):
    return not asks_interface(module)


@replaces("SpeechT5Attention", "speecht5", ranges=True,
          by=lambda module: "none" if module.is_decoder else "shaw")
@replaces("SeamlessM4TAttention", "seamless_m4t", by="none", when=_own)
@replaces("SeamlessM4Tv2Attention", "seamless_m4t_v2", by="none", when=_own)
def _with_cache(module, hidden_states, key_value_states=None, cache=None, attention_mask=None,
                position_bias=None, output_attentions=False, *, past_key_values=None,
                encoder_hidden_states=None, layer_head_mask=None, cache_position=None, **_):
    refuse_weights(module, output_attentions)
    refuse_given(layer_head_mask=layer_head_mask)
    states = encoder_hidden_states if key_value_states is None else key_value_states
    q = heads_of(module.q_proj(hidden_states), module.num_heads)
    k, v = keys_and_values(module, hidden_states, states,
                           past_key_values if cache is None else cache, cache_position)
    terms = NONE if position_bias is None else Terms(module.num_heads, on_query=shared_by_heads(
        position_bias.to(q.dtype), position_bias.size(0) // 2, 1))
    out = attend(module, q, k, v, attention_mask, terms, scale=module.scaling,
                 dropout=module.dropout)
    return module.out_proj(out), None


@replaces("VitsAttention", "vits", by="shaw", ranges=True)
def _vits(module, hidden_states, key_value_states=None, attention_mask=None, layer_head_mask=None,
          output_attentions=False):
    refuse_weights(module, output_attentions)
    refuse_given(layer_head_mask=layer_head_mask)
    q, k, v = (heads_of(project(hidden_states), module.num_heads)
               for project in (module.q_proj, module.k_proj, module.v_proj))
    terms = NONE
    if module.window_size:
        # Rows of zeros at both ends are those of keys beyond the window.
        k_rows, v_rows = (shared_by_heads(torch.nn.functional.pad(x[0], (0, 0, 1, 1)).to(q.dtype),
                                  module.window_size + 1)
                          for x in (module.emb_rel_k, module.emb_rel_v))
        terms = Terms(module.num_heads, on_query=k_rows, on_value=v_rows)
    out = attend(module, q, k, v, attention_mask, terms, scale=module.scaling,
                 dropout=module.dropout)
    return module.out_proj(out), None
