"""Models whose encoder makes T5's bias by bucket once, as a tensor of heads x queries x keys for
all layers. The table takes its place.
"""

import torch

from sextant import tables
from sextant._call import constant
from sextant.transformers.errors import ModelError
from sextant.transformers.interface import Method
from sextant.transformers.swap import refuse_given, refuse_weights, replaces
from sextant.transformers.terms import Terms, attend, heads_of

MPNET = {"buckets": 32, "max_distance": 128, "bidirectional": True}  # whatever its configuration


def _has_buckets(module):
    rows = module.relative_attention_bias.num_embeddings
    if rows < MPNET["buckets"]:
        raise ModelError(f"relative_attention_num_buckets: expected at least {MPNET['buckets']}, "
                         f"the buckets of MPNet's code, but got {rows}")
    return True


@replaces("MPNetEncoder.compute_position_bias", "mpnet", when=_has_buckets)
def _table(module, x, position_ids=None, num_buckets=32):
    # A copy: a layer under torch.utils.checkpoint must not return its parameter itself.
    return module.relative_attention_bias.weight[:num_buckets].clone()


@replaces("MPNetSelfAttention", "mpnet", by="t5", ranges=True)
def _mpnet(module, hidden_states, attention_mask=None, head_mask=None, position_bias=None,
           output_attentions=False, **_):
    refuse_weights(module, output_attentions)
    if head_mask is not None and head_mask.dim() == 2:  # of transformers 5, which has no head_mask
        head_mask, position_bias = None, head_mask
    refuse_given(head_mask=head_mask)
    q, k, v = (heads_of(project(hidden_states), module.num_attention_heads)
               for project in (module.q, module.k, module.v))
    out = attend(module, q, k, v, attention_mask, Method("t5", MPNET, None, (position_bias,)),
                 scale=module.attention_head_size**-0.5, dropout=module.dropout.p)
    return (module.o(out),)


@replaces("WavLMAttention", "wavlm", by="wavlm")
def _wavlm(module, hidden_states, attention_mask=None, position_bias=None, output_attentions=False,
           index=0, **_):
    """The gate of a query is a column of q, in which the bias is a vector by distance."""
    refuse_weights(module, output_attentions)
    table = position_bias
    if table is None:  # of the first layer
        table = module.rel_attn_embed.weight.clone()
    q, k, v = (heads_of(project(hidden_states), module.num_heads)
               for project in (module.q_proj, module.k_proj, module.v_proj))
    x = heads_of(hidden_states, module.num_heads)
    u, w = module.gru_rel_pos_linear(x).unflatten(3, (2, 4)).sum(4).sigmoid().unbind(3)
    gates = u * (w * module.gru_rel_pos_const[..., 0] - 1) + 2
    q = torch.cat([(gates / module.scaling)[..., None].to(q.dtype), q], 3)
    k = torch.nn.functional.pad(k, (1, 0))

    def on_query(distances):
        most = module.max_distance  # all farther ones have the last bucket
        rows = torch.tensor(_buckets(module.num_buckets, most), device=distances.device)
        return table.t()[..., None], rows[distances.long().clamp(-most, most) + most]
    mask = None if attention_mask is None else attention_mask.eq(1)[:, None, None]
    out = attend(module, q, k, v, mask, Terms(module.num_heads, on_query=on_query),
                 scale=module.scaling, dropout=module.dropout)
    return module.out_proj(out), None, table


@constant
def _buckets(buckets, most):
    return tables.t5_buckets(torch.arange(-most, most + 1), buckets, most, True).tolist()
