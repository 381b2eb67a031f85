"""DeBERTa in its three versions."""

import re

import torch
from torch.nn.functional import linear

from sextant.conformance.case import case
from sextant.conformance.cases._heads import merge, split


@case(r"deberta v2/v3 log buckets")
def log_buckets(c):
    for name, expected in c.arrays.items():
        rule = re.fullmatch(r"row_(hf|ms)_b(\d+)_m(\d+)", name)
        if rule:
            flavour = {"hf": "hugging-face", "ms": "microsoft"}[rule[1]]
            distances = c.arrays[f"rel_b{rule[2]}_m{rule[3]}"]
            got = c.library.tables.deberta_rows(distances, int(rule[2]), int(rule[3]), flavour)
            c.expect(name, got, expected, 0)


def attend(c, q, k, v, names, flavour=None, **options):
    """DeBERTa attention of a case. names: the arrays of the position projections, in the order of
    the method's parameters; arrays that the case does not have are skipped."""
    if flavour is None:
        flavour = "microsoft" if c.meta["ref"].startswith("microsoft") else "hugging-face"
    terms = c.meta["pos_att_type"]
    parameters = [c.leaf("rel_emb")] + [c.leaf(n) for n in names if n in c]
    mask = c.tensor("attention_mask") != 0 if "attention_mask" in c else None
    return c.attention(q, k, v, method="deberta", causal=False, first_query=0, mask=mask,
                       norm=False, flavour=flavour, max_positions=c.meta["max_relative_positions"],
                       c2p="c2p" in terms, p2c="p2c" in terms, parameters=parameters,
                       width=c.arrays["rel_emb"].shape[1], **options)


@case(r"deberta_v1$", "in_proj_w")
def version_1(c):
    heads = c.meta["H"]
    x = linear(c.leaf("x"), c.leaf("in_proj_w"))
    q, k, v = split(x, heads).chunk(3, -1)  # the rows of in_proj are [q, k, v] for each head
    q, v = (a + c.leaf(f"{n}_bias").view(heads, 1, -1) for n, a in (("q", q), ("v", v)))
    names = ("pos_k_w", "pos_q_w", "pos_q_b")
    c.expect_out(merge(attend(c, q, k, v, names, version=1)))
    if "scores_paper" in c:
        # The golden array is scores. Attention with the identity as values gives their softmax.
        eye = torch.eye(k.size(2), dtype=c.dtype).expand(*k.shape[:3], -1)
        got = attend(c, q, k, eye, names, version=1, flavour="paper")
        scores = c.tensor("scores_paper").masked_fill(c.tensor("attention_mask") == 0, -torch.inf)
        c.expect("softmax(scores_paper)", got, scores.softmax(-1).nan_to_num())


@case(r"deberta_v[23]|deberta.*ms", "rel_emb", "q_w")
def versions_2_and_3(c):
    x = c.leaf("x")
    sides = {"q": c.leaf("x_query") if "x_query" in c else x, "k": x, "v": x}
    q, k, v = (
        split(linear(y, c.leaf(f"{n}_w"), c.leaf(f"{n}_b")), c.meta["H"]) for n, y in sides.items()
    )
    shared = c.meta.get("share_att_key", False)
    names = ("k_w", "k_b", "q_w", "q_b") if shared else ("pos_k_w", "pos_k_b", "pos_q_w", "pos_q_b")
    buckets = max(c.meta.get("position_buckets") or 0, 0)
    c.expect_out(merge(attend(c, q, k, v, names, version=3 if shared else 2, buckets=buckets)))
