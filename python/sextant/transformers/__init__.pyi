from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

_Model = TypeVar("_Model")

__all__ = ["Layer", "ModelError", "Served", "accelerate", "restore", "served", "stretch"]

class ModelError(RuntimeError): ...

@dataclass(frozen=True)
class Layer:
    name: str
    kind: str
    by: str | None

class Served(tuple[Layer, ...]):
    @property
    def left(self) -> list[Layer]: ...

def accelerate(
    model: _Model, *, inputs: Mapping[str, Any] | None = ..., verbose: bool = ...
) -> _Model: ...
def restore(model: _Model) -> _Model: ...
def served(model: Any) -> Served: ...
def stretch(
    model: _Model,
    method: str | None = ...,
    *,
    layers: Sequence[str] | None = ...,
    train_length: int | None = ...,
    **options: Any,
) -> _Model: ...
