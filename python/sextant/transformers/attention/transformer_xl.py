"""Speech encoders with the terms of Transformer-XL: (q + u) k + (q + v) R[d], where R are projected
sinusoids of the distances n - 1, ..., 1 - n.

Their code makes (q + v) R for all distances and shifts it to queries x keys ("rel_shift").
"""

from sextant.transformers.swap import refuse_weights, replaces
from sextant.transformers.terms import Terms, attend, by_distance, heads_of


def attend_xl(module, q, k, v, mask, vectors, u, w, *, scale, dropout):
    """vectors [rows, heads, columns]: R; u and w [heads, columns]: u and v."""
    table = vectors.transpose(0, 1).to(q.dtype)
    by_row = scale * ((w - u)[:, None].float() * table.float()).sum(2)
    nearest = vectors.size(0) // 2
    terms = Terms(q.size(1), k.size(1), on_query=by_distance(table, nearest),
                  bias=by_distance(by_row, nearest))
    return attend(module, q + u[:, None].to(q.dtype), k, v, mask, terms, scale=scale,
                  dropout=dropout)


@replaces("ParakeetEncoderAttention", "parakeet", by="transformer-xl")
def _parakeet(module, hidden_states, position_embeddings=None, attention_mask=None, **kwargs):
    refuse_weights(module, kwargs.get("output_attentions"))
    heads = module.config.num_attention_heads
    q, k, v = (heads_of(x, x.size(2) // module.head_dim) for x in (
        module.q_proj(hidden_states), module.k_proj(hidden_states), module.v_proj(hidden_states)))
    vectors = module.relative_k_proj(position_embeddings[0]).unflatten(1, (heads, -1))
    out = attend_xl(module, q, k, v, attention_mask, vectors, module.bias_u, module.bias_v,
                    scale=module.scaling, dropout=module.attention_dropout)
    return module.o_proj(out), None


def _is_relative(module):
    return module.position_embeddings_type == "relative"


@replaces("Wav2Vec2ConformerSelfAttention", "wav2vec2_conformer", by="transformer-xl",
          when=_is_relative)
@replaces("Wav2Vec2BertSelfAttention", "wav2vec2_bert", by="transformer-xl", when=_is_relative)
def _wav2vec2(module, hidden_states, attention_mask=None, relative_position_embeddings=None,
              output_attentions=False, **_):
    refuse_weights(module, output_attentions)
    q, k, v = (heads_of(project(hidden_states), module.num_heads)
               for project in (module.linear_q, module.linear_k, module.linear_v))
    vectors = module.linear_pos(relative_position_embeddings[0]).unflatten(
        1, (module.num_heads, -1))
    out = attend_xl(module, q, k, v, attention_mask, vectors, module.pos_bias_u,
                    module.pos_bias_v, scale=module.head_size**-0.5, dropout=module.dropout.p)
    return module.linear_out(out), None
