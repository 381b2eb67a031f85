"""Faults that tests plant in live models. Each function changes a model and returns a function that
undoes changes outside of it, or None."""

import types

import torch


def rotaries(model):
    return [m for m in model.modules()
            if any(n.endswith("inv_freq") for n, _ in m.named_buffers(recurse=False))]


def frequencies(model):
    """The buffers that hold frequencies in use."""
    for module in rotaries(model):
        for name, buffer in module.named_buffers(recurse=False):
            if name.endswith("inv_freq") and "original" not in name:
                yield module, buffer


def attentions(model):
    return [m for m in model.modules()
            if type(m).__name__.endswith("Attention") and hasattr(m, "layer_idx")]


def plain(count, base):
    return base ** (-torch.arange(count, dtype=torch.float32) / count)


# --- frequencies ---

def wrong_base(model, _):
    for _, buffer in frequencies(model):
        buffer.copy_(buffer ** 1.05)


def default_base(model, _):
    for _, buffer in frequencies(model):
        buffer.copy_(plain(len(buffer), 10000.0))


def stretch_ignored(model, _):
    for module, buffer in frequencies(model):
        buffer.copy_(plain(len(buffer), base_of(model)))
        module.attention_scaling = 1.0


def base_of(model):
    own = getattr(model.config, "rope_parameters", None) or {}
    return own.get("rope_theta") or model.config.rope_theta


def stretched_twice(model, _):
    for _, buffer in frequencies(model):
        buffer.copy_(buffer * buffer / plain(len(buffer), base_of(model)))


def interpolated(model, _):
    """Position interpolation in place of the stretch of the configuration."""
    for _, buffer in frequencies(model):
        buffer.copy_(plain(len(buffer), base_of(model)) / 4)


def divided(model, _):
    for _, buffer in frequencies(model):
        buffer.div_(2)


def reversed_order(model, _):
    for _, buffer in frequencies(model):
        buffer.copy_(buffer.flip(0))


