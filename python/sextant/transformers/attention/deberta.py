"""DeBERTa, all versions, and SEW-D: disentangled attention by Sextant's method "deberta".

The encoders then make neither relative positions nor a mask of queries x keys.
"""

import inspect
import math

from sextant._attention import attention
from sextant._call import compiling
from sextant.transformers.errors import ModelError
from sextant.transformers.swap import refuse_weights, replaces
from sextant.transformers.terms import heads_of


@replaces("DebertaEncoder.get_rel_pos", "deberta")
@replaces("DebertaV2Encoder.get_rel_pos", "deberta_v2")
@replaces("SEWDTransformerEncoder.get_rel_pos", "sew_d")
def _given_positions(module, hidden_states, query_states=None, relative_pos=None):
    return relative_pos


@replaces("DebertaEncoder.get_attention_mask", "deberta")
@replaces("DebertaV2Encoder.get_attention_mask", "deberta_v2")
@replaces("SEWDTransformerEncoder.get_attention_mask", "sew_d")
def _mask_of_keys(module, attention_mask):
    """[batch, keys] becomes [batch, 1, 1, keys]: every query sees the keys that are not padding."""
    if attention_mask.dim() <= 2:
        return attention_mask[:, None, None, :]
    return attention_mask[:, None] if attention_mask.dim() == 3 else attention_mask


def _disentangled(module, q, k, v, mask, relative_pos, rel_embeddings, projections, options):
    """Attention [batch, rows, heads * columns]. projections: of relative positions, by term."""
    if relative_pos is not None:
        raise ModelError("relative_pos: expected None, as positions are consecutive, but got a "
                         "tensor")
    mask = mask.bool() if compiling() or not mask.all() else None
    dropout = getattr(module.dropout, "drop_prob", getattr(module.dropout, "p", 0.0))
    named = {"causal": False, "first_query": 0, "mask": mask,
             "scale": 1 / math.sqrt(q.size(3) * (1 + len(module.pos_att_type))),
             "dropout_p": dropout if module.training else 0.0}
    if not module.relative_attention or not projections:
        out = attention(q, k, v, **named)
    else:
        parameters = [x for part in projections.values() for x in (part.weight, part.bias)
                      if x is not None]
        options = {**options, "norm": False, "max_positions": module.max_relative_positions,
                   **{term: term in projections for term in ("c2p", "p2c")}}
        out = attention(q, k, v, "deberta", width=rel_embeddings.size(1), options=options,
                        parameters=[module.pos_dropout(rel_embeddings), *parameters], **named)
    return out.transpose(1, 2).flatten(2)


def _terms(module, c2p, p2c):
    """The projections of the terms that a module has, by the names of their attributes."""
    wrong = set(module.pos_att_type) - {"c2p", "p2c"}
    if wrong:
        raise ModelError(f"pos_att_type: expected c2p and p2c, but got {sorted(wrong)}")
    return {term: getattr(module, name) for term, name in (("c2p", c2p), ("p2c", p2c))
            if module.relative_attention and term in module.pos_att_type}


@replaces("DisentangledSelfAttention", "deberta_v2", by="deberta")
def _version_2(module, hidden_states, attention_mask, output_attentions=False, query_states=None,
               relative_pos=None, rel_embeddings=None, **named):
    refuse_weights(module, output_attentions)
    queries = hidden_states if query_states is None else query_states
    q, k, v = (heads_of(x, module.num_attention_heads) for x in (
        module.query_proj(queries), module.key_proj(hidden_states),
        module.value_proj(hidden_states)))
    names = ("key_proj", "query_proj") if module.share_att_key else (
        "pos_key_proj", "pos_query_proj")
    options = {}
    if module.relative_attention:
        rel_embeddings = rel_embeddings[: 2 * module.pos_ebd_size]
        options = {"version": 2, "buckets": max(module.position_buckets, 0)}
    return _disentangled(module, q, k, v, attention_mask, relative_pos, rel_embeddings,
                         _terms(module, *names), options), None


def _returns_weights(module):
    return "output_attentions" not in inspect.signature(type(module).forward).parameters


@replaces("DisentangledSelfAttention", "sew_d", by="deberta", when=_returns_weights)
def _sew_d(module, hidden_states, attention_mask, **named):
    return _version_2(module, hidden_states, attention_mask, **named)


@replaces("DisentangledSelfAttention", "sew_d", by="deberta",
          when=lambda module: not _returns_weights(module))
def _sew_d_before_5(module, hidden_states, attention_mask, output_attentions=False, **named):
    return _version_2(module, hidden_states, attention_mask, output_attentions, **named)[0]


def _has_own_heads(module):
    if module.talking_head:
        raise ModelError("talking_head: expected False, as the heads of Sextant's attention do not "
                         "mix, but got True")
    return True


@replaces("DisentangledSelfAttention", "deberta", by="deberta", when=_has_own_heads)
def _version_1(module, hidden_states, attention_mask, output_attentions=False, query_states=None,
               relative_pos=None, rel_embeddings=None):
    refuse_weights(module, output_attentions)
    if query_states is not None:
        raise ModelError("query_states: expected None, as queries are those of the layer, but got "
                         "a tensor")
    heads = module.num_attention_heads
    q, k, v = heads_of(module.in_proj(hidden_states), heads).chunk(3, 3)
    q, v = (x + bias.view(heads, 1, -1).to(x.dtype)
            for x, bias in ((q, module.q_bias), (v, module.v_bias)))
    return _disentangled(module, q, k, v, attention_mask, relative_pos, rel_embeddings,
                         _terms(module, "pos_proj", "pos_q_proj"), {"version": 1}), None
