"""Vision encoders of SAM's kind: vectors by vertical and by horizontal distance on a grid, by the
method "sam". Layers that attend within windows have the windows in the batch.
"""

import torch

from sextant._attention import attention
from sextant.transformers.swap import before, refuse_weights, replaces


def _has_tables(module):
    return any(getattr(module, name, False)
               for name in ("use_rel_pos", "use_relative_position_embeddings"))


@replaces("SamVisionAttention", "sam", by="sam", terms=_has_tables)
@replaces("SamHQVisionAttention", "sam_hq", by="sam", terms=_has_tables)
@replaces("VitDetAttention", "vitdet", by="sam", terms=_has_tables)
@replaces("GotOcr2VisionAttention", "got_ocr2", by="sam", terms=_has_tables)
@replaces("DeepseekOcr2SamVisionAttention", "deepseek_ocr2", by="sam", terms=_has_tables)
@replaces("UnlimitedOcrSamVisionAttention", "unlimited_ocr", by="sam", terms=_has_tables)
@replaces("PPFormulaNetVisionAttention", "pp_formulanet", by="sam", terms=_has_tables)
@replaces("SLANeXtVisionAttention", "slanext", by="sam", terms=_has_tables)
@replaces("SegGptAttention", "seggpt", by="sam", terms=_has_tables)
def _layer(module, hidden_states, output_attentions=False):
    refuse_weights(module, output_attentions)
    heads = getattr(module, "num_attention_heads", None) or module.num_heads
    q, k, v = module.qkv(hidden_states).flatten(1, 2).unflatten(2, (3, heads, -1)).permute(
        2, 0, 3, 1, 4)
    return module.proj(_attend(module, q, k, v, hidden_states.shape[1:3])), None


@torch.compiler.disable  # its sizes are options of the method
def _attend(module, q, k, v, grid):
    """[batch, height, width, columns]"""
    call = {"scale": module.scale, "causal": False,
            "dropout_p": getattr(module, "dropout", 0.0) if module.training else 0.0}
    if _has_tables(module):
        tables = [module.rel_pos_h, module.rel_pos_w]
        call |= {"method": "sam", "parameters": tables, "options": {
            "grid": list(grid), "tables": [(table.size(0) + 1) // 2 for table in tables]}}
    return attention(q, k, v, **call).transpose(1, 2).flatten(2).unflatten(1, grid)


# Layers of these encoders are not told whether to return weights.
@replaces("SamVisionEncoder", "sam")
@replaces("SamHQVisionEncoder", "sam_hq")
@replaces("DeepseekOcr2SamVisionEncoder", "deepseek_ocr2")
@replaces("UnlimitedOcrSamVisionEncoder", "unlimited_ocr")
@replaces("PPFormulaNetVisionModel", "pp_formulanet")
@replaces("SLANeXtVisionEncoder", "slanext")
def _encode(module, *given, **named):
    refuse_weights(module, named.get("output_attentions"))
    return before(module, "forward")(module, *given, **named)
