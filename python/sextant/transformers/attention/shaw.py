"""Relative vectors of keys, and of values: q.(k + A[d]) and v + C[d], by method "shaw".

Their code looks a vector up for each query and key, or multiplies queries with all vectors and
shifts the products to queries x keys.
"""

import torch

from sextant.transformers.errors import ModelError
from sextant.transformers.reach import asks_interface
from sextant.transformers.swap import refuse_given, refuse_weights, replaces
from sextant.transformers.terms import (NONE, Terms, attend, heads_of, keys_and_values,
                                        shared_by_heads)


@replaces("SpeechT5RelativePositionalEncoding", "speecht5")
def _all_vectors(module, hidden_states):
    # A copy: a layer under torch.utils.checkpoint must not get a parameter itself.
    return module.pe_k.weight.clone()


def _own(module):
    return not asks_interface(module)


@replaces("SpeechT5Attention", "speecht5", ranges=True,
          by="shaw", terms=lambda module: not module.is_decoder)
@replaces("SeamlessM4TAttention", "seamless_m4t", by="none", when=_own)
@replaces("SeamlessM4Tv2Attention", "seamless_m4t_v2", by="none", when=_own)
def _with_cache(module, hidden_states, key_value_states=None, cache=None, attention_mask=None,
                position_bias=None, output_attentions=False, *, past_key_values=None,
                encoder_hidden_states=None, layer_head_mask=None, cache_position=None, **_):
    refuse_weights(module, output_attentions)
    refuse_given(layer_head_mask=layer_head_mask)
    states = encoder_hidden_states if key_value_states is None else key_value_states
    q = heads_of(module.q_proj(hidden_states), module.num_heads)
    k, v = keys_and_values(module, module.num_heads, (module.k_proj, module.v_proj), hidden_states,
                           states, past_key_values if cache is None else cache, cache_position)
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


# The attention of BERT's kin before transformers 5: class -> folder.
_BERT = {
    "BertSelfAttention": "bert", "BertGenerationSelfAttention": "bert_generation",
    "BridgeTowerSelfAttention": "bridgetower", "CamembertSelfAttention": "camembert",
    "Data2VecTextSelfAttention": "data2vec", "ElectraSelfAttention": "electra",
    "ErnieSelfAttention": "ernie", "MegatronBertSelfAttention": "megatron_bert",
    "RobertaSelfAttention": "roberta", "RobertaPreLayerNormSelfAttention": "roberta_prelayernorm",
    "RoCBertSelfAttention": "roc_bert", "XLMRobertaSelfAttention": "xlm_roberta",
    "XLMRobertaXLSelfAttention": "xlm_roberta_xl", "XmodSelfAttention": "xmod"}


def _is_relative(module):
    return getattr(module, "position_embedding_type", None) in ("relative_key",
                                                                "relative_key_query")


def _bert_terms(module, q, k, factor=1.0):
    """Row max_position_embeddings - 1 of the table is distance 0."""
    most = module.max_position_embeddings
    if max(q.size(2), k.size(2)) > most:
        raise ModelError(f"{type(module).__name__}: expected at most {most} rows, as vectors are "
                         f"those of max_position_embeddings={most}, but got "
                         f"{max(q.size(2), k.size(2))}")
    rows = shared_by_heads(factor * module.distance_embedding.weight.to(q.dtype), most - 1, 1)
    both = module.position_embedding_type == "relative_key_query"
    return Terms(q.size(1), on_query=rows, on_key=rows if both else None)


def _bert(module, hidden_states, attention_mask=None, head_mask=None, encoder_hidden_states=None,
          past_key_values=None, output_attentions=False, cache_position=None, past_key_value=None):
    refuse_weights(module, output_attentions)
    refuse_given(head_mask=head_mask, past_key_value=past_key_value)
    heads = module.num_attention_heads
    q = heads_of(module.query(hidden_states), heads)
    k, v = keys_and_values(module, heads, (module.key, module.value), hidden_states,
                           encoder_hidden_states, past_key_values, cache_position)
    if past_key_values is not None and q.size(2) > 1:
        raise ModelError("use_cache: expected False, or one token, as with a cache this model's "
                         "code takes all tokens of a call for the last one, but got "
                         f"{q.size(2)} tokens")
    first = 0 if past_key_values is None else k.size(2) - 1
    out = attend(module, q, k, v, attention_mask, _bert_terms(module, q, k),
                 scale=module.attention_head_size**-0.5, dropout=module.dropout.p,
                 first_query=first)
    return out, None


for _class, _folder in _BERT.items():
    replaces(_class, _folder, by="shaw", when=_is_relative)(_bert)


@replaces("AlbertAttention", "albert", by="shaw", when=_is_relative)
def _albert(module, hidden_states, attention_mask=None, head_mask=None, output_attentions=False):
    refuse_weights(module, output_attentions)
    refuse_given(head_mask=head_mask)
    q, k, v = (heads_of(project(hidden_states), module.num_attention_heads)
               for project in (module.query, module.key, module.value))
    scale = module.attention_head_size**-0.5
    # The terms by distance are not scaled.
    out = attend(module, q, k, v, attention_mask, _bert_terms(module, q, k, 1 / scale),
                 scale=scale, dropout=module.attention_dropout.p)
    out = module.output_dropout(module.dense(out))
    return (module.LayerNorm(hidden_states + out),)
