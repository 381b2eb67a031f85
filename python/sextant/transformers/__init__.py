"""Sextant in models of Hugging Face's transformers.

``from_pretrained(..., attn_implementation="sextant")``, after ``import sextant.transformers``,
computes the attention of a model with Sextant: the same numbers, without matrices of queries x
keys. ``accelerate(model)`` does so with a live model, and also serves models whose attention has
biases of its own (the T5 family, DeBERTa v2 and v3). ``restore(model)`` undoes it.

Whatever cannot be computed exactly is a ``ModelError``, which names the model or the argument, its
value and what is allowed.
"""

from sextant.transformers.errors import ModelError
from sextant.transformers.interface import register
from sextant.transformers.models import accelerate, refuse_others, restore

__all__ = ["ModelError", "accelerate", "restore"]

register()
refuse_others()