def half_of_pairs(model, _):
    for _, buffer in frequencies(model):
        buffer[len(buffer) // 2:] = 0


def rounded_bfloat16(model, _):
    for _, buffer in frequencies(model):
        buffer.copy_(buffer.bfloat16().float())


def rounded_float16(model, _):
    for _, buffer in frequencies(model):
        buffer.copy_(buffer.half().float())


def cast_bfloat16(model, _):
    """What model.bfloat16() does: it also rounds the frequencies."""
    model.bfloat16()


def kinds_swapped(model, _):
    """The bases of layers with and without a window are exchanged."""
    buffers = {id(b): b for _, b in frequencies(model)}
    a, b = list(buffers.values())[:2]
    kept = a.clone()
    a.copy_(b)
    b.copy_(kept)


# --- gain and scale ---

def gains(model):
    for module in rotaries(model):
        for name in [n for n in vars(module) if n.endswith("attention_scaling")]:
            yield module, name


def factor_dropped(model, _):
    for module, name in gains(model):
        setattr(module, name, 1.0)


def factor_twice(model, _):
    for module, name in gains(model):
        setattr(module, name, getattr(module, name) ** 2)


def other_scale(model, _):
    for module in attentions(model):
        module.scaling *= 1.1


def scale_of_head(model, _):
    for module in attentions(model):
        module.scaling = module.head_dim**-0.5 if hasattr(module, "head_dim") \
            else module.qk_head_dim**-0.5


def scale_of_one_layer(model, _):
    attentions(model)[1].scaling *= 2


# --- the function that rotates ---

def exchanged(modeling, name, function):
    original = getattr(modeling, name)
    setattr(modeling, name, function(original))
    return lambda: setattr(modeling, name, original)


def apart(x):
    return torch.cat([x[..., 0::2], x[..., 1::2]], -1)


def together(x):
    half = x.shape[-1] // 2
    return torch.stack([x[..., :half], x[..., half:]], -1).flatten(-2)


def neighbours(_, modeling):
    def make(original):
        def apply(q, k, *rest, **named):
            q, k = original(apart(q), apart(k), *rest, **named)
            return together(q), together(k)
        return apply
    return exchanged(modeling, "apply_rotary_pos_emb", make)


def mixed_pairs(_, modeling):
    """cos and sin in halves with a rotation of neighbours."""
    return exchanged(modeling, "rotate_half", lambda _: lambda x: torch.stack(
        [-x[..., 1::2], x[..., 0::2]], -1).flatten(-2))


def keys_still(_, modeling):
    return exchanged(modeling, "apply_rotary_pos_emb", lambda original: lambda q, k, *rest, **named:
                     (original(q, k, *rest, **named)[0], k))


def queries_still(_, modeling):
    return exchanged(modeling, "apply_rotary_pos_emb", lambda original: lambda q, k, *rest, **named:
                     (q, original(q, k, *rest, **named)[1]))


def opposite_direction(_, modeling):
    return exchanged(modeling, "apply_rotary_pos_emb",
                     lambda original: lambda q, k, cos, sin, *rest, **named:
                     original(q, k, cos, -sin, *rest, **named))


def one_layer_still(model, modeling):
    layer = attentions(model)[-1]
    forward = layer.forward

    def still(*args, **named):
        undo = exchanged(modeling, "apply_rotary_pos_emb",
                         lambda _: lambda q, k, *rest, **more: (q, k))
        try:
            return forward(*args, **named)
        finally:
            undo()
    layer.forward = still


def nope_rotates(model, _):
    for module in model.modules():
        if hasattr(module, "use_rope"):
            module.use_rope = True
        if type(module).__name__ == "Cohere2Attention":
            module.sliding_window = module.sliding_window or 4096


# --- tables and positions ---

def of_rotary(model, change):
    """Exchanges the forward of all rotary modules; change(original, x, position_ids, ...)."""
    for module in rotaries(model):
        def forward(self, x, position_ids, *rest, original=module.forward, **named):
            del self
            return change(original, x, position_ids, *rest, **named)
        module.forward = types.MethodType(forward, module)


def of_positions(model, change):
    of_rotary(model, lambda original, x, positions, *rest, **named:
              original(x, change(positions), *rest, **named))


def tables_rounded(model, _):
    of_rotary(model, lambda original, *args, **named:
              tuple(t.bfloat16().float() for t in original(*args, **named)))


def positions_rounded(model, _):
    of_positions(model, lambda p: p.bfloat16().float())


def positions_halved(model, _):
    of_positions(model, lambda p: p / 2)


def positions_end(model, _):
    of_positions(model, lambda p: p.clamp(max=1001))


def keys_behind(_, modeling):
    """Keys are rotated by the angle of one position less: the table is shifted."""
    def make(original):
        def apply(q, k, cos, sin, *rest, **named):
            k = original(q, k, cos, sin, *rest, **named)[1]
            one = cos[:, 1:2], -sin[:, 1:2]  # back by one position
            k = original(k, k, *[t.expand_as(cos) for t in one], *rest, **named)[1]
            return original(q, q, cos, sin, *rest, **named)[0], k
        return apply
    return exchanged(modeling, "apply_rotary_pos_emb", make)


# --- masks ---

def window_ignored(_, modeling):
    return exchanged(modeling, "create_sliding_window_causal_mask",
                     lambda _: modeling.create_causal_mask)


def window_everywhere(_, modeling):
    return exchanged(modeling, "create_causal_mask",
                     lambda _: modeling.create_sliding_window_causal_mask)


def windows_swapped(_, modeling):
    sliding, full = modeling.create_sliding_window_causal_mask, modeling.create_causal_mask
    modeling.create_sliding_window_causal_mask, modeling.create_causal_mask = full, sliding

    def undo():
        modeling.create_sliding_window_causal_mask, modeling.create_causal_mask = sliding, full
    return undo


def window_one_less(_, modeling):
    def make(original):
        def create(config, *rest, **named):
            kept, config.sliding_window = config.sliding_window, config.sliding_window - 1
            try:
                return original(config, *rest, **named)
            finally:
                config.sliding_window = kept
        return create
    return exchanged(modeling, "create_sliding_window_causal_mask", make)


# --- the configuration, after the model was built ---

def stretch_set_later(model, _):
    scaling = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8192}
    if hasattr(model.config, "rope_parameters"):
        model.config.rope_parameters = {**model.config.rope_parameters, **scaling}
    else:
        model.config.rope_scaling = scaling


def base_set_later(model, _):
    if hasattr(model.config, "rope_parameters"):
        model.config.rope_parameters = {**model.config.rope_parameters, "rope_theta": 5000000.0}
    else:
        model.config.rope_theta = 5000000.0


def part_set_later(model, _):
    if getattr(model.config, "rope_parameters", None):
        model.config.rope_parameters = {**model.config.rope_parameters,
                                        "partial_rotary_factor": 1.0}
    model.config.partial_rotary_factor = 1.0


def part_set_smaller(model, _):
    if getattr(model.config, "rope_parameters", None):
        model.config.rope_parameters = {**model.config.rope_parameters,
                                        "partial_rotary_factor": 0.25}
    model.config.partial_rotary_factor = 0.25
