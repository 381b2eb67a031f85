"""Transformer-XL: its attention module, and a model of two layers with memory across segments."""

import torch
from torch.nn.functional import embedding, layer_norm, linear, relu

from sextant.conformance.case import case
from sextant.conformance.cases._heads import merge_time_first, split_time_first

EPSILON = 1e-5  # of every LayerNorm


def attend(c, queries, qkv, u, v, r_net):
    """qkv [memory + queries, batch, 3 * heads * columns] -> [queries, batch, heads * columns]."""
    heads, columns = u.shape
    q, k, value = [split_time_first(x, heads) for x in qkv.chunk(3, -1)]
    out = c.attention(q[:, :, -queries:], k, value, method="transformer-xl", untie_r=False,
                      clamp_len=c.meta["clamp_len"], same_length=c.meta["same_length"],
                      mem_len=c.meta["mem_len"] if c.meta["same_length"] else None,
                      width=r_net.size(1), parameters=[u, v, r_net])
    return merge_time_first(out)


@case(r"transformer_xl$", "w", "r_w", "qkv_w")
def attention_module(c):
    w = c.leaf("w")
    both = torch.cat([c.tensor("mems"), w]) if "mems" in c else w
    norm = [c.leaf("ln_w"), c.leaf("ln_b"), EPSILON]
    if c.meta["pre_lnorm"]:
        both = layer_norm(both, both.shape[-1:], *norm)
    context = attend(c, w.size(0), linear(both, c.leaf("qkv_w")), *c.leaves("u", "v", "r_w"))
    out = w + linear(context, c.leaf("o_w"))
    c.expect_out(out if c.meta["pre_lnorm"] else layer_norm(out, out.shape[-1:], *norm))


@case(r"transformer_xl recurrence$", "data", "param_r_w_bias")
def recurrence(c):
    def weight(name):
        return c.leaf("param_" + name)

    def norm(x, name):
        return layer_norm(x, x.shape[-1:], weight(name + ".weight"), weight(name + ".bias"),
                          EPSILON)

    def layer(n, h, memory):
        prefix = f"layers.{n}."
        qkv = linear(torch.cat([memory, h]), weight(prefix + "dec_attn.qkv_net.weight"))
        biases = weight("r_w_bias"), weight("r_r_bias")
        context = attend(c, h.size(0), qkv, *biases, weight(prefix + "dec_attn.r_net.weight"))
        h = norm(h + linear(context, weight(prefix + "dec_attn.o_net.weight")),
                 prefix + "dec_attn.layer_norm")
        inner = [weight(f"{prefix}pos_ff.CoreNet.{part}") for part in ("0.weight", "0.bias")]
        outer = [weight(f"{prefix}pos_ff.CoreNet.{part}") for part in ("3.weight", "3.bias")]
        return norm(h + linear(relu(linear(h, *inner)), *outer), prefix + "pos_ff.layer_norm")

    layers, length, width = c.meta["n_layer"], c.meta["tgt_len"], c.meta["d_model"]
    segments = c.tensor("data").split(length)
    memory = [c.tensor("g").new_zeros(0, segments[0].size(1), width)] * (layers + 1)
    for number, data in enumerate(segments):
        states = [embedding(data, weight("word_emb.emb_layers.0.weight")) * width**0.5]
        for n in range(layers):
            states.append(layer(n, states[-1], memory[n]))
        c.expect(f"hidden_seg{number}", states[-1], c.arrays[f"hidden_seg{number}"])
        memory = [
            torch.cat([old, new])[-c.meta["mem_len"]:].detach() for old, new in zip(memory, states)
        ]
        for n, kept in enumerate(memory):
            name = f"mems_after_seg{number}_layer{n}"
            c.expect(name, kept, c.arrays[name])
    c.expect_gradients((states[-1] * c.tensor("g")).sum())
