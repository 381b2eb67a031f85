"""Visibility of keys: windows, chunks and sinks."""

import re

import torch

from sextant.conformance.case import case

RULES = {
    "causal": ("none", True, {}),
    r"(?:hf_|gptoss_)sliding(?:_causal)?_w(\d+)": ("window", True, {}),
    r"hf_sliding_bidirectional_w(\d+)_inclusive": ("window", False, {"bidirectional": "inclusive"}),
    r"gemma3_bidirectional_w(\d+)_exclusive": ("window", False, {}),
    r"hf_chunked_causal_c(\d+)": ("chunk", True, {}),
    r"hf_chunked_causal_c(\d+)_leftpad(\d+)": ("chunk", True, {}),
    r"segments_bidirectional_c(\d+)": ("chunk", False, {}),
    r"flashattn_window_left(\d+)_right(\d+)": ("window", False, {}),
    r"sinks(\d+)_plus_window(\d+)_causal": ("window", True, {}),
}


def rule_of(name):
    """(method, causal, options) of a mask by its name, or None if the name is unknown."""
    for pattern, (method, causal, options) in RULES.items():
        found = re.fullmatch(pattern, name)
        if not found:
            continue
        options = dict(options) if method == "none" else dict(options, of="none")
        numbers = [int(n) for n in found.groups()]
        if name.startswith("flashattn"):
            options["left"], options["right"] = numbers
        elif name.startswith("sinks"):
            options["sinks"], options["window"] = numbers
        elif method != "none":
            options[method] = numbers[0]
            if "leftpad" in name:
                options["origin"] = numbers[1]
        return method, causal, options
    return None


@case(r"local/chunked attention without positions", "q", "out")
def local_attention(c):
    name = c.meta["method"].split("mask ")[1]
    method, causal, options = rule_of(name)
    q, k, v = c.leaves("q", "k", "v")
    c.expect_out(c.attention(q, k, v, method=method, causal=causal, **options))


@case(r"local window / chunk masks")
def masks(c):
    """All scores are equal and the values are the identity, so that the output is the mask, each
    row divided by its sum."""
    for name, mask in c.arrays.items():
        method, causal, options = rule_of(name)
        rows = mask.shape[0]
        q = torch.zeros(1, 1, rows, 4, dtype=c.dtype)
        v = torch.eye(rows, dtype=c.dtype)[None, None]
        out = c.attention(q, q, v, method=method, causal=causal, **options)
        expected = torch.from_numpy(mask).double()
        c.expect(name, out[0, 0], expected / expected.sum(1, keepdim=True))


@case(r"gpt-oss attention with one learned sink logit", "Q", "S")
def learned_sinks(c):
    window = int(re.search(r"sliding_window=(\d+)", c.meta["method"])[1])
    q, k, v = (x.flatten(1, -2).transpose(0, 1)[None] for x in c.leaves("Q", "K", "V"))
    inner = {"of": "none"}
    if window:
        inner = {"of": "window", "options": {"window": window, "of": "none"}}
    out = c.attention(q, k, v, method="sink", parameters=[c.leaf("S")], **inner)
    c.expect_out(out[0].transpose(0, 1).flatten(1))
