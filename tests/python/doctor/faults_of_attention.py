"""Faults of masks, caches, attention functions and norms that tests plant in live models. Each
function changes a model and returns a function that undoes changes outside of it, or None."""

import sys

import torch
from faults import attentions, exchanged, of_positions, of_rotary, rotaries
from transformers import cache_utils
from transformers.integrations import sdpa_attention


# --- masks ---

def causal(modeling, make):
    return exchanged(modeling, "create_causal_mask", make)


def next_token_visible(_, modeling):
    """key <= query + 1"""
    return causal(modeling, lambda original: lambda *args, **named: original(
        *args, **named, or_mask_function=lambda b, h, q, k: k <= q + 1))


def own_key_hidden(_, modeling):
    """key < query; the first query sees its own"""
    return causal(modeling, lambda original: lambda *args, **named: original(
        *args, **named, and_mask_function=lambda b, h, q, k: (k < q) | (q == 0)))


def bidirectional(_, modeling):
    return causal(modeling, lambda original: lambda *args, **named: original(
        *args, **named, or_mask_function=lambda b, h, q, k: k >= 0))


def no_mask(model, modeling):
    for module in attentions(model):
        module.is_causal = False
    return causal(modeling, lambda _: lambda *args, **named: None)


def eager_without_mask(model, modeling):
    model.config._attn_implementation = "eager"
    return causal(modeling, lambda _: lambda *args, **named: None)


def of_masks(modeling, change, name="create_causal_mask"):
    """Exchanges masks by changed ones, as bool tensors [batch, 1, queries, keys]."""
    def make(original):
        def create(*args, **named):
            mask = original(*args, **named, or_mask_function=lambda b, h, q, k: k > 10**9)
            return change(mask)
        return create
    return exchanged(modeling, name, make)


def mask_inverted(_, modeling):
    return of_masks(modeling, torch.logical_not)


def mask_that_hides_little(_, modeling):
    """-1 in place of -inf"""
    return of_masks(modeling, lambda mask: torch.where(mask, 0.0, -1.0))


def mask_transposed(_, modeling):
    return of_masks(modeling, lambda mask: mask.transpose(-1, -2)
                    if mask.shape[-1] == mask.shape[-2] else mask)


def first_key_hidden(_, modeling):
    def change(mask):
        mask = mask.clone()
        mask[..., 2:, 0] = False
        return mask
    return of_masks(modeling, change)


def padding_seen(_, modeling):
    return causal(modeling, lambda original: lambda *args, **named: original(
        *args, **{**named, "attention_mask": None}))


def padding_on_the_wrong_side(_, modeling):
    return causal(modeling, lambda original: lambda *args, **named: original(*args, **{
        **named, "attention_mask": None if named["attention_mask"] is None
        else named["attention_mask"].flip(-1)}))


def of_calls(module, change):
    """Exchanges the forward of an attention layer; change(named) changes its arguments."""
    forward = module.forward
    module.forward = lambda *args, **named: forward(*args, **change(named))


def mask_of_one_layer(model, _):
    module = attentions(model)[2]
    module.is_causal = False
    of_calls(module, lambda named: {**named, "attention_mask": None})


def of_sdpa(change):
    """Exchanges the attention function; change(original, module, q, k, v, mask, **named)."""
    functions = sys.modules["transformers.modeling_utils"].ALL_ATTENTION_FUNCTIONS
    original = sdpa_attention.sdpa_attention_forward
    functions._global_mapping["sdpa"] = lambda *args, **named: change(original, *args, **named)

    def undo():
        functions._global_mapping["sdpa"] = original
    return undo


def mask_ignored_by_function(model, _):
    for module in attentions(model):
        module.is_causal = False
    return of_sdpa(lambda original, module, q, k, v, mask, **named:
                   original(module, q, k, v, None, **named))


def one_head_bidirectional(*_):
    def change(original, module, q, k, v, mask, **named):
        out = original(module, q, k, v, mask, **named)[0].clone()
        every = torch.ones(1, 1, q.shape[2], k.shape[2], dtype=torch.bool)
        out[:, :, 1] = original(module, q, k, v, every, **named)[0][:, :, 1]
        return out, None
    return of_sdpa(change)


