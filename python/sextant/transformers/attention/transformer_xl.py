"""Speech encoders with the terms of Transformer-XL: (q + u) k + (q + v) R[d], where R are projected
sinusoids of the distances n - 1, ..., 1 - n.

Their code makes (q + v) R for all distances and shifts it to queries x keys ("rel_shift").
"""

import torch

from sextant.transformers.swap import refuse_weights, replaces
from sextant.transformers.terms import (NONE, Terms, attend, by_distance, heads_of,
                                        shared_by_heads)


def attend_xl(module, q, k, v, mask, vectors, u, w, *, scale, dropout, nearest=None, more=None):
    """vectors [rows, heads, columns]: R; u and w [heads, columns]: u and v. nearest: the row of R
    of distance 0, by default the middle. more: further columns of q and k."""
    table = vectors.transpose(0, 1).to(q.dtype)
    wide = torch.promote_types(q.dtype, torch.float32)
    by_row = scale * ((w - u)[:, None].to(wide) * table.to(wide)).sum(2)
    nearest = vectors.size(0) // 2 if nearest is None else nearest
    terms = Terms(q.size(1), k.size(1), on_query=by_distance(table, nearest),
                  bias=by_distance(by_row, nearest))
    q = q + u[:, None].to(q.dtype)
    if more is not None:
        q, k = torch.cat([q, more[0]], 3), torch.cat([k, more[1]], 3)
    return attend(module, q, k, v, mask, terms, scale=scale, dropout=dropout)


@replaces("ParakeetEncoderAttention", "parakeet", by="transformer-xl")
@replaces("NemotronAsrStreamingEncoderAttention", "nemotron_asr_streaming", by="transformer-xl")
def _parakeet(module, hidden_states, position_embeddings=None, attention_mask=None, cache=None,
              past_key_values=None, **named):
    refuse_weights(module, named.get("output_attentions"))
    heads = module.config.num_attention_heads
    q, k, v = (heads_of(x, x.size(2) // module.head_dim) for x in (
        module.q_proj(hidden_states), module.k_proj(hidden_states), module.v_proj(hidden_states)))
    cache = past_key_values if cache is None else cache
    if cache is not None:
        k, v = cache.update(k, v, module.layer_idx)
    vectors = module.relative_k_proj(position_embeddings[0]).unflatten(1, (heads, -1))
    out = attend_xl(module, q, k, v, attention_mask, vectors, module.bias_u, module.bias_v,
                    scale=module.scaling, dropout=module.attention_dropout)
    return module.o_proj(out), None


@replaces("NemotronAsrStreamingEncoder", "nemotron_asr_streaming")
def _with_bool_masks(module, input_features, *others, **named):
    """Its own forward pass, which computes with a mask as "sdpa" has it."""
    config = module.config
    implementation = config._attn_implementation_internal
    config._attn_implementation_internal = "sdpa"
    try:
        return type(module).forward(module, input_features, *others, **named)
    finally:
        config._attn_implementation_internal = implementation


def _conformers(function):
    """Registers a function for the Conformers whose positions are an option of the model."""
    for by, types in (("transformer-xl", ("relative",)), ("shaw", ("relative_key",)),
                      ("none", ("rotary", None))):
        for kind, folder in (("Wav2Vec2Conformer", "wav2vec2_conformer"),
                             ("Wav2Vec2Bert", "wav2vec2_bert"),
                             ("SeamlessM4TConformer", "seamless_m4t"),
                             ("SeamlessM4Tv2Conformer", "seamless_m4t_v2")):
            replaces(f"{kind}SelfAttention", folder, by=by, when=lambda module, own=types: (
                module.position_embeddings_type in own))(function)
    return function


@_conformers
def _conformer(module, hidden_states, attention_mask=None, relative_position_embeddings=None,
               output_attentions=False, **_):
    refuse_weights(module, output_attentions)
    kind, heads = module.position_embeddings_type, module.num_heads
    turned = hidden_states if kind != "rotary" else module._apply_rotary_embedding(
        hidden_states, relative_position_embeddings)
    q, k, v = (heads_of(x, heads) for x in (
        module.linear_q(turned), module.linear_k(turned), module.linear_v(hidden_states)))
    named = {"scale": module.head_size**-0.5, "dropout": module.dropout.p}
    if kind == "relative":
        vectors = module.linear_pos(relative_position_embeddings[0]).unflatten(1, (heads, -1))
        out = attend_xl(module, q, k, v, attention_mask, vectors, module.pos_bias_u,
                        module.pos_bias_v, **named)
    else:
        terms = NONE if kind != "relative_key" else Terms(heads, on_query=shared_by_heads(
            module.distance_embedding.weight.to(q.dtype), module.left_max_position_embeddings))
        out = attend(module, q, k, v, attention_mask, terms, **named)
    return module.linear_out(out), None


@replaces("SeamlessM4Tv2ConformerEncoder._apply_chunk_attention", "seamless_m4t_v2")
def _chunks(module, attention_mask, hidden_states):
    """No mask of queries x keys for a sequence in one chunk, which is the usual case."""
    if hidden_states.size(1) <= module.config.speech_encoder_chunk_size:
        return attention_mask
    return type(module)._apply_chunk_attention(module, attention_mask, hidden_states)


@replaces("FastSpeech2ConformerAttention", "fastspeech2_conformer", by="transformer-xl")
def _fastspeech2(module, hidden_states, attention_mask=None, pos_emb=None, output_attentions=False):
    refuse_weights(module, output_attentions)
    q, k, v = (heads_of(project(hidden_states), module.num_heads)
               for project in (module.linear_q, module.linear_k, module.linear_v))
    vectors = module.linear_pos(pos_emb[0]).unflatten(1, (module.num_heads, -1))
    mask = None if attention_mask is None else attention_mask[:, None] != 0
    out = attend_xl(module, q, k, v, mask, vectors, module.pos_bias_u, module.pos_bias_v,
                    scale=module.dim_key**-0.5, dropout=module.dropout.p)
    return module.linear_out(out), None
