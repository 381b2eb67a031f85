"""stretch(): a model with another stretch of its rotary positions, or with another method.

A model's rotary module is asked for cos and sin once in a forward pass. stretch() lets it answer
cos = 1 and sin = 0, so queries and keys reach the attention interface as they were projected, and
caches hold keys unrotated; each layer then rotates by its own method. No class is patched.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Sequence
from typing import Any, TypeVar

import torch

from sextant._attention import methods
from sextant.doctor import subject
from sextant.doctor.reading import ReadingError
from sextant.transformers.errors import ModelError
from sextant.transformers.interface import NAME, Positions, note_positions
from sextant.transformers.models import all_or_nothing, models_in, serve
from sextant.transformers.reach import attention_modules, refuse_unserved
from sextant.transformers.rows import note_cache
from sextant.transformers.trial import undisturbed

_Model = TypeVar("_Model")

CHECKED_TOKENS = 128
# Methods that act on queries and keys and have no trained parameters.
METHODS = ("alibi", "dual-chunk", "leaky-rerope", "none", "rerope", "rope", "self-extend",
           "streaming", "xpos")


def stretch(model: _Model, method: str | None = None, *, layers: Sequence[str] | None = None,
            train_length: int | None = None, **options: Any) -> _Model:
    """Computes a causal transformers model with another method than its own rotary positions.

    method: one of METHODS, with options as in ``sextant.attention``, such as ``"rope",
    stretch="yarn*4"``, ``"rerope", window=512`` or ``"self-extend"``; options that are not given
    (base, pairing, rotated columns, the model's own stretch) are those of the model's
    configuration. Without a method: the one that an earlier ``save_pretrained`` wrote to
    config.json. layers: the kinds of layers (``config.layer_types``) that change, by default those
    that see all keys, or all where none does; others keep the model's own positions. train_length:
    the length of training, by default the configuration's.

    A stretch that depends on the length (dynamic, longrope) takes that of each query, so that a
    token's result never depends on later ones; ``dynamic="length"`` takes that of the whole call
    for all queries, as transformers does. Their results differ past the length of training.

    model: a PreTrainedModel, or a module with one inside (PeftModel). Its attention is then
    computed by Sextant, as after ``accelerate``. Positions must be consecutive, and go on where
    those of a cache end: other ``position_ids`` than those of padding and packed sequences are a
    ModelError, and so is a cache that was filled otherwise or that lost rows between others. Caches
    hold keys unrotated. The method is noted in
    ``model.config`` as "sextant", and ``save_pretrained`` writes it to config.json; a program that
    does not call ``stretch(model)`` computes the model without it.

    First the model's own positions are computed this way, and the logits of random tokens must be
    those of before. Raises ModelError if they are not, or if the model cannot be served; the model
    is then unchanged.
    """
    parts = models_in(model)
    if len(parts) > 1:
        raise ModelError("model: expected one PreTrainedModel, but got "
                         f"{type(model).__name__} with {len(parts)} inside")
    _stretch(parts[0], method, layers, train_length, options)
    return model


def _stretch(model, method, layers, train_length, options):
    with all_or_nothing(model):
        if method is None:
            if layers is not None or train_length is not None or options:
                raise ModelError("method: expected a name beside other arguments, but got None")
            method, options, layers, train_length = _saved(model)
        if method not in METHODS:
            raise ModelError(f"method: expected one of {', '.join(METHODS)}, but got {method!r}")
        serve(model)
        undo_stretch(model)
        settings = _settings(model)
        layers = [layers] if isinstance(layers, str) else layers
        _check_layers(layers, settings)
        expected = _logits(model)
        _unrotate(model)
        for module, (group, _) in settings.items():
            module._sextant_method = _own(group)
        _compare(expected, _logits(model), model.dtype)
        for module, (group, kind) in settings.items():
            if _is_changed(group, kind, layers, settings):
                module._sextant_method = _chosen(method, options, group, train_length, model)
        _watch_rows(settings)
        try:
            _logits(model)
        except ModelError:
            raise
        except RuntimeError as error:  # options that do not fit
            raise ModelError(f"{method}: {error}") from error
        model.config.sextant = {"method": method, "options": options, "layers": layers,
                                "train_length": train_length}


def undo_stretch(model):
    """Undoes ``stretch``, and not ``accelerate``."""
    for module in model.modules():
        for name in ("_sextant_method", "_sextant_rows"):
            module.__dict__.pop(name, None)
        if "_sextant_forward" in module.__dict__:
            del module.forward
            if module._sextant_forward is not None:
                module.forward = module._sextant_forward
            del module._sextant_forward
    for part in model.modules():
        if hasattr(getattr(part, "config", None), "_attn_implementation"):
            part.config.__dict__.pop("sextant", None)


@contextlib.contextmanager
def own_positions(model):
    """The model computes its own positions in the block, as without ``stretch``. The value is a
    description of the stretch; empty without one."""
    changed = [(module, {name: module.__dict__.pop(name) for name in
                         ("forward", "_sextant_forward", "_sextant_method") if
                         name in module.__dict__})
               for module in model.modules()
               if "_sextant_method" in module.__dict__ or "_sextant_forward" in module.__dict__]
    for module, attributes in changed:
        if attributes.get("_sextant_forward") is not None:
            module.forward = attributes["_sextant_forward"]
    noted = getattr(model.config, "sextant", None)
    try:
        yield f"{noted['method']} {noted['options']}" if changed and noted else ""
    finally:
        for module, attributes in changed:
            module.__dict__.pop("forward", None)
            module.__dict__.update(attributes)


def _saved(model):
    saved = getattr(model.config, "sextant", None)
    names = ("method", "options", "layers", "train_length")
    if not isinstance(saved, dict) or not all(name in saved for name in names):
        raise ModelError("method: expected a name such as \"rope\", as config.json has no "
                         f"\"sextant\" with {', '.join(names)}, but got None")
    return (saved[name] for name in names)


def _settings(model):
    """{attention module: (its group of the configuration, the kind of its layer)}."""
    config = model.config.get_text_config(decoder=True)
    try:
        reading = subject.read_config(config)
    except ReadingError as error:
        raise ModelError(f"{type(model).__name__}: its configuration is not known: {error}"
                         ) from error
    kinds = getattr(config, "layer_types", None)
    found = {}
    for name, module in attention_modules(model).items():
        number = getattr(module, "layer_idx", None)
        if number is None:
            raise ModelError(f"{type(model).__name__}: expected attention with a layer_idx, as "
                             f"decoders have it, but {name} has none")
        kind = kinds[number] if kinds else None
        group = reading.group_of(number, kind)
        if group is None:
            raise ModelError(f"{name}: its positions are not known from the configuration")
        found[module] = group, kind
    if not found:
        refuse_unserved(model)
    if not any(group.rotates for group, _ in found.values()):
        raise ModelError(f"{type(model).__name__}: expected rotary positions, but its layers have "
                         "none")
    return found


def _check_layers(layers, settings):
    kinds = sorted({kind for _, kind in settings.values() if kind})
    wrong = [layer for layer in layers or () if layer not in kinds]
    if wrong:
        raise ModelError(f"layers: expected some of {', '.join(kinds) or 'none'}, but got "
                         f"{', '.join(wrong)}")


def _is_changed(group, kind, layers, settings):
    if not group.rotates:
        return False
    if layers is not None:
        return kind in layers
    whole = [g for g, _ in settings.values() if g.rotates and not g.window and not g.chunk]
    return not whole or (not group.window and not group.chunk)


def _plain(group):
    """The options of the rotation that a layer was trained with."""
    first, last = group.rotated_channels
    if first != 0:
        raise ModelError(f"rotated channels: expected the first of a head, but got {first} to "
                         f"{last}")
    options = {"base": group.base, "pairing": group.pairing, "float32_frequencies": True}
    if last + 1 != group.head_dim:
        options["dim"] = last + 1
    return options


def _own(group):
    """The method that a layer has by its configuration, its options and length of training."""
    if not group.rotates:
        return "none", {}, None
    options = _plain(group)
    if group.rope_type not in (None, "default"):
        options["stretch"] = {"rope_type": group.rope_type, **group.parameters}
        if group.rope_type in ("dynamic", "longrope"):
            options["dynamic"] = "length"
    return "rope", options, group.trained_length


def _chosen(method, options, group, train_length, model):
    known = methods()[method]["options"]
    wrong = [name for name in options if name not in known]
    if wrong:
        raise ModelError(f"{wrong[0]}: expected one of the options of {method} "
                         f"({', '.join(known)}), but got {wrong[0]}={options[wrong[0]]!r}")
    own = {name: value for name, value in _own(group)[1].items() if name in known}
    return (method, {**own, **options},
            train_length or group.trained_length or model.config.max_position_embeddings)


def _unrotate(model):
    """Lets the rotary modules rotate nothing."""
    modules = [module for module in model.modules()
               if type(module).__name__.endswith("RotaryEmbedding")]
    if not modules:
        raise ModelError(f"{type(model).__name__}: expected a rotary module, but its attention "
                         "rotates by itself")
    known = {id(module.config) for module in attention_modules(model).values()}
    for module in modules:
        # Before transformers 5, a second base has a copy of the configuration.
        config = getattr(module, "config", None)
        if id(config) not in known:
            config = model.config.get_text_config(decoder=True)
        _replace_forward(module, functools.partial(_nothing, module, config))


def _replace_forward(module, forward):
    module._sextant_forward = module.__dict__.get("forward")
    module.forward = forward


def _watch_rows(settings):
    """Lets one layer tell its cache: the first whose method knows positions, if possible without
    a window, as all its rows stay in the cache."""
    def sees_all(module):
        return not settings[module][0].window and not settings[module][0].chunk
    modules = [module for module in settings if module._sextant_method[0] != "none"]
    for module in sorted(modules, key=sees_all, reverse=True)[:1]:
        module._sextant_rows = True
        _replace_forward(module, functools.partial(_with_cache, module))


def _with_cache(module, *arguments, **named):
    note_cache(module, (*arguments, *named.values()))
    if module._sextant_forward is not None:
        return module._sextant_forward(*arguments, **named)
    return type(module).forward(module, *arguments, **named)


def _nothing(module, config, x, position_ids, *others, **named):
    """cos = 1 and sin = 0, or complex ones, of the shape that the module returns."""
    if config._attn_implementation != NAME:
        raise ModelError(f"attn_implementation: expected \"{NAME}\", as the model is stretched, "
                         f"but got {config._attn_implementation!r}")
    note_positions(config, _positions(position_ids))
    one = type(module).forward(module, x, position_ids[..., :1], *others, **named)
    rows = position_ids.size(-1)

    def filled(like, value):
        shape = [*like.shape[:-2], rows, like.size(-1)]
        return torch.full((), value, dtype=like.dtype, device=like.device).expand(shape)
    if not isinstance(one, tuple):
        return filled(one, 1)
    if len(one) != 2:
        raise ModelError(f"{type(module).__name__}: expected cos and sin, but got {len(one)} "
                         "tensors")
    return filled(one[0], 1), filled(one[1], 0)


@torch.compiler.disable  # the values of positions decide
def _positions(position_ids):
    """The Positions of a forward pass. Raises ModelError for ids that are neither consecutive nor
    those of padding."""
    if position_ids.dim() == 3:
        if not bool((position_ids == position_ids[:1]).all()):
            raise ModelError("position_ids: expected the same on all axes, but they differ")
        position_ids = position_ids[0]
    steps = position_ids.diff(dim=-1)
    # Padding has position 0 or 1 at either end.
    padded = (position_ids[..., 1:] <= 1) & (steps <= 0)
    resets = (position_ids[..., 1:] == 0) & (steps < 0)
    if not bool(((steps == 1) | padded).all()):
        raise ModelError("position_ids: expected consecutive ones, of each packed sequence from 0 "
                         "on, as the model is stretched, but got others")
    return Positions(position_ids.view(-1, position_ids.size(-1)), bool(resets.any()))


def _logits(model):
    config = model.config.get_text_config(decoder=True)
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(0, config.vocab_size, (1, CHECKED_TOKENS), generator=generator)
    tokens = tokens.to(model.device)
    with undisturbed(model):
        # A dynamic stretch keeps the frequencies of the longest call until a short one.
        model(tokens[:, :1], use_cache=False)
        return model(tokens, use_cache=False)[0].float()


def _compare(expected, got, dtype):
    narrow = torch.finfo(dtype).bits < 32
    most = expected.abs().max().item() * (4 * torch.finfo(dtype).eps if narrow else 1e-3)
    difference = (expected - got).abs().max().item()
    if not difference <= most:
        raise ModelError(
            "stretch: expected the model's own logits when Sextant computes its positions, but "
            f"they differ by {difference:.2g} of {expected.abs().max().item():.2g}: the model does "
            "something to positions that its configuration does not say")
