"""TUPE-A and TUPE-R: their two-layer encoders, with torch's modules around our attention."""

import torch
from torch.nn.functional import embedding, gelu, layer_norm, linear

from sextant.conformance.case import case
from sextant.conformance.cases._heads import merge_time_first, split_time_first

PAD = 1
POSITIONS = ("pos.weight", "pos_ln.weight", "pos_ln.bias", "pos_q_linear.weight",
             "pos_q_linear.bias", "pos_k_linear.weight", "pos_k_linear.bias")


class Model:
    """The parameters of a case by their official names."""

    def __init__(self, c):
        self.c = c
        self.leaves = {
            name.removeprefix("param_"): c.leaf(name)
            for name in c.arrays
            if name.startswith("param_")
        }

    def __getitem__(self, name):
        return self.leaves[name]

    def pair(self, name):
        return self[f"{name}.weight"], self[f"{name}.bias"]

    def norm(self, x, name):
        return layer_norm(x, x.shape[-1:], *self.pair(name), self.c.meta["ln_eps"])


def attended(c, model, x, shown, prefix):
    meta = c.meta
    qkv = linear(x, model[f"{prefix}.in_proj_weight"], model[f"{prefix}.in_proj_bias"])
    q, k, v = (split_time_first(y, meta["H"]) for y in qkv.chunk(3, -1))
    relative = "relative_attention_bias.weight" in model.leaves
    parameters = [model[name] for name in POSITIONS]
    if relative:
        parameters.append(model["relative_attention_bias.weight"])
    out = c.attention(q, k, v, method="tupe", causal=False, mask=shown, relative=relative,
                      buckets=meta["rel_pos_bins"], max_distance=meta["max_rel_pos"],
                      max_positions=meta["max_seq_len"], parameters=parameters)
    return linear(merge_time_first(out), *model.pair(f"{prefix}.out_proj"))


@case(r"tupe_[ar]$", "tokens", "out")
def tupe(c):
    model = Model(c)
    tokens = torch.from_numpy(c.arrays["tokens"])
    shown = (tokens != PAD)[:, None, None, :]
    x = embedding(tokens, model["embed_tokens.weight"], padding_idx=PAD)
    x = model.norm(x, "emb_layer_norm") * (tokens != PAD)[..., None]
    x = x.transpose(0, 1)
    c.expect("hidden0", x, c.arrays["hidden0"])
    for n in range(c.meta["layers"]):
        layer = f"layers.{n}"
        context = attended(c, model, x, shown, f"{layer}.self_attn")
        x = model.norm(x + context, f"{layer}.self_attn_layer_norm")
        inner = gelu(linear(x, *model.pair(f"{layer}.fc1")))
        x = model.norm(x + linear(inner, *model.pair(f"{layer}.fc2")), f"{layer}.final_layer_norm")
    c.expect_out(x)
