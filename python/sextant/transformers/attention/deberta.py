"""DeBERTa v2 and v3: disentangled attention by Sextant's method "deberta".

The encoder then makes neither relative positions nor a mask of queries x keys.
"""

import math

from sextant._attention import attention
from sextant._call import compiling
from sextant.transformers.errors import ModelError
from sextant.transformers.swap import refuse_weights, replaces


@replaces("DebertaV2Encoder.get_rel_pos", "deberta_v2")
def _given_positions(module, hidden_states, query_states=None, relative_pos=None):
    return relative_pos


@replaces("DebertaV2Encoder.get_attention_mask", "deberta_v2")
def _mask_of_keys(module, attention_mask):
    """[batch, keys] becomes [batch, 1, 1, keys]: every query sees the keys that are not padding."""
    if attention_mask.dim() <= 2:
        return attention_mask[:, None, None, :]
    return attention_mask[:, None] if attention_mask.dim() == 3 else attention_mask


@replaces("DisentangledSelfAttention", "deberta_v2", by="deberta")
def _attend(module, hidden_states, attention_mask, output_attentions=False, query_states=None,
            relative_pos=None, rel_embeddings=None):
    refuse_weights(module, output_attentions)
    if relative_pos is not None:
        raise ModelError("relative_pos: expected None, as positions are consecutive, but got a "
                         "tensor")
    queries = hidden_states if query_states is None else query_states

    def heads(x):
        return x.unflatten(2, (module.num_attention_heads, module.attention_head_size)).transpose(
            1, 2)

    q, k = heads(module.query_proj(queries)), heads(module.key_proj(hidden_states))
    v = heads(module.value_proj(hidden_states))
    mask = attention_mask.bool() if compiling() or not attention_mask.all() else None
    named = {"causal": False, "first_query": 0, "mask": mask,
             "dropout_p": module.dropout.p if module.training else 0.0}
    terms = {name: name in module.pos_att_type for name in ("c2p", "p2c")}
    if not module.relative_attention or not any(terms.values()):
        scale = 1 / math.sqrt(module.attention_head_size * (1 + sum(terms.values())))
        out = attention(q, k, v, scale=scale, **named)
    else:
        table = module.pos_dropout(rel_embeddings[: 2 * module.pos_ebd_size])
        options = {"version": 2, "norm": False, "buckets": max(module.position_buckets, 0),
                   "max_positions": module.max_relative_positions, **terms}
        out = attention(q, k, v, "deberta", parameters=[table, *_projections(module, terms)],
                        width=hidden_states.size(-1), options=options, **named)
    return out.transpose(1, 2).flatten(2), None


def _projections(module, terms):
    """Weights and biases of the projections of relative positions."""
    if module.share_att_key:
        projections = {"c2p": module.key_proj, "p2c": module.query_proj}
    else:
        projections = {"c2p": getattr(module, "pos_key_proj", None),
                       "p2c": getattr(module, "pos_query_proj", None)}
    for name in ("c2p", "p2c"):
        if terms[name]:
            yield projections[name].weight
            yield projections[name].bias
