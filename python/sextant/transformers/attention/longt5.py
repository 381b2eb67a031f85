"""LongT5's encoder (Guo et al. 2022, arXiv 2112.07916): T5's bias within a window of keys and,
where attention is "transient-global", beside them sums of blocks of inputs, whose bias is a second
table by distance of blocks. Both parts have one softmax, which their sums of exponentials join.
"""

import sys

import torch

from sextant._attention import attention
from sextant.transformers.swap import refuse_weights, replaces
from sextant.transformers.terms import heads_of, joined


def _qkv(module, *inputs):
    return [heads_of(project(x), module.n_heads)
            for project, x in zip((module.q, module.k, module.v), inputs)]


def _local(module, q, k, v, mask, table, **named):
    """mask: bool [batch, keys]."""
    options = {"buckets": table.size(0), "max_distance": module.relative_attention_max_distance,
               "bidirectional": True}
    return attention(q, k, v, "t5", parameters=[table], options=options, scale=1.0, causal=False,
                     first_query=0, mask=mask[:, None, None], window=(module.local_radius,) * 2,
                     dropout_p=module.dropout if module.training else 0.0, **named)


@replaces("LongT5LocalAttention", "longt5", by="t5")
def _attend_locally(module, hidden_states, mask=None, position_bias=None, output_attentions=False,
                    **_):
    refuse_weights(module, output_attentions)
    # A copy: a layer under torch.utils.checkpoint must not return its parameter itself.
    table = (module.relative_attention_bias.weight.clone() if position_bias is None else
             position_bias)
    if mask is None:
        shown = torch.ones(hidden_states.shape[:2], dtype=torch.bool, device=hidden_states.device)
    else:  # of blocks of queries x 3 blocks of keys, where a key sees itself unless it is padding
        shown = mask[:, 0].diagonal(module.block_len, 2, 3).flatten(1)[:, :hidden_states.size(1)]
    q, k, v = _qkv(module, *[hidden_states] * 3)
    out = _local(module, q, k, v, shown, table)
    return module.o(out.transpose(1, 2).flatten(2)), table


@replaces("LongT5TransientGlobalAttention", "longt5", by="t5")
def _attend_to_sums(module, hidden_states, mask=None, position_bias=None, output_attentions=False,
                    **_):
    refuse_weights(module, output_attentions)
    tables = position_bias
    if tables is None:  # of the first layer
        tables = torch.stack([module.relative_attention_bias.weight,
                              module.global_relative_attention_bias.weight])
    if mask is None:
        mask = torch.ones(hidden_states.shape[:2], device=hidden_states.device)
    q, k, v = _qkv(module, *[hidden_states] * 3)
    parts = [_local(module, q, k, v, mask != 0, tables[0], return_lse=True)]
    blocks, shown = sys.modules[type(module).__module__]._make_global_fixed_block_ids(
        mask, module.global_block_size)
    if shown.size(1):
        sums = module.global_input_layer_norm(_sums(hidden_states, blocks.long(), shown.size(1)))
        _, k, v = _qkv(module, sums, sums, sums)
        parts.append(_by_blocks(module, q, k, v, blocks, shown == 1, tables[1]))
    out = joined(parts)
    return module.o(out.transpose(1, 2).flatten(2)), tables


def _sums(x, blocks, count):
    """The sums of x [batch, rows, columns] by block; blocks [batch, rows], -1 for none."""
    kind = torch.promote_types(x.dtype, torch.float32)
    sums = torch.zeros(x.size(0), count + 1, x.size(2), dtype=kind, device=x.device)
    rows = torch.where(blocks < 0, count, blocks)[..., None].expand_as(x)
    return sums.scatter_add(1, rows, x.to(kind))[:, :count].to(x.dtype)


def _by_blocks(module, q, k, v, blocks, shown, table):
    """Attention to blocks: LayoutLM's bias along one axis of the page, and zeros beside it."""
    places = blocks.clamp(min=0).long()
    keys = torch.arange(k.size(2), device=k.device)[None]
    none = table.new_zeros(table.size(1), 4)
    return attention(
        q, k, v, "layoutlm", parameters=[none, table.t(), torch.zeros_like(table.t())],
        options={"flavour": "v2", "buckets": 4, "page_buckets": table.size(0),
                 "max_page_distance": module.relative_attention_max_distance},
        scale=1.0, causal=False, first_query=0, mask=shown[:, None, None], return_lse=True,
        query_positions=torch.stack([places, torch.zeros_like(places)], 1).cpu(),
        key_positions=torch.stack([keys, torch.zeros_like(keys)], 1).cpu(),
        dropout_p=module.dropout if module.training else 0.0)
