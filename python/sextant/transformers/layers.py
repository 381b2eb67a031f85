"""Which layers of a model compute their attention by Sextant, and which by code of their own."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import torch

from sextant.transformers.interface import NAME
from sextant.transformers.reach import asks_interface, is_attention
from sextant.transformers.swap import swapped_by


@dataclass(frozen=True)
class Layer:
    """A layer of attention. name: its path in the model. kind: the name of its class. by: the
    method of Sextant that computes it ("none" where positions are in queries and keys already), or
    None for code of its own."""

    name: str
    kind: str
    by: str | None


class Served(tuple[Layer, ...]):
    """The layers of attention of a model, in its order. As text, it is a table with a line for each
    run of layers that are alike."""

    @property
    def left(self) -> list[Layer]:
        """The layers that compute their attention by code of their own."""
        return [layer for layer in self if layer.by is None]

    def __str__(self):
        runs = []
        for layer in self:
            if runs and (runs[-1][-1].kind, runs[-1][-1].by) == (layer.kind, layer.by):
                runs[-1].append(layer)
            else:
                runs.append([layer])
        lines = [f"{len(self) - len(self.left)} of {len(self)} layers of attention by Sextant"]
        for run in runs:
            names = run[0].name if len(run) == 1 else f"{run[0].name} to {run[-1].name}"
            method = "" if run[0].by in (None, "none") else f", {run[0].by}"
            by = "code of its own" if run[0].by is None else f"Sextant{method}"
            lines.append(f"  {len(run):4}  {run[0].kind}: {by}  ({names})")
        return "\n".join(lines)


def served(model: Any) -> Served:
    """Tells for each layer of attention of a model whether Sextant computes it: a ``Served``."""
    return Served(Layer(name, type(module).__name__, _by(module))
                  for name, module in model.named_modules() if _computes(module))


def _by(module):
    by = swapped_by(module)
    if by is None and asks_interface(module) and getattr(
            getattr(module, "config", None), "_attn_implementation", None) == NAME:
        by = module.__dict__.get("_sextant_method", ("none",))[0]
    return by


def _computes(module):
    """Whether a module weights values by a softmax, by the code of its class."""
    if not is_attention(module):
        return False
    if asks_interface(module) or isinstance(module, torch.nn.MultiheadAttention):
        return True
    try:
        source = "".join(inspect.getsource(kind) for kind in type(module).__mro__
                         if issubclass(kind, torch.nn.Module) and kind is not torch.nn.Module)
    except (OSError, TypeError):
        return False
    return any(word in source for word in ("softmax(", "scaled_dot_product_attention(",
                                           "flash_attention_forward(", "Softmax("))
