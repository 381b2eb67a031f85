"""Sextant in models of Hugging Face's transformers.

``from_pretrained(..., attn_implementation="sextant")``, after ``import sextant.transformers``,
computes the attention of a model with Sextant: the same numbers, without matrices of queries x
keys. ``accelerate(model)`` does so with a live model, and also serves models whose attention has
relative positions in code of its own (T5, DeBERTa, Conformers, Swin, ...: docs/transformers.md has
them all); ``served(model)`` tells which layers are computed so. ``stretch(model, "rope",
stretch="yarn*4")`` computes a model with another stretch of its rotary positions, or another
method. ``restore(model)`` undoes both.

Whatever cannot be computed exactly is a ``ModelError``, which names the model or the argument, its
value and what is allowed.
"""

from sextant._library import load

load()

# pylint: disable=wrong-import-position
from sextant.transformers.errors import ModelError  # noqa: E402
from sextant.transformers.interface import register  # noqa: E402
from sextant.transformers.layers import Layer, Served, served  # noqa: E402
from sextant.transformers.models import accelerate, restore  # noqa: E402
from sextant.transformers.positions import stretch  # noqa: E402
from sextant.transformers.reach import refuse_others  # noqa: E402

__all__ = ["Layer", "ModelError", "Served", "accelerate", "restore", "served", "stretch"]

register()
refuse_others()
