"""accelerate() and restore(): attention of live models by Sextant, and back."""

from transformers import PreTrainedModel

from sextant.transformers import deberta, t5
from sextant.transformers.errors import ModelError
from sextant.transformers.interface import NAME
from sextant.transformers.reach import attention_modules, refuse_unserved

# Attributes of a model: the functions that undo its changes, in the order of the changes.
_UNDO, _UNSTRETCH = "_sextant_undo", "_sextant_unstretch"


def accelerate(model):
    """Computes the attention of a transformers model with Sextant, and returns the model.

    Weights, their names and results stay as they are, up to rounding; there are no matrices of
    queries x keys any more. Served are models whose attention asks transformers' attention
    interface (most), the T5 family with transformers 5 (T5, mT5, umT5, Switch), and DeBERTa v2 and
    v3. Gradients, dropout, caches, padding, packed sequences and torch.autocast work as before;
    ``output_attentions`` is a ModelError, as there are no weights to return.

    Raises ModelError if the model cannot be served; it is then unchanged.
    """
    if not isinstance(model, PreTrainedModel):
        raise ModelError(f"model: expected a transformers.PreTrainedModel, but got "
                         f"{type(model).__name__}")
    if hasattr(model, _UNDO):
        return model
    undo = []
    try:
        if deberta.layers(model):
            undo += deberta.swap(model)
        else:
            refuse_unserved(model)
            if not attention_modules(model):
                raise ModelError(f"{type(model).__name__}: expected layers that ask transformers' "
                                 "attention interface, but there are none")
            undo += t5.swap(model)
            undo.append(_set_implementation(model))
    except BaseException:
        for function in reversed(undo):
            function()
        raise
    setattr(model, _UNDO, undo)
    return model


def _set_implementation(model):
    before = model.config._attn_implementation
    model.set_attn_implementation(NAME)
    return lambda: model.set_attn_implementation(before)


def undo_stretch(model):
    """Undoes ``stretch``, and not ``accelerate``."""
    for function in reversed(getattr(model, _UNSTRETCH, [])):
        function()
    if hasattr(model, _UNSTRETCH):
        delattr(model, _UNSTRETCH)


def restore(model):
    """Undoes ``accelerate`` and ``stretch``: the model is as it was before. Returns it."""
    undo_stretch(model)
    for function in reversed(getattr(model, _UNDO, [])):
        function()
    if hasattr(model, _UNDO):
        delattr(model, _UNDO)
    return model