def causal_encoder(_, modeling):
    """An encoder whose full layers get a causal mask."""
    return exchanged(modeling, "create_bidirectional_mask", lambda original: lambda **named:
                     original(**named, and_mask_function=lambda b, h, q, k: k <= q))


def small_window_ignored(_, modeling):
    return exchanged(modeling, "create_sliding_window_causal_mask",
                     lambda _: lambda *args, **named: None)


def chunks_ignored(_, modeling):
    return exchanged(modeling, "create_chunked_causal_mask",
                     lambda _: modeling.create_causal_mask)


# --- caches ---

def of_cache(method, change, kind=None):
    """Exchanges a method of caches; change(original, cache, ...)."""
    kind = kind or cache_utils.DynamicLayer
    original = getattr(kind, method)
    return exchanged(kind, method,
                     lambda _: lambda *args, **named: change(original, *args, **named))


def length_off_by(by):
    return of_cache("get_seq_length", lambda original, *args, **named: original(
        *args, **named) + by if original(*args, **named) else 0, cache_utils.DynamicCache)


def position_repeated(*_):
    return length_off_by(-1)


def position_skipped(*_):
    return length_off_by(1)


def position_repeated_by_generate(model, _):
    """Only generate() counts wrongly."""
    original = model.prepare_inputs_for_generation

    def prepare(*args, **kwargs):
        inputs = original(*args, **kwargs)
        if inputs["input_ids"].shape[1] == 1:
            inputs["position_ids"] = inputs["position_ids"] - 1
        return inputs
    model.prepare_inputs_for_generation = prepare


def positions_begin_again(model, _):
    def change(original, x, positions, *rest, **named):
        return original(x, positions - positions[:, :1], *rest, **named)
    of_rotary(model, change)


def changed_update(change):
    """change(keys, values, new): of the cache's after its update."""
    def update(original, cache, keys, values, *rest, **named):
        k, v = original(cache, keys, values, *rest, **named)
        return change(k, v, keys.shape[2]) if k.shape[2] > keys.shape[2] else (k, v)
    return of_cache("update", update)


def new_keys_first(*_):
    return changed_update(lambda k, v, new: (k.roll(new, 2), v.roll(new, 2)))


def last_key_overwritten(*_):
    return changed_update(lambda k, v, new: (torch.cat([k[:, :, :-new - 1], k[:, :, -new:],
                                                        k[:, :, -1:]], 2), v))


def first_key_lost(*_):
    return changed_update(lambda k, v, new: (k[:, :, 1:], v[:, :, 1:]))


def old_keys_lost(*_):
    return changed_update(lambda k, v, new: (k[:, :, -new:], v[:, :, -new:]))


def keys_of_cache_halved(*_):
    return changed_update(lambda k, v, new: (torch.cat([k[:, :, :-new] / 2, k[:, :, -new:]], 2), v))


def values_shifted(*_):
    return changed_update(lambda k, v, new: (k, v.roll(1, 2)))


def keys_in_8_bits(*_):
    def coarse(k):
        size = k.abs().amax() / 8
        return (k / size).round() * size
    return changed_update(lambda k, v, new: (coarse(k), v))


def mask_of_cache_upper_left(_, modeling):
    """As is_causal with fewer queries than keys: query i of new ones sees keys 0 to i."""
    def make(original):
        def create(*args, **named):
            mask = original(*args, **named, or_mask_function=lambda b, h, q, k: k > 10**9)
            return mask if mask.shape[-1] == mask.shape[-2] else torch.ones_like(mask).tril()
        return create
    return causal(modeling, make)


# --- scores ---

def softcap_dropped(model, _):
    for module in attentions(model):
        module.attn_logit_softcapping = None


def softcap_halved(model, _):
    for module in attentions(model):
        module.attn_logit_softcapping /= 2


def softcap_by_sdpa(model, _):
    """An implementation that knows no softcap."""
    model.config._attn_implementation = "sdpa"
    return of_sdpa(lambda original, *args, softcap=None, **named: original(*args, **named))


