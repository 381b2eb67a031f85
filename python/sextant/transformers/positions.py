"""stretch(): a model with another stretch of its rotary positions, or with another method.

A model's rotary module is asked for cos and sin once in a forward pass. stretch() lets it answer
cos = 1 and sin = 0, so queries and keys reach the attention interface as they were projected, and
caches hold keys unrotated; each layer then rotates by its own method. No class is patched.
"""

import functools

import torch

from sextant._attention import methods
from sextant.doctor import subject
from sextant.doctor.reading import ReadingError
from sextant.transformers.errors import ModelError
from sextant.transformers.models import accelerate, undo_stretch
from sextant.transformers.reach import attention_modules

CHECKED_TOKENS = 24


def stretch(model, method=None, *, layers=None, train_length=None, **options):
    """Computes a causal transformers model with another method than its own rotary positions.

    method and options: as in ``sextant.attention``, such as ``"rope", stretch="yarn*4"``,
    ``"rerope", window=512`` or ``"self-extend"``; options that are not given (base, pairing,
    rotated columns) are those of the model's configuration. Without a method: the one that an
    earlier ``save_pretrained`` wrote to config.json. layers: the kinds of layers
    (``config.layer_types``) that change, by default those that see all keys; others keep the
    model's own positions. train_length: the length of training, by default the configuration's.

    The model's attention is then computed by Sextant, as after ``accelerate``. Caches hold keys
    unrotated: a cache that was filled before does not fit. ``save_pretrained`` writes the method to
    config.json as "sextant"; a program that does not call ``stretch(model)`` computes the model
    without it.

    First the model's own positions are computed this way, and the logits of random tokens must be
    those of before. Raises ModelError if they are not, or if the model cannot be served; the model
    is then unchanged.
    """
    saved = getattr(model.config, "sextant", None)
    if method is None:
        if not isinstance(saved, dict):
            raise ModelError("method: expected a name such as \"rope\", as config.json has no "
                             "\"sextant\" of an earlier save_pretrained, but got None")
        method, options = saved["method"], dict(saved["options"])
        layers, train_length = saved["layers"], saved["train_length"]
    if method not in methods():
        raise ModelError(f"method: expected one of {', '.join(methods())}, but got {method!r}")
    accelerate(model)
    undo_stretch(model)
    undo = []
    try:
        settings = _settings(model)
        _check_layers(layers, settings)
        expected = _logits(model)
        undo += _unrotated(model)
        undo += _set(settings, {module: _own(module, group) for module, (group, _) in
                                settings.items()})
        _compare(expected, _logits(model))
        chosen = {module: _chosen(method, options, group, train_length, model)
                  for module, (group, kind) in settings.items() if _is_changed(group, kind, layers,
                                                                               settings)}
        undo += _set(settings, chosen)
        _logits(model)  # raises for options that do not fit
    except BaseException:
        for function in reversed(undo):
            function()
        raise
    model.config.sextant = {"method": method, "options": options, "layers": layers,
                            "train_length": train_length}
    undo.append(lambda: delattr(model.config, "sextant") if saved is None else
                setattr(model.config, "sextant", saved))
    model._sextant_unstretch = undo
    return model


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
    options = {"base": group.base, "pairing": group.pairing, "float32_speeds": True}
    if last + 1 != group.head_dim:
        options["dim"] = last + 1
    return options


def _own(module, group):
    """The method that a layer has by its configuration."""
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
    own = {name: value for name, value in _plain(group).items() if name in known}
    return (method, {**own, **options},
            train_length or group.trained_length or model.config.max_position_embeddings)


def _set(settings, chosen):
    """Sets the methods of modules. Returns a function that undoes it."""
    before = {module: getattr(module, "_sextant_method", None) for module in settings}
    for module, (name, options, train_length) in chosen.items():
        module._sextant_method = name, options, train_length

    def undo():
        for module, value in before.items():
            if value is not None:
                module._sextant_method = value
            elif hasattr(module, "_sextant_method"):
                del module._sextant_method
    return [undo]


def _unrotated(model):
    """Lets the rotary modules rotate nothing. Returns functions that undo it."""
    modules = [module for module in model.modules()
               if type(module).__name__.endswith("RotaryEmbedding")]
    if not modules:
        raise ModelError(f"{type(model).__name__}: expected a rotary module, but its attention "
                         "rotates by itself")
    undo = []
    for module in modules:
        module.forward = functools.partial(_nothing, type(module).forward, module)
        undo.append(functools.partial(delattr, module, "forward"))
    return undo


def _nothing(forward, module, x, position_ids, *others, **named):
    """cos = 1 and sin = 0, or complex ones, of the shape that the module returns."""
    one = forward(module, x, position_ids[..., :1], *others, **named)
    parts = one if isinstance(one, tuple) else (one,)
    rows = position_ids.size(-1)

    def filled(like, value):
        shape = [*like.shape[:-2], rows, like.size(-1)]
        return torch.full((), value, dtype=like.dtype, device=like.device).expand(shape)
    if not isinstance(one, tuple):
        return filled(one, 1)
    if len(parts) != 2:
        raise ModelError(f"{type(module).__name__}: expected cos and sin, but got {len(parts)} "
                         "tensors")
    return filled(parts[0], 1), filled(parts[1], 0)


@torch.no_grad()
def _logits(model):
    config = model.config.get_text_config(decoder=True)
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(0, config.vocab_size, (1, CHECKED_TOKENS), generator=generator)
    training = model.training
    model.eval()
    try:
        return model(tokens.to(model.device), use_cache=False)[0].float()
    finally:
        model.train(training)


def _compare(expected, got):
    narrow = torch.finfo(torch.bfloat16).eps
    most = expected.abs().max().item() * 4 * narrow
    difference = (expected - got).abs().max().item()
    if not difference <= most:
        raise ModelError(
            "stretch: expected the model's own logits when Sextant computes its positions, but "
            f"they differ by {difference:.2g} of {expected.abs().max().item():.2g}: the model does "
            "something to positions that its configuration does not say")
