"""Swin and its family: a bias for each pair of distances within a window, by the method "swin".
Swin v2 computes the table by a network, and divides queries and keys by their lengths.
"""

import math

import torch
from torch.nn.functional import normalize

from sextant._attention import attention
from sextant.transformers.errors import ModelError
from sextant.transformers.swap import refuse_weights, replaces
from sextant.transformers.terms import heads_of


@replaces("SwinLayer.get_attn_mask", "swin")
@replaces("DonutSwinLayer.get_attn_mask", "donut")
@replaces("MaskFormerSwinLayer.get_attn_mask", "maskformer")
@replaces("ClapAudioLayer.get_attn_mask", "clap")
@replaces("Swinv2Layer.get_attn_mask", "swinv2")
@replaces("Swin2SRLayer.get_attn_mask", "swin2sr")
def _shown(module, *sizes, device=None, **_):
    """Which keys a query sees, bool [windows, rows, rows], instead of numbers to add: those of its
    own part of a picture that is shifted in a circle."""
    size, shift = module.window_size, module.shift_size
    if shift <= 0:
        return None
    parts = []
    for n in sizes[0] if isinstance(sizes[0], tuple) else sizes:
        place = torch.arange(n, device=device)
        parts.append((place >= n - size).int() + (place >= n - shift))
    part = 3 * parts[0][:, None] + parts[1]
    part = part.unfold(0, size, size).unfold(1, size, size).flatten(2).flatten(0, 1)
    return part[:, :, None] == part[:, None]


def _attend(module, q, k, v, table, window, shown, scale, dropout):
    """[windows, rows, columns] of q, k and v [windows, heads, rows, columns]. The windows are those
    of one picture after the other, shown those of one."""
    mask = None if shown is None else shown.unsqueeze(1)
    if mask is not None and mask.size(0) != q.size(0):
        mask = mask.repeat(q.size(0) // mask.size(0), 1, 1, 1)
    out = attention(q, k, v, "swin", parameters=[table], options={"window": list(window)},
                    causal=False, scale=scale, mask=mask,
                    dropout_p=dropout if module.training else 0.0)
    return out.transpose(1, 2).flatten(2)


def refuse_more(module, given, output_attentions=False):
    """Raises ModelError for the arguments of a layer, after its mask, that ask for more than its
    output: before transformers 5 a factor for each head, and then whether to return weights."""
    for argument in given:
        if argument is not None and not isinstance(argument, bool):
            raise ModelError("head_mask: expected None, as Sextant has no factor for each head, "
                             "but got a tensor")
    refuse_weights(module, output_attentions or any(given))


def _heads(module, x):
    return (heads_of(project(x), module.num_attention_heads)
            for project in (module.query, module.key, module.value))


@replaces("SwinSelfAttention", "swin", by="swin")
@replaces("DonutSwinSelfAttention", "donut", by="swin")
@replaces("MaskFormerSwinSelfAttention", "maskformer", by="swin")
@replaces("ClapAudioSelfAttention", "clap", by="swin")
def _version_1(module, hidden_states, attention_mask=None, *more, output_attentions=False):
    refuse_more(module, more, output_attentions)
    q, k, v = _heads(module, hidden_states)
    return _attend(module, q, k, v, module.relative_position_bias_table, module.window_size,
                   attention_mask, q.size(3)**-0.5, module.dropout.p),


@replaces("SwinAttention", "swin", by="swin", when=lambda module: hasattr(module, "q_proj"))
def _swin(module, hidden_states, attention_mask=None, output_attentions=False, **_):
    refuse_weights(module, output_attentions)
    q, k, v = (heads_of(project(hidden_states), module.num_attention_heads)
               for project in (module.q_proj, module.k_proj, module.v_proj))
    bias = module.relative_position_bias
    out = _attend(module, q, k, v, bias.relative_position_bias_table, bias.window_size,
                  attention_mask, module.scaling, module.attention_dropout)
    return module.o_proj(out), None


@replaces("Swinv2SelfAttention", "swinv2", by="swin")
@replaces("Swin2SRSelfAttention", "swin2sr", by="swin")
def _version_2(module, hidden_states, attention_mask=None, *more, output_attentions=False):
    refuse_more(module, more, output_attentions)
    q, k, v = _heads(module, hidden_states)
    q = normalize(q, dim=-1) * module.logit_scale.clamp(max=math.log(100)).exp()
    table = 16 * module.continuous_position_bias_mlp(module.relative_coords_table).sigmoid()
    return _attend(module, q.to(k.dtype), normalize(k, dim=-1), v, table.flatten(0, -2),
                   module.window_size, attention_mask, 1.0, module.dropout.p),
