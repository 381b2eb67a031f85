"""Which models ask transformers' attention interface."""

import functools
import inspect

from transformers import PreTrainedModel

from sextant.transformers.errors import ModelError
from sextant.transformers.interface import NAME
from sextant.transformers.swap import NOTE


def asks_interface(module):
    """Whether the class of an attention module calls the attention interface."""
    try:
        source = inspect.getsource(type(module).forward)
    except (OSError, TypeError):
        return False
    return "attention_interface(" in source


def is_attention(module):
    """Whether the class of a module is named after attention."""
    return any(word in type(module).__name__.lower() for word in ("attention", "attn"))


def attention_modules(model):
    """{name: module} of the modules that ask the interface for attention."""
    return {name: module for name, module in model.named_modules()
            if is_attention(module) and asks_interface(module)}


def refuse_unserved(model):
    """Raises ModelError for a model whose attention never asks the interface: transformers accepts
    any name for it, and computes its own attention."""
    if not type(model)._can_set_attn_implementation():
        raise ModelError(
            f"{type(model).__name__}: attn_implementation: expected a model whose attention asks "
            f"transformers' attention interface, but its modules compute their own, so \"{NAME}\" "
            "would have no effect. sextant.transformers.accelerate(model) also serves some of them "
            "(docs/transformers.md).")


def refuse_changed(model):
    """Raises ModelError if a part of the model is changed, and so needs this implementation."""
    for part in model.modules():
        if any(name in part.__dict__ for name in ("_sextant_before", "_sextant_method", NOTE)):
            raise ModelError(
                f"{type(model).__name__}: attn_implementation: expected \"{NAME}\", as the model "
                "is accelerated or stretched; sextant.transformers.restore(model) undoes both")


def refuse_others():
    """Makes transformers refuse the name for models that it would ignore it for, and other names
    for models that are changed."""
    _before("_check_and_adjust_attn_implementation")
    _before("set_attn_implementation")


def set_implementation(model, name):
    """set_attn_implementation() as transformers has it."""
    method = PreTrainedModel.set_attn_implementation
    getattr(method, "_sextant_original", method)(model, name)
    for part in model.modules():  # transformers 4 leaves this, and then skips the next change
        if isinstance(part, PreTrainedModel):
            part.config.__dict__.pop("_attn_was_changed", None)


def _before(method):
    """Lets the checks run before a method whose first argument is the implementation."""
    original = getattr(PreTrainedModel, method)
    if hasattr(original, "_sextant_original"):
        return

    @functools.wraps(original)
    def checked(self, attn_implementation, *arguments, **named):
        asked = (attn_implementation.values() if isinstance(attn_implementation, dict) else
                 [attn_implementation])
        if NAME in asked:
            refuse_unserved(self)
        elif method == "set_attn_implementation":
            refuse_changed(self)
        return original(self, attn_implementation, *arguments, **named)

    checked._sextant_original = original
    setattr(PreTrainedModel, method, checked)
