"""Which models ask transformers' attention interface."""

import inspect

from transformers import PreTrainedModel

from sextant.transformers.errors import ModelError
from sextant.transformers.interface import NAME


def asks_interface(module):
    """Whether the class of an attention module calls the attention interface."""
    try:
        source = inspect.getsource(type(module).forward)
    except (OSError, TypeError):
        return False
    return "attention_interface(" in source


def attention_modules(model):
    """{name: module} of the modules that compute attention themselves."""
    named = {name: module for name, module in model.named_modules()
             if "attention" in type(module).__name__.lower() and asks_interface(module)}
    return named


def refuse_unserved(model):
    """Raises ModelError for a model whose attention never asks the interface: transformers accepts
    any name for it, and computes its own attention."""
    if not type(model)._can_set_attn_implementation():
        raise ModelError(
            f"{type(model).__name__}: attn_implementation: expected a model whose attention asks "
            f"transformers' attention interface, but its modules compute their own, so \"{NAME}\" "
            "would have no effect. sextant.transformers.accelerate(model) also serves DeBERTa v2 "
            "and v3.")


def refuse_others():
    """Makes transformers refuse the name for models that it would ignore it for."""
    _before(PreTrainedModel, "_check_and_adjust_attn_implementation")
    _before(PreTrainedModel, "set_attn_implementation")


def _before(owner, method):
    """Lets refuse_unserved run before a method whose first argument is the implementation."""
    original = getattr(owner, method)
    if hasattr(original, "_sextant_original"):
        return

    def checked(self, attn_implementation, *arguments, **named):
        asked = (attn_implementation.values() if isinstance(attn_implementation, dict) else
                 [attn_implementation])
        if NAME in asked:
            refuse_unserved(self)
        return original(self, attn_implementation, *arguments, **named)

    checked._sextant_original = original
    checked.__doc__ = original.__doc__
    setattr(owner, method, checked)
