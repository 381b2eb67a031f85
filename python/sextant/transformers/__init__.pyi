from collections.abc import Sequence
from typing import Any, TypeVar

_Model = TypeVar("_Model")

__all__ = ["ModelError", "accelerate", "restore", "stretch"]

class ModelError(RuntimeError): ...

def accelerate(model: _Model) -> _Model: ...
def restore(model: _Model) -> _Model: ...
def stretch(
    model: _Model,
    method: str | None = ...,
    *,
    layers: Sequence[str] | None = ...,
    train_length: int | None = ...,
    **options: Any,
) -> _Model: ...
