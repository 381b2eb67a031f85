"""The types of the package. tests/python/package/test_types.py compares them with the functions."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypedDict, overload

import torch
from torch import Tensor
from typing_extensions import Unpack

from sextant import tables as tables
from sextant.cache import Cache as Cache
from sextant.doctor import Report
from sextant.encoding import Encoding as Encoding

__all__ = ["Cache", "Encoding", "Method", "__version__", "attention", "doctor", "load", "method",
           "methods", "ring_attention", "ring_shard", "ring_unshard", "rotate", "tables"]

__version__: str

# Cumulative lengths of packed sequences: for all rows of a batch, or a list for each row.
Lengths: TypeAlias = Sequence[int] | Tensor | Sequence[Sequence[int]] | Sequence[Tensor]

# The rows of a sequence that each rank of a group has.
Shards: TypeAlias = Literal["zigzag", "contiguous"]

@overload
def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    method: str = ...,
    *,
    causal: bool | None = ...,
    first_query: int | None = ...,
    first_key: int = ...,
    mask: Tensor | None = ...,
    packed_queries: Lengths = ...,
    packed_keys: Lengths = ...,
    query_segments: Tensor | None = ...,
    key_segments: Tensor | None = ...,
    query_positions: Tensor | None = ...,
    key_positions: Tensor | None = ...,
    scale: float | None = ...,
    sink: Tensor | None = ...,
    window: int | Sequence[int] | None = ...,
    key_bias: Tensor | None = ...,
    return_lse: Literal[False] = ...,
    parameters: Sequence[Tensor] = ...,
    layer: int = ...,
    layers: int = ...,
    width: int | None = ...,
    train_length: int | None = ...,
    cache: Cache | None = ...,
    sequences: Sequence[int] | None = ...,
    softcap: float | None = ...,
    dropout_p: float = ...,
    **options: Any,
) -> Tensor: ...
@overload
def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    method: str = ...,
    *,
    causal: bool | None = ...,
    first_query: int | None = ...,
    first_key: int = ...,
    mask: Tensor | None = ...,
    packed_queries: Lengths = ...,
    packed_keys: Lengths = ...,
    query_segments: Tensor | None = ...,
    key_segments: Tensor | None = ...,
    query_positions: Tensor | None = ...,
    key_positions: Tensor | None = ...,
    scale: float | None = ...,
    sink: Tensor | None = ...,
    window: int | Sequence[int] | None = ...,
    key_bias: Tensor | None = ...,
    return_lse: Literal[True],
    parameters: Sequence[Tensor] = ...,
    layer: int = ...,
    layers: int = ...,
    width: int | None = ...,
    train_length: int | None = ...,
    cache: Cache | None = ...,
    sequences: Sequence[int] | None = ...,
    softcap: float | None = ...,
    dropout_p: float = ...,
    **options: Any,
) -> tuple[Tensor, Tensor]: ...

def doctor(model: Any) -> Report: ...
def load() -> Path | None: ...
def methods() -> dict[str, dict[str, Any]]: ...
@overload
def ring_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    method: str | Method = ...,
    *,
    group: Any = ...,
    causal: bool = ...,
    shards: Shards = ...,
    scale: float | None = ...,
    sink: Tensor | None = ...,
    window: int | Sequence[int] | None = ...,
    key_bias: Tensor | None = ...,
    return_lse: Literal[False] = ...,
    parameters: Sequence[Tensor] = ...,
    layer: int = ...,
    layers: int = ...,
    width: int | None = ...,
    train_length: int | None = ...,
    softcap: float | None = ...,
    **options: Any,
) -> Tensor: ...
@overload
def ring_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    method: str | Method = ...,
    *,
    group: Any = ...,
    causal: bool = ...,
    shards: Shards = ...,
    scale: float | None = ...,
    sink: Tensor | None = ...,
    window: int | Sequence[int] | None = ...,
    key_bias: Tensor | None = ...,
    return_lse: Literal[True],
    parameters: Sequence[Tensor] = ...,
    layer: int = ...,
    layers: int = ...,
    width: int | None = ...,
    train_length: int | None = ...,
    softcap: float | None = ...,
    **options: Any,
) -> tuple[Tensor, Tensor]: ...
def ring_shard(x: Tensor, *, dim: int, group: Any = ..., shards: Shards = ...) -> Tensor: ...
def ring_unshard(x: Tensor, *, dim: int, group: Any = ..., shards: Shards = ...) -> Tensor: ...
def rotate(
    x: Tensor, positions: Tensor, *, back: bool = ..., **options: Any
) -> Tensor: ...
def method(
    name: str,
    *,
    heads: int,
    head_dim: int,
    layers: int = ...,
    key_heads: int | None = ...,
    width: int | None = ...,
    train_length: int = ...,
    dtype: torch.dtype | None = ...,
    **options: Any,
) -> Method: ...

# The arguments of a module's call, beside return_lse.
class CallArguments(TypedDict, total=False):
    layer: int
    causal: bool | None
    first_query: int | None
    first_key: int
    mask: Tensor | None
    packed_queries: Lengths
    packed_keys: Lengths
    query_segments: Tensor | None
    key_segments: Tensor | None
    query_positions: Tensor | None
    key_positions: Tensor | None
    scale: float | None
    sink: Tensor | None
    window: int | Sequence[int] | None
    key_bias: Tensor | None
    cache: Cache | None
    sequences: Sequence[int] | None
    softcap: float | None
    dropout_p: float

class Method(torch.nn.Module):
    name: str
    options: str
    shape: list[int]
    specs: list[dict[str, Any]]

    def __init__(
        self,
        name: str,
        *,
        heads: int,
        head_dim: int,
        layers: int = ...,
        key_heads: int | None = ...,
        width: int | None = ...,
        train_length: int = ...,
        dtype: torch.dtype | None = ...,
        **options: Any,
    ) -> None: ...
    def reset_parameters(self) -> None: ...
    def parameter_groups(self, lr: float, weight_decay: float = ...) -> list[dict[str, Any]]: ...
    def tensors(self) -> list[torch.nn.Parameter]: ...
    def embed(
        self,
        x: Tensor,
        *,
        first_query: int = ...,
        packed_queries: Lengths = ...,
        causal: bool = ...,
        last: bool = ...,
        token_ids: Tensor | None = ...,
        input_before: Tensor | None = ...,
    ) -> Tensor: ...
    def keys(self, k: Tensor, x: Tensor, *, layer: int = ...) -> Tensor: ...
    def run_last_layer(
        self, x: Tensor, layer: Callable[[Tensor, Tensor], Tensor], **place: Any
    ) -> Tensor: ...
    @overload
    def forward(
        self, q: Tensor, k: Tensor, v: Tensor, *, return_lse: Literal[False] = ...,
        **arguments: Unpack[CallArguments],
    ) -> Tensor: ...
    @overload
    def forward(
        self, q: Tensor, k: Tensor, v: Tensor, *, return_lse: Literal[True],
        **arguments: Unpack[CallArguments],
    ) -> tuple[Tensor, Tensor]: ...
    __call__ = forward
