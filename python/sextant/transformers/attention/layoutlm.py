"""LayoutLMv3: biases by bucket of the distance in the text and of both distances on the page, by
Sextant's method "layoutlm". Its encoder makes them for all layers, from constant tables.

Positions in the text begin again where the patches of an image follow, so each run of consecutive
positions is attended to for itself. UDOP's page has real numbers, and no table fits them.
"""

import torch

from sextant._attention import attention
from sextant.transformers import masks
from sextant.transformers.errors import ModelError
from sextant.transformers.swap import refuse_given, refuse_weights, replaces
from sextant.transformers.terms import NONE, attend, heads_of, joined

MOST_RUNS = 4


@replaces("LayoutLMv3Encoder._cal_1d_pos_emb", "layoutlmv3")
def _text(module, position_ids):
    return module.rel_pos_bias.weight.detach(), module.max_rel_pos, _runs(position_ids)


@replaces("LayoutLMv3Encoder._cal_2d_pos_emb", "layoutlmv3")
def _page(module, bbox):
    return (module.rel_pos_x_bias.weight.detach(), module.rel_pos_y_bias.weight.detach(),
            module.max_rel_2d_pos, bbox[..., [0, 3]].transpose(1, 2).long().cpu())


@replaces("LayoutLMv3Encoder._compute_position_bias", "layoutlmv3")
def _both(module, position_ids, bbox):
    if not module.has_relative_attention_bias:
        return None
    return _text(module, position_ids), (_page(module, bbox) if module.has_spatial_attention_bias
                                         else None)


@torch.compiler.disable
def _runs(positions):
    """The rows [first, last) of runs of consecutive positions, and the first position of each."""
    positions = positions.cpu()
    first = [0, *(positions[0].diff() != 1).nonzero()[:, 0].add(1).tolist()]
    if len(first) > MOST_RUNS or not bool((positions == positions[:1]).all()):
        raise ModelError(f"position_ids: expected at most {MOST_RUNS} runs of consecutive ones, "
                         f"the same for the whole batch, but got {positions.tolist()}"[:300])
    last = [*first[1:], positions.size(1)]
    return [(a, b, int(positions[0, a])) for a, b in zip(first, last)]


@replaces("LayoutLMv3SelfAttention", "layoutlmv3", by="layoutlm")
def _layoutlmv3(module, hidden_states, attention_mask=None, head_mask=None,
                output_attentions=False, rel_pos=None, rel_2d_pos=None, position_bias=None, **_):
    """rel_pos and rel_2d_pos: of transformers before 5; position_bias: both."""
    refuse_weights(module, output_attentions)
    refuse_given(head_mask=head_mask)
    text, page = position_bias or (rel_pos, rel_2d_pos)
    q, k, v = (heads_of(project(hidden_states), module.num_attention_heads)
               for project in (module.query, module.key, module.value))
    if text is None:
        scale = module.attention_head_size**-0.5
        out = attend(module, q, k, v, attention_mask, NONE, scale=scale, dropout=module.dropout.p)
    else:
        dropout = module.dropout.p if module.training else 0.0
        out = _by_runs(q, k, v, _shown(attention_mask, k), text, page, dropout)
    return out, None


@torch.compiler.disable
def _shown(mask, k):
    """Which keys all queries see, bool [1 or batch, keys]; None for all."""
    if mask is None or masks.is_stated(mask):
        return None
    if masks.is_ranges(mask):
        view = masks.view_of(mask, k.size(2))
        if view.arguments["causal"]:
            raise ModelError("attention_mask: expected one of keys, but got a causal one")
        shown = torch.zeros(1, k.size(2), dtype=torch.bool)
        shown[:, slice(*view.keys)] = True
        if "mask" in view.arguments:
            given = view.arguments["mask"][:, 0, 0].cpu()
            shown = shown.repeat(given.size(0), 1)
            shown[:, slice(*view.keys)] = given
        return shown.to(k.device)
    if mask.size(2) != 1:
        raise ModelError("attention_mask: expected [batch, keys], but got one of queries and keys, "
                         f"{list(mask.shape)}")
    return (mask if mask.dtype == torch.bool else mask == 0)[:, 0, 0]


@torch.compiler.disable  # the positions decide the calls
def _by_runs(q, k, v, shown, text, page, dropout):
    table, farthest, runs = text
    if page is None:
        places = torch.zeros(1, 2, q.size(2), dtype=torch.long)
        page = table.new_zeros(table.size(0), 4), table.new_zeros(table.size(0), 4), 2, places
    x, y, farthest_on_page, places = page
    options = {"buckets": table.size(1), "max_distance": farthest, "page_buckets": x.size(1),
               "max_page_distance": farthest_on_page}
    found = []
    for a, b, query in runs:
        parts = []
        for c, d, key in runs:
            parts.append(attention(
                q[:, :, a:b], k[:, :, c:d], v[:, :, c:d], "layoutlm", parameters=[table, x, y],
                options=options, causal=False, first_query=query, first_key=key,
                query_positions=places[..., a:b], key_positions=places[..., c:d],
                mask=None if shown is None else shown[:, None, None, c:d], dropout_p=dropout,
                return_lse=True))
        found.append(joined(parts))
    return torch.cat(found, 2).transpose(1, 2).flatten(2)


def _refuse(module):
    raise ModelError("UdopModel: expected distances on the page that are whole numbers, but UDOP "
                     "rounds 100 times the difference of real numbers for each query and key")


@replaces("RelativePositionBiasAggregated", "udop", when=_refuse)
def _udop(module, attention_mask=None, bbox=None):
    """No call reaches it."""