def softcap_added(model, modeling):
    model.config._attn_implementation = "eager"

    def make(_):
        def eager(module, q, k, v, mask, scaling, **named):
            k, v = (modeling.repeat_kv(x, module.num_key_value_groups) for x in (k, v))
            scores = 30 * torch.tanh(q @ k.transpose(2, 3) * scaling / 30) + mask
            return (scores.softmax(-1) @ v).transpose(1, 2), None
        return eager
    return exchanged(modeling, "eager_attention_forward", make)


def scale_ignored_by_function(*_):
    return of_sdpa(lambda original, *args, scaling=None, **named: original(*args, **named))


def scale_of_one_head(*_):
    def change(original, module, q, *args, **named):
        q = q.clone()
        q[:, 1] *= 2
        return original(module, q, *args, **named)
    return of_sdpa(change)


def heads_tiled(model, modeling):
    """Keys and values repeated as a whole, as torch.Tensor.repeat does."""
    model.config._attn_implementation = "eager"
    return exchanged(modeling, "repeat_kv", lambda _: lambda x, times: x.repeat(1, times, 1, 1))


def heads_of_values_tiled(*_):
    def change(original, module, q, k, v, *args, **named):
        return original(module, q, k, v.flip(1), *args, **named)
    return of_sdpa(change)


def too_few_groups(model, _):
    for module in attentions(model):
        module.num_key_value_groups = 3


def without_sinks(_, modeling):
    def make(original):
        def eager(module, *args, **named):
            kept = module.sinks
            module.sinks = torch.nn.Parameter(torch.full_like(kept, -1e4))
            try:
                return original(module, *args, **named)
            finally:
                module.sinks = kept
        return eager
    return exchanged(modeling, "eager_attention_forward", make)


def query_law_dropped(model, _):
    for module in attentions(model):
        module.attn_temperature_tuning = False


def flash_without_mask(model, modeling):
    """An implementation that needs a GPU."""
    model.config._attn_implementation_internal = "flash_attention_2"
    return causal(modeling, lambda _: lambda *args, **named: None)


# --- norms ---

def norms(model, name):
    return [(module, getattr(module, name)) for module in attentions(model)]


def query_norm_dropped(model, _):
    for module, _ in norms(model, "q_norm"):
        module.q_norm = torch.nn.Identity()


def key_norm_dropped(model, _):
    for module, _ in norms(model, "k_norm"):
        module.k_norm = torch.nn.Identity()


def norm_does_nothing(model, _):
    for _, norm in norms(model, "q_norm"):
        norm.forward = lambda x: x


def norm_without_root(model, _):
    """The weight without the division."""
    for _, norm in norms(model, "k_norm"):
        norm.forward = lambda x, norm=norm: x * norm.weight


def latent_norm_dropped(model, _):
    for module in attentions(model):
        module.kv_a_layernorm = torch.nn.Identity()


def norm_of_one_layer_dropped(model, _):
    attentions(model)[1].q_norm = torch.nn.Identity()


# --- positions ---

def positions_shifted(model, _):
    of_positions(model, lambda p: p + 1)


def positions_one_behind(model, _):
    of_positions(model, lambda p: (p - 1).clamp(min=0))


def positions_halved_down(model, _):
    of_positions(model, lambda p: p // 2)


def positions_doubled(model, _):
    of_positions(model, lambda p: p * 2 - p % 2)


def positions_wrap(model, _):
    of_positions(model, lambda p: p % 4096)


def positions_jump(model, _):
    of_positions(model, lambda p: torch.where(p > 1000, p + 7, p))


def positions_counted_from_one_end(model, _):
    """Positions that the model counts itself begin at 2, and skip one."""
    def change(p):
        own = p.shape[0] == 1  # counted, for all rows
        return torch.where(p > 3, p + 1, p) if own else p
    of_positions(model, change)


def no_rotation_at_all(model, _):
    for module in rotaries(model):
        module.forward = lambda x, position_ids, *rest, n=module: (
            torch.ones(*position_ids.shape, 2 * len(n.inv_freq)),
            torch.zeros(*position_ids.shape, 2 * len(n.inv_freq)))
