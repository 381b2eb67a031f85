"""Gemma 4's audio tower: q.(k + R[d]) in a window, with softcap.

Its code cuts queries into blocks with their keys, and masks likewise.
"""

import torch

from sextant.transformers.swap import refuse_weights, replaces
from sextant.transformers.terms import Terms, attend, by_distance, heads_of


@replaces("Gemma4AudioModel._convert_4d_mask_to_blocked_5d", "gemma4")
def _mask(module, mask_4d):
    return mask_4d


@replaces("Gemma4AudioAttention", "gemma4", by="transformer-xl")
def _attend(module, hidden_states, position_embeddings, attention_mask=None, **named):
    refuse_weights(module, named.get("output_attentions"))
    # All in float32, as the model's own code.
    q, k, v = (heads_of(project(hidden_states).float(), module.num_heads)
               for project in (module.q_proj, module.k_proj, module.v_proj))
    vectors = module.relative_k_proj(position_embeddings).flatten(0, -2).float().unflatten(
        1, (module.num_heads, -1)).transpose(0, 1)
    # Row 0 is the longest distance; keys later than those of all rows have zeros.
    table = torch.nn.functional.pad(vectors, (0, 0, 0, 1))
    out = attend(module, q * module.q_scale * torch.nn.functional.softplus(module.per_dim_scale),
                 k * module.k_scale, v, attention_mask,
                 Terms(module.num_heads, on_query=by_distance(table, module.max_past_horizon)),
                 scale=1.0, softcap=float(module.attention_logits_soft_cap))
    return module.post(out.to(hidden_states.dtype)), None
