"""XLNet: distances in both directions, memory, segments, content and query stream."""

import torch
from torch.nn.functional import layer_norm

from sextant.conformance.case import case


def project(x, weight):
    """[length, batch, width] -> [batch, heads, length, columns]."""
    return torch.einsum("tbc,chd->bhtd", x, weight)


def halves(c):
    """The parts of the batch with their direction. With bi_data the second half is reversed."""
    batch = c.meta["B"]
    if not c.meta["bi_data"]:
        return [(slice(0, batch), False)]
    return [(slice(0, batch // 2), False), (slice(batch // 2, batch), True)]


@case(r"xlnet$", "h", "q_w", "r_w", "u", "v")
def xlnet(c):
    h = c.leaf("h")
    both = torch.cat([c.tensor("mems"), h]) if "mems" in c else h
    k, v = project(both, c.leaf("k_w")), project(both, c.leaf("v_w"))
    parameters, segments = c.leaves("u", "v", "r_w"), {}
    if "seg_ids" in c:
        parameters[2:2] = c.leaves("s")
        parameters += c.leaves("seg_embed")
        own = c.tensor("seg_ids")
        memory = own.new_zeros(both.size(0) - own.size(0), own.size(1))  # the memory is segment 0
        segments = {"query_segments": own.T.contiguous(),
                    "key_segments": torch.cat([memory, own]).T.contiguous()}

    def stream(x, mask):
        q = project(x, c.leaf("q_w"))
        visible = c.tensor(mask).permute(2, 0, 1).unsqueeze(1) == 0 if mask in c else None
        context = torch.cat([
            c.attention(q[part], k[part], v[part], method="xlnet", reversed=reverse,
                        segments=bool(segments), clamp_len=c.meta["clamp_len"],
                        causal=c.meta["attn_type"] == "uni",
                        mask=None if visible is None else visible[part],
                        width=h.size(2), parameters=parameters,
                        **{name: ids[part] for name, ids in segments.items()})
            for part, reverse in halves(c)
        ])
        out = x + torch.einsum("bhid,chd->ibc", context, c.leaf("o_w"))
        return layer_norm(out, out.shape[-1:], c.leaf("ln_w"), c.leaf("ln_b"), c.meta["ln_eps"])

    out = stream(h, "mask")
    if c.meta["two_stream"]:
        out = torch.stack([out, stream(c.leaf("g_stream"), "mask_g")])
    c.expect_out(out)
