"""XLNet: Transformer-XL's terms, and vectors for rows of the same segment, in two streams.

The score has (q + s) e[0] for keys of the query's segment and (q + s) e[1] for others. Without
what is the same for all keys of a query, it is (q + s) (e[0] - e[1]) for its segment: a column of
the query that keys of the segment have a 1 in. So segments are handed over by row, and not as a
matrix of queries x keys.
"""

import threading

import torch

from sextant.transformers import masks
from sextant.transformers.attention.transformer_xl import attend_xl
from sextant.transformers.errors import ModelError
from sextant.transformers.swap import refuse_given, refuse_weights, replaces

# The segments of the forward pass of a layer's model, by thread: {id of the layer: ids or None}.
_SEGMENTS = threading.local()


@replaces("XLNetModel", "xlnet")
def _model(module, input_ids=None, attention_mask=None, mems=None, perm_mask=None,
           target_mapping=None, token_type_ids=None, *others, **named):
    """Its own forward pass; layers find the segments in ``_SEGMENTS``."""
    if attention_mask is not None and bool(attention_mask.all()):
        attention_mask = None
    before = getattr(_SEGMENTS, "of", {})
    _SEGMENTS.of = {**before, **{id(layer.rel_attn): token_type_ids for layer in module.layer}}
    try:
        return type(module).forward(module, input_ids, attention_mask, mems, perm_mask,
                                    target_mapping, None, *others, **named)
    finally:
        _SEGMENTS.of = before


@replaces("XLNetRelativeAttention", "xlnet", by="xlnet")
def _attend(module, h, g, attn_mask_h, attn_mask_g, r, seg_mat, mems=None, target_mapping=None,
            head_mask=None, output_attentions=False):
    refuse_weights(module, output_attentions)
    refuse_given(seg_mat=seg_mat, head_mask=head_mask)
    given = h if mems is None or mems.dim() < 2 else torch.cat([mems, h])
    k, v = (torch.einsum("jbh,hnd->bnjd", given, weight) for weight in (module.k, module.v))
    segments = _segments(module, k.size(2))

    def stream(rows, mask, target_mapping=None):
        q = torch.einsum("ibh,hnd->bnid", rows, module.q)
        if target_mapping is not None:
            q = torch.einsum("bnmd,mlb->bnld", q, target_mapping)
        out = _attend_rows(module, q, k, v, r, mask, segments)
        if target_mapping is not None:
            out = torch.einsum("blx,mlb->bmx", out, target_mapping)
        out = out.unflatten(2, (module.n_head, module.d_head)).transpose(0, 1)
        return module.post_attention(rows, out)

    return (stream(h, attn_mask_h),
            None if g is None else stream(g, attn_mask_g, target_mapping))


def _segments(module, keys):
    """The segments of keys [batch, keys, number], one-hot; memory is of segment 0."""
    of = getattr(_SEGMENTS, "of", {})
    if id(module) not in of:  # such as a layer under torch.utils.checkpoint in the backward pass
        raise ModelError("token_type_ids: expected a layer in the forward pass of its XLNetModel, "
                         "which has the segments, but got a call of the layer alone")
    ids = of[id(module)]
    if ids is None:
        return None
    ids = torch.nn.functional.pad(ids, (keys - ids.size(1), 0))
    return (ids[..., None] == torch.unique(ids)).to(module.k.dtype)


def _attend_rows(module, q, k, v, r, mask, segments):
    """[batch, queries, heads * columns]. r: sinusoids [rows, batch, width], of distances from that
    of the last query and a key before key 0 down. A batch may have several: those of the first half
    and, backwards, the second (bi_data), or some for each entry by dropout."""
    more = None
    if segments is not None:
        scores = torch.einsum("bnid,nd->bni", q + module.r_s_bias[:, None],
                              module.seg_embed[0] - module.seg_embed[1])
        own = segments[:, None, segments.size(1) - q.size(2):]
        more = scores[..., None] * own, segments[:, None].expand(-1, k.size(1), -1, -1)
    batch = q.size(0)
    size = batch if r.stride(1) == 0 else 1 if module.training and module.dropout.p else (
        batch + 1) // 2
    visible = None if mask is None else masks.kept(mask, "visible", _visible)
    parts = []
    for first in range(0, batch, size):
        part = slice(first, first + size)
        vectors = torch.einsum("th,hnd->tnd", r[:, first].to(module.r.dtype), module.r)
        parts.append(attend_xl(
            module, q[part], k[part], v[part],
            visible if visible is None or visible.size(0) == 1 else visible[part], vectors,
            module.r_w_bias, module.r_r_bias, scale=module.scale, dropout=module.dropout.p,
            nearest=k.size(2), more=more and tuple(x[part] for x in more)))
    return torch.cat(parts)


def _visible(mask):
    return mask.permute(2, 3, 0, 1) == 0
