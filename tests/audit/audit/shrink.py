"""Makes a configuration small enough to run, with its rotations unchanged."""

from __future__ import annotations

from typing import Any

from .models import needed_values

# The largest value of each field. Experts and vocabularies do not change rotations.
LIMITS = {
    "vocab_size": 512, "vocab_size_per_layer_input": 512, "intermediate_size": 64, "ffn_dim": 64,
    "n_inner": 64, "ffn_hidden_size": 64, "moe_intermediate_size": 32,
    "shared_expert_intermediate_size": 32, "expert_ffn_hidden_size": 32,
    "moe_shared_expert_intermediate_size": 32, "intermediate_size_mlp": 64, "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64, "dense_intermediate_size": 64, "mlp_hidden_size": 64,
    "num_experts": 32, "n_routed_experts": 32, "num_local_experts": 32, "moe_num_experts": 32,
    "zero_expert_num": 32}
DEPTHS = (
    "num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers", "decoder_layers",
    "encoder_num_hidden_layers", "decoder_num_hidden_layers", "num_decoder_layers",
    "num_encoder_layers")
HEADS = ("num_attention_heads", "n_head", "n_heads")
WIDTHS = ("hidden_size", "n_embd", "d_model")
WINDOWS = ("sliding_window", "sliding_window_size", "attention_window_size")
MAMBA = (("mamba_n_heads", "mamba_d_head"), ("n_mamba_heads", "mamba_headdim"))
TOKENS = 11  # length of a run
WINDOW = 6  # replaces larger windows, so that a run shows them

Fields = dict[str, Any]


def whole_number(fields: Fields, names: tuple[str, ...]) -> str | None:
    """The first of the names whose field is an integer, or None."""
    return next((n for n in names if isinstance(fields.get(n), int)
                 and not isinstance(fields[n], bool)), None)


def limit_sizes(fields: Fields) -> None:
    for name, most in LIMITS.items():
        value = fields.get(name)
        if isinstance(value, int):
            fields[name] = min(value, most)
        elif isinstance(value, list):
            fields[name] = [min(v, most) if isinstance(v, int) else v for v in value]
    for name in fields:
        if name.endswith(("_token_id", "_token_index")):
            last = LIMITS["vocab_size"] - 1
            if isinstance(fields[name], int):
                fields[name] = min(fields[name], last)
            elif isinstance(fields[name], list):
                fields[name] = last
    for name in WINDOWS:
        if isinstance(fields.get(name), int) and fields[name] > TOKENS:
            fields[name] = WINDOW


def limit_depth(fields: Fields, depth: int) -> None:
    named = whole_number(fields, DEPTHS)
    layers = fields[named] if named else 0
    own = fields.get("per_layer_config")
    if isinstance(own, dict):
        fields["per_layer_config"] = {k: v for k, v in own.items() if int(k) < depth}
    if layers <= depth:
        return
    for name in DEPTHS:
        if isinstance(fields.get(name), int):
            fields[name] = min(fields[name], depth)
    for name, value in fields.items():
        if isinstance(value, list) and len(value) == layers and not name.endswith("_factor"):
            fields[name] = value[:depth]
    if "num_kv_shared_layers" in fields:
        fields["num_kv_shared_layers"] = 0


def limit_heads(fields: Fields) -> None:
    """Reduces the heads to four and keeps their size."""
    heads, width = whole_number(fields, HEADS), whole_number(fields, WIDTHS)
    shared = fields.get("num_key_value_heads", 0)
    if shared is None and heads:
        fields["num_key_value_heads"] = shared = fields[heads]
    if not heads or not width or fields[heads] <= 4:
        return
    size = fields.get("head_dim")
    size = size if isinstance(size, int) else fields[width] // fields[heads]
    if "head_dim" in fields and fields["head_dim"] is None:
        fields["head_dim"] = size
    if isinstance(shared, int) and shared > 1:
        fields["num_key_value_heads"] = 4 if shared == fields[heads] else 2
    fields[heads] = 4
    fields[width] = 4 * size
    for count, each in MAMBA:
        if isinstance(fields.get(count), int) and isinstance(fields.get(each), int):
            fields[count] = int(fields.get("mamba_expand", 2)) * fields[width] // fields[each]


def shrink(fields: Fields, depth: int, narrow: bool) -> None:
    limit_sizes(fields)
    limit_depth(fields, depth)
    if narrow:
        limit_heads(fields)
    for value in fields.values():
        if isinstance(value, dict) and "model_type" in value:
            shrink(value, depth, narrow)


def shrunk(config: Any, depth: int = 8, narrow: bool = True, changes: Fields | None = None) -> Any:
    """The configuration with fewer layers, tokens in the vocabulary and heads, and with
    `changes`."""
    fields = config.to_dict()
    fields.update(needed_values(config.model_type))
    fields.update(changes or {})
    shrink(fields, depth, narrow)
    return type(config).from_dict(fields)
