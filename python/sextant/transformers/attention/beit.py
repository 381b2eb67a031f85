"""BEiT and data2vec's pictures: a bias for each pair of distances on a grid, with a class token
before it, by the method "beit".

The module of the bias returns its table here, for the grid of the call, [2 height + 2, 2 width - 1,
heads]: the last three rows are those of the class token, each value in all columns. So tables of a
layer and of all layers add up, and tell the grid.
"""

import torch
from torch.nn.functional import interpolate

from sextant._attention import attention
from sextant.transformers import masks
from sextant.transformers.attention.swin import refuse_more
from sextant.transformers.errors import ModelError
from sextant.transformers.swap import before, refuse_weights, replaces
from sextant.transformers.terms import heads_of


class _Table(torch.Tensor):
    """A table; added to a mask, which shows all places (``_unmasked``), it stays as it is."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func in (torch.Tensor.add, torch.Tensor.__add__) and masks.is_ranges(args[1]):
            return args[0]
        return super().__torch_function__(func, types, args, kwargs or {})


masks.BY_VALUES.add("beit")


@replaces("BeitRelativePositionBias", "beit")
@replaces("Data2VecVisionRelativePositionBias", "data2vec")
def _table(module, window_size, *_, **__):
    height, width = (2 * n - 1 for n in module.window_size)
    table = module.relative_position_bias_table
    sizes = [2 * n - 1 for n in window_size]
    if height == width and sizes == [height, width]:
        places = table[:-3].unflatten(0, sizes)
    else:  # The code of transformers reads the rows as those of a grid width x height.
        places = interpolate(table[:-3].view(1, width, height, -1).permute(0, 3, 1, 2), size=sizes,
                             mode="bilinear")[0].permute(1, 2, 0)
    return torch.cat([places, table[-3:, None].expand(-1, sizes[1], -1)]).as_subclass(_Table)


@torch.compiler.disable  # its sizes are options of the method
def _attend(module, q, k, v, table, scale, dropout):
    table = table.as_subclass(torch.Tensor)
    grid = [table.size(0) // 2 - 1, (table.size(1) + 1) // 2]
    flat = torch.cat([table[:-3].flatten(0, 1), table[-3:, 0]])
    out = attention(q, k, v, "beit", parameters=[flat], options={"grid": grid}, scale=scale,
                    causal=False, dropout_p=dropout if module.training else 0.0)
    return out.transpose(1, 2).flatten(2)


def _of_layers(module):
    """Whether layers have tables; without, they ask the interface."""
    return hasattr(module, "q_proj") and (
        module.config.use_relative_position_bias or
        module.config.use_shared_relative_position_bias)


@replaces("BeitAttention", "beit", by="beit", when=_of_layers)
def _beit(module, hidden_states, attention_mask=None, output_attentions=False, **_):
    refuse_weights(module, output_attentions)
    q, k, v = (heads_of(project(hidden_states), module.num_attention_heads)
               for project in (module.q_proj, module.k_proj, module.v_proj))
    return module.o_proj(_attend(module, q, k, v, attention_mask, module.scaling,
                                 module.attention_dropout)), None


@replaces("BeitModel", "beit", when=lambda module: hasattr(module, "shared_position_bias"))
def _unmasked(module, *given, attention_mask=None, **named):
    if attention_mask is not None:
        raise ModelError("attention_mask: expected None, as all places of a picture are shown, but "
                         f"got {list(attention_mask.shape)}")
    return before(module, "forward")(module, *given, **named)


@replaces("BeitSelfAttention", "beit", by="beit")
@replaces("Data2VecVisionSelfAttention", "data2vec", by="beit")
def _self_attention(module, hidden_states, *more):
    """more: perhaps a factor for each head; whether to return weights; the table that all layers
    share; whether positions are interpolated, which changes no sizes here; the picture's sizes."""
    *others, shared, _, sizes = more
    refuse_more(module, others)
    q, k, v = (heads_of(project(hidden_states), module.num_attention_heads)
               for project in (module.query, module.key, module.value))
    tables = [] if shared is None else [shared]
    if module.has_relative_position_bias:
        patch = module.config.patch_size
        tables.append(module.relative_position_bias([n // patch for n in sizes]))
    scale, dropout = q.size(3)**-0.5, module.dropout.p
    if not tables:
        out = attention(q, k, v, scale=scale, causal=False,
                        dropout_p=dropout if module.training else 0.0)
        return out.transpose(1, 2).flatten(2), None
    return _attend(module, q, k, v, sum(tables), scale, dropout), None
