"""ALiBi of BLOOM, MPT and Falcon (Press et al. 2022, arXiv 2108.12409). Slope times distance and
slope times the key's position differ by a number for each query, which softmax ignores, so these
models add a bias by key. Falcon without ALiBi rotates queries and keys.
"""

import sys

import torch

from sextant._call import compiling
from sextant.transformers import masks
from sextant.transformers.errors import ModelError
from sextant.transformers.swap import refuse_given, refuse_weights, replaces
from sextant.transformers.terms import attend, cached, heads_of


def _projects_at_once(module):
    if module.pretraining_tp > 1 and module.slow_but_exact:
        raise ModelError("slow_but_exact: expected False, as Sextant's attention is projected at "
                         f"once, but got True with pretraining_tp={module.pretraining_tp}")
    return True


@replaces("BloomAttention", "bloom", by="alibi", when=_projects_at_once, ranges=True)
def _bloom(module, hidden_states, residual, alibi, attention_mask, layer_past=None, head_mask=None,
           use_cache=False, output_attentions=False, cache_position=None, **_):
    refuse_weights(module, output_attentions)
    refuse_given(head_mask=head_mask)
    q, k, v = (x.transpose(1, 2) for x in module.query_key_value(hidden_states).unflatten(
        2, (module.num_heads, 3, -1)).unbind(3))
    k, v = cached(module, layer_past, k, v, cache_position)
    out = attend(module, q, k, v, attention_mask, scale=module.inv_norm_factor, causal=True,
                 key_bias=alibi.view(q.size(0), module.num_heads, -1),
                 dropout=module.attention_dropout.p)
    out = torch.nn.functional.dropout(module.dense(out), module.hidden_dropout, module.training)
    return out + residual, None


@replaces("MptBlock", "mpt")
def _mpt_block(module, *arguments, **named):
    """Its attention is not told whether weights are asked for."""
    refuse_weights(module, named.get("output_attentions"))
    return type(module).forward(module, *arguments, **named)


@replaces("MptAttention", "mpt", by="alibi", ranges=True)
def _mpt(module, hidden_states, position_bias, cache=None, attention_mask=None,
         past_key_values=None, cache_position=None, **_):
    rows = module.Wqkv(hidden_states)
    if module.clip_qkv:
        rows = rows.clamp(-module.clip_qkv, module.clip_qkv)
    q, k, v = (heads_of(x, module.n_heads) for x in rows.chunk(3, 2))
    k, v = cached(module, past_key_values if cache is None else cache, k, v, cache_position)
    bias = None
    if position_bias is not None:
        bias = position_bias[:, -1, -k.size(2):]
        if bias.size(1) < k.size(2):
            raise ModelError(f"max_seq_len: expected at least {k.size(2)}, the keys, but got "
                             f"{bias.size(1)}")
    out = attend(module, q, k, v, _shown(module, attention_mask), scale=module.softmax_scale,
                 causal=True, key_bias=None if bias is None else bias[None],
                 dropout=module.attn_dropout_p)
    return module.out_proj(out), None


def _shown(module, mask):
    """MPT's own masks are True where a key is hidden, those of the interface where it is seen."""
    if mask is None or masks.is_ranges(mask) or masks.is_stated(mask) or (
            hasattr(sys.modules[type(module).__module__], "create_causal_mask") and (
                compiling() or hasattr(mask, "_sextant_first_query"))):
        return mask
    return masks.kept(mask, "shown", torch.logical_not)


def _adds_alibi_once(module):
    if module.config.alibi and module.config._attn_implementation == "eager":
        raise ModelError('attn_implementation: expected "sdpa", as Falcon\'s eager code adds ALiBi '
                         'twice, but got "eager"')
    return True


# Else the model would add a bias of heads x queries x keys to the mask.
replaces("FalconModel.use_alibi", "falcon")(False)


@replaces("FalconAttention", "falcon", when=_adds_alibi_once, ranges=True,
          by="alibi", terms=lambda module: module.config.alibi)
def _falcon(module, hidden_states, alibi, attention_mask, position_ids=None, layer_past=None,
            head_mask=None, use_cache=False, output_attentions=False, cache_position=None,
            position_embeddings=None, **_):
    refuse_weights(module, output_attentions)
    refuse_given(head_mask=head_mask)
    code = sys.modules[type(module).__module__]
    q, k, v = (x.transpose(1, 2) for x in module._split_heads(module.query_key_value(
        hidden_states)))
    alibi = module.config.alibi
    if not alibi:
        q, k = code.apply_rotary_pos_emb(q, k, *position_embeddings)
    k, v = cached(module, layer_past, k, v, cache_position)
    bias = None
    if alibi:
        # Its bfloat16 numbers depend on positions, and not on distances alone.
        bias = code.build_alibi_tensor(_key_mask(attention_mask, k), module.num_heads, q.dtype)
        bias = bias.view(-1, module.num_heads, k.size(2)) * module.inv_norm_factor
    out = attend(module, q, k, v, attention_mask, scale=module.inv_norm_factor, causal=True,
                 key_bias=bias, dropout=module.attention_dropout.p if alibi else 0.0)
    return module.dense(out), None


def _key_mask(mask, k):
    """The mask of padding, [1 or batch, keys], that a mask of the model was made with."""
    if mask is None or masks.is_stated(mask):
        return k.new_ones(1, k.size(2), dtype=torch.long)
    if masks.is_ranges(mask):
        return _after_padding(mask, k)
    return (mask.any(2) if mask.dtype == torch.bool else (mask == 0).any(2))[:, 0].long()


@torch.compiler.disable  # the values of the mask decide
def _after_padding(mask, k):
    origins = masks.view_of(mask, k.size(2)).origins
    rows = torch.arange(k.size(2), device=k.device)
    return (rows >= -torch.tensor(origins, device=k.device)[:, None]).long()
