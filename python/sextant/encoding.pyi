from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor

from sextant.cache import Cache

# A term by distance: a tensor, or a table and the row of each distance.
ByDistance: TypeAlias = Tensor | tuple[Tensor, Tensor] | None

class Encoding(torch.nn.Module):
    scale: float | None
    pairing: Literal["half-split", "interleaved"]
    shared: bool
    heads: int
    key_heads: int
    head_dim: int | None
    train_length: int | None

    def __init__(
        self,
        *,
        heads: int,
        key_heads: int | None = ...,
        head_dim: int | None = ...,
        train_length: int | None = ...,
    ) -> None: ...
    def bias(self, distances: Tensor) -> ByDistance: ...
    def weight(self, distances: Tensor) -> ByDistance: ...
    def on_query(self, distances: Tensor) -> ByDistance: ...
    def on_key(self, distances: Tensor) -> ByDistance: ...
    def on_value(self, distances: Tensor) -> ByDistance: ...
    def key_bias(self, k: Tensor, positions: Tensor) -> Tensor | None: ...
    def query_scale(self, q: Tensor, positions: Tensor) -> Tensor | None: ...
    def speeds(self) -> Tensor | None: ...
    def phases(self, k: Tensor, positions: Tensor) -> Tensor | None: ...
    def sink(self) -> Tensor | None: ...
    def forward(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        *,
        causal: bool | None = ...,
        first_query: int | None = ...,
        first_key: int = ...,
        mask: Tensor | None = ...,
        packed_queries: Sequence[int] = ...,
        packed_keys: Sequence[int] = ...,
        cache: Cache | None = ...,
        sequences: Sequence[int] | None = ...,
    ) -> Tensor: ...
    __call__ = forward
    def overrides(self, hook: str) -> bool: ...
    def operands(self, q: Tensor, k: Tensor, v: Tensor, rows: Any) -> dict[str, Any]: ...
    def attend(
        self, q: Tensor, operands: dict[str, Any], rows: Any, **place: Any
    ) -> Tensor: ...
