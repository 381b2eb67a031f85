"""The models of transformers inside a module, such as that of a PeftModel."""

from __future__ import annotations

from typing import Any


def models_inside(module: Any) -> list[tuple[str, Any]]:
    """[(name, PreTrainedModel)]: the module itself with the name "", or the outermost ones in
    it."""
    import torch
    from transformers import PreTrainedModel
    found: list[tuple[str, Any]] = []
    for name, part in module.named_modules() if isinstance(module, torch.nn.Module) else ():
        if isinstance(part, PreTrainedModel) and not any(
                name.startswith(f"{outer}." if outer else "") for outer, _ in found):
            found.append((name, part))
    return found
