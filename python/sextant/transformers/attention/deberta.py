"""DeBERTa v2 and v3: disentangled attention by Sextant's method "deberta".

The swap replaces the forward of each DisentangledSelfAttention, and lets the encoder make neither
relative positions nor a mask of queries x keys. Weights keep their names.
"""

import functools
import math

from sextant._attention import attention
from sextant.transformers.errors import ModelError


def layers(model):
    """The attention modules of DeBERTa v2 and v3."""
    return [module for module in model.modules()
            if type(module).__name__ == "DisentangledSelfAttention"
            and type(module).__module__.endswith("deberta_v2.modeling_deberta_v2")]


def swap(model):
    """Swaps all layers and encoders."""
    for module in model.modules():
        if type(module).__name__ == "DebertaV2Encoder":
            module.get_rel_pos, module.get_attention_mask = _given_positions, _mask_of_keys
    for module in layers(model):
        module.forward = functools.partial(_attend, module)


def unswap(model):
    for module in model.modules():
        for name, own in (("get_rel_pos", _given_positions), ("get_attention_mask", _mask_of_keys),
                          ("forward", _attend)):
            found = module.__dict__.get(name)
            if getattr(found, "func", found) is own:
                delattr(module, name)


def is_swapped(module):
    return getattr(module.__dict__.get("forward"), "func", None) is _attend


def _given_positions(hidden_states, query_states=None, relative_pos=None):
    return relative_pos


def _mask_of_keys(attention_mask):
    """[batch, keys] becomes [batch, 1, 1, keys]: every query sees the keys that are not padding."""
    if attention_mask.dim() <= 2:
        return attention_mask[:, None, None, :]
    return attention_mask[:, None] if attention_mask.dim() == 3 else attention_mask


def _attend(module, hidden_states, attention_mask, output_attentions=False, query_states=None,
            relative_pos=None, rel_embeddings=None):
    if output_attentions:
        raise ModelError("output_attentions: expected False, as Sextant computes no matrix of "
                         "attention weights, but got True")
    if relative_pos is not None:
        raise ModelError("relative_pos: expected None, as positions are consecutive, but got a "
                         "tensor")
    queries = hidden_states if query_states is None else query_states

    def heads(x):
        return x.unflatten(2, (module.num_attention_heads, module.attention_head_size)).transpose(
            1, 2)

    q, k = heads(module.query_proj(queries)), heads(module.key_proj(hidden_states))
    v = heads(module.value_proj(hidden_states))
    mask = None if bool(attention_mask.all()) else attention_mask.bool()
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
