"""accelerate() and restore(): attention of live models by Sextant, and back.

All changes are attributes of modules that name functions of this package, so models with them can
be copied and pickled, and ``restore`` finds them in any part of a model.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Mapping
from typing import Any, TypeVar

import torch
from transformers import PreTrainedModel
from transformers.configuration_utils import PretrainedConfig

from sextant._models_inside import models_inside
from sextant.transformers import swap, trial
from sextant.transformers.errors import ModelError
from sextant.transformers.interface import NAME
from sextant.transformers.reach import attention_modules, refuse_unserved, set_implementation
from sextant.transformers.layers import served

_Model = TypeVar("_Model", bound=torch.nn.Module)

# The attribute of a model with the implementations of its parts before.
BEFORE = "_sextant_before"


def accelerate(model: _Model, *, inputs: Mapping[str, Any] | None = None,
               verbose: bool = False) -> _Model:
    """Computes the attention of a transformers model with Sextant, and returns the model.

    model: a PreTrainedModel, or a module with some inside (PeftModel, SentenceTransformer, GLiNER),
    each of which is served. inputs: the arguments of a forward pass, by name, for the trial; by
    default tokens, an image or a signal of the model's kind. verbose: prints which layers are
    served, by what, and which are not; ``served(model)`` returns it.

    Weights, their names and results stay as they are, up to rounding; there are no matrices of
    queries x keys any more. (A query that sees no key gets zeros, and with transformers' own code
    the mean of all values.) Served are models whose attention asks transformers' attention
    interface (most), and those with relative positions in code of their own that
    ``sextant.transformers.attention`` has. Layers of other kinds beside served ones keep their own
    code, which is a warning. Gradients, dropout, caches, padding, packed sequences, torch.autocast
    and torch.compile work as before; ``output_attentions`` is a ModelError, as there are no weights
    to return.

    The model runs twice on a few tokens, by itself and by Sextant. Layers that do not run, as those
    for images in a model of texts and images, and all on the device meta, are judged by their code.
    Raises ModelError if the model cannot be served; it is then unchanged.
    """
    parts = models_in(model)
    if inputs is not None and len(parts) > 1:
        raise ModelError(f"inputs: expected None, as there are {len(parts)} models inside "
                         f"{type(model).__name__}, but got arguments; accelerate each of them")
    with contextlib.ExitStack() as stack:
        for part in parts:
            stack.enter_context(all_or_nothing(part))
        for part in parts:
            named = trial.inputs_for(part, inputs)
            serve(part)
            modules = {name: module for name, module in attention_modules(part).items()
                       if swap.NOTE not in module.__dict__}
            if named is not None:
                modules = trial.run(part, named, modules)
            trial.refuse_unknown(part, modules)
        layers = served(model)
        if layers and len(layers.left) == len(layers):
            raise ModelError(f"{type(model).__name__}: expected a layer of attention that Sextant "
                             f"computes, but all keep their own code ({layers.left[0].kind})")
    if verbose:
        print(layers)
    elif layers.left:
        kinds = ", ".join(sorted({layer.kind for layer in layers.left}))
        warnings.warn(f"{type(model).__name__}: {len(layers.left)} of {len(layers)} layers of "
                      f"attention keep their own code ({kinds}); sextant.transformers.served(model)"
                      " lists them", stacklevel=2)
    return model


def serve(model):
    """Does the work of ``accelerate`` for one PreTrainedModel, without a trial."""
    swapped = swap.swap(model)
    own = swapped and not type(model)._can_set_attn_implementation()
    if own and not any(one.ranges for one in swapped):
        for part in model.modules():  # such as a language model beside layers for pictures
            if (isinstance(part, PreTrainedModel) and type(part)._can_set_attn_implementation()
                    and attention_modules(part)):
                _ask_interface(part)
        return
    if not own:
        refuse_unserved(model)
    if not attention_modules(model) and not swapped:
        raise ModelError(f"{type(model).__name__}: expected layers that ask transformers' "
                         "attention interface, but there are none")
    _ask_interface(model, own)


def _ask_interface(model, own=False):
    before = implementations(model)
    if own:  # transformers would refuse
        set_implementations(model, dict.fromkeys(before, NAME))
    else:
        set_implementation(model, NAME)
    if BEFORE not in model.__dict__:
        setattr(model, BEFORE, before)


def models_in(model):
    """The PreTrainedModels of a module: itself, or the outermost ones inside."""
    found = models_inside(model)
    if not found:
        raise ModelError("model: expected a transformers.PreTrainedModel, or a module with one "
                         f"inside, but got {type(model).__name__}")
    return [part for _, part in found]


def restore(model: _Model) -> _Model:
    """Undoes ``accelerate`` and ``stretch``, also those of parts of the model: it is as it was
    before. Returns it."""
    from sextant.transformers.positions import undo_stretch  # which imports this module
    undo_stretch(model)
    swap.undo(model)
    for part in list(model.modules()):
        set_implementations(part, part.__dict__.get(BEFORE, {}))
        if BEFORE in part.__dict__:
            delattr(part, BEFORE)
    return model


def implementations(model):
    """{(name of a part, path in its configuration): attention implementation} of the model, its
    parts, and the configurations inside theirs, also those without a part."""
    return {(name, path): config._attn_implementation_internal
            for name, part in model.named_modules() if isinstance(part, PreTrainedModel)
            for path, config in _configurations(part.config)}


def set_implementations(model, before):
    """Sets what ``implementations`` returned."""
    for (name, path), implementation in before.items():
        config = model.get_submodule(name).config
        for key in path:
            config = getattr(config, key)
        config._attn_implementation_internal = implementation


def _configurations(config, path=()):
    yield path, config
    for key, value in vars(config).items():
        if isinstance(value, PretrainedConfig):
            yield from _configurations(value, (*path, key))


@contextlib.contextmanager
def all_or_nothing(model):
    """If an error leaves the block, the model's modules and configuration are as before it."""
    modules = {module: dict(module.__dict__) for module in model.modules()}
    before = implementations(model)
    saved = model.config.__dict__.get("sextant")
    try:
        yield
    except BaseException:
        for module, attributes in modules.items():
            module.__dict__.clear()
            module.__dict__.update(attributes)
        set_implementations(model, before)
        model.config.__dict__.pop("sextant", None)
        if saved is not None:
            model.config.sextant = saved
        raise
