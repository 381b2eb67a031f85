"""accelerate() and restore(): attention of live models by Sextant, and back.

All changes are attributes of modules that name functions of this package, so models with them can
be copied and pickled, and ``restore`` finds them in any part of a model.
"""

import contextlib

from transformers import PreTrainedModel

from sextant.transformers import deberta, t5
from sextant.transformers.errors import ModelError
from sextant.transformers.interface import NAME
from sextant.transformers.reach import attention_modules, refuse_unserved, set_implementation

# The attribute of a model with the implementations of its parts before.
BEFORE = "_sextant_before"
# The attributes of modules that this package changes.
CHANGED = (BEFORE, "_sextant_biased", "_sextant_forward", "_sextant_method", "compute_bias",
           "forward", "get_attention_mask", "get_rel_pos", "has_relative_attention_bias")


def accelerate(model):
    """Computes the attention of a transformers model with Sextant, and returns the model.

    Weights, their names and results stay as they are, up to rounding; there are no matrices of
    queries x keys any more. (A query that sees no key gets zeros, and with transformers' own code
    the mean of all values.) Served are models whose attention asks transformers' attention
    interface (most), the T5 family with transformers 5 (T5, mT5, umT5, Switch), and DeBERTa v2 and
    v3. Gradients, dropout, caches, padding, packed sequences and torch.autocast work as before;
    ``output_attentions`` is a ModelError, as there are no weights to return.

    Raises ModelError if the model cannot be served; it is then unchanged.
    """
    if not isinstance(model, PreTrainedModel):
        raise ModelError(f"model: expected a transformers.PreTrainedModel, but got "
                         f"{type(model).__name__}")
    with all_or_nothing(model):
        if deberta.layers(model):
            deberta.swap(model)
        else:
            refuse_unserved(model)
            if not attention_modules(model):
                raise ModelError(f"{type(model).__name__}: expected layers that ask transformers' "
                                 "attention interface, but there are none")
            t5.swap(model)
            before = implementations(model)
            set_implementation(model, NAME)
            if BEFORE not in model.__dict__:
                setattr(model, BEFORE, before)
    return model


def restore(model):
    """Undoes ``accelerate`` and ``stretch``, also those of parts of the model: it is as it was
    before. Returns it."""
    from sextant.transformers.positions import undo_stretch  # which imports this module
    undo_stretch(model)
    deberta.unswap(model)
    t5.unswap(model)
    for part in list(model.modules()):
        for name, implementation in part.__dict__.get(BEFORE, {}).items():
            part.get_submodule(name).config._attn_implementation_internal = implementation
        if BEFORE in part.__dict__:
            delattr(part, BEFORE)
    return model


def implementations(model):
    """{name: attention implementation} of the model and its parts."""
    return {name: part.config._attn_implementation for name, part in model.named_modules()
            if isinstance(part, PreTrainedModel)}


@contextlib.contextmanager
def all_or_nothing(model):
    """If an error leaves the block, the model's modules and configuration are as before it."""
    modules = {module: {name: module.__dict__[name] for name in CHANGED if name in module.__dict__}
               for module in model.modules()}
    before = implementations(model)
    saved = model.config.__dict__.get("sextant")
    try:
        yield
    except BaseException:
        for module, attributes in modules.items():
            for name in CHANGED:
                if name in attributes:
                    module.__dict__[name] = attributes[name]
                elif name in module.__dict__:
                    del module.__dict__[name]
        for name, implementation in before.items():
            model.get_submodule(name).config._attn_implementation_internal = implementation
        model.config.__dict__.pop("sextant", None)
        if saved is not None:
            model.config.sextant = saved
        raise
