"""Attention to a sequence of which each process of a group holds a part of the rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

import torch
from torch import Tensor

from sextant import _transforms
from sextant._attention import NamedArguments
from sextant._call import (Call, call_of, check_tensors, method_options, options_text,
                           shape_of_call, window_sides, with_call)
from sextant._errors import InvalidType, InvalidValue
from sextant._method import Method
from sextant._packing import Result

if TYPE_CHECKING:
    from typing_extensions import Unpack

# The rows of a sequence that each rank of a group has.
Shards = Literal["zigzag", "contiguous"]

_Function = TypeVar("_Function", bound=Callable[..., Any])

# Arguments of sextant.attention that a ring does not have.
_NO_POSITIONS = "none, as the positions are those of shards"
_NO_PACKING = "none, as the group has one sequence for each entry of the batch"
_REFUSED = {
    "mask": "none, as masks by query and key are not divided: a key_bias of -infinity hides keys",
    "dropout_p": "0, as the weights that it drops depend on rows of a rank, not on positions",
    "packed_queries": _NO_PACKING,
    "packed_keys": _NO_PACKING,
    "cache": "none, as all rows of the sequence are in the call",
    "sequences": "none, as there is no cache",
    "query_segments": "none, as columns for segments depend on the keys of all ranks",
    "key_segments": "none, as columns for segments depend on the keys of all ranks",
    "first_query": _NO_POSITIONS,
    "first_key": _NO_POSITIONS,
    "query_positions": _NO_POSITIONS,
    "key_positions": _NO_POSITIONS,
}


def _untraced(function: _Function) -> _Function:
    """torch.compile breaks its graph at a call of the result: it records no ranks that wait for
    each other."""
    compiler = getattr(torch, "compiler", None)
    return compiler.disable(function) if hasattr(compiler, "disable") else function  # type: ignore


def _place(group: Any) -> tuple[str, int, int]:
    """(name, rank, size) of a process group, of the default group for None. The name is empty for a
    group of one process, and if there is no default group."""
    dist = torch.distributed
    if not dist.is_available() or (group is None and not dist.is_initialized()):
        if group is not None:
            raise InvalidValue("group: expected None, as this torch has no torch.distributed, but "
                               f"got {type(group).__name__}")
        return "", 0, 1
    if hasattr(group, "get_group"):  # a DeviceMesh of one dimension
        group = group.get_group()
    if group is None:
        group = dist.distributed_c10d._get_default_group()
    rank, size = dist.get_rank(group), dist.get_world_size(group)
    if rank < 0:
        raise InvalidValue("group: expected a group with this process, but got one without it")
    if size == 1:
        return "", rank, size
    name = getattr(group, "group_name", None)
    if name is None or not torch.ops.sextant.has_named_groups():
        raise InvalidValue(
            "group: expected torch 2.1 or later, in which process groups have names, for a group "
            f"of {size} processes, but this is torch {torch.__version__}"
        )
    return name, rank, size


def _check_shards(shards: str) -> None:
    if shards not in ("zigzag", "contiguous"):
        raise InvalidValue(f'shards: expected "zigzag" or "contiguous", but got {shards!r}')


def _refuse(call: Call) -> None:
    """Raises an error if a call asks for something that only ``sextant.attention`` has."""
    for name, expected in _REFUSED.items():
        value = getattr(call, name)
        is_number = isinstance(value, (int, float))
        if call.asks(name) and not (is_number and value == 0):
            got = repr(value) if is_number else type(value).__name__
            raise InvalidValue(f"{name}: ring_attention: expected {expected}, but got {got}")


def _check_dim(x: Any, dim: int) -> None:
    if not isinstance(x, torch.Tensor):
        raise InvalidType(f"x: expected a tensor, but got {type(x).__name__}")
    if not -x.dim() <= dim < x.dim():
        raise InvalidValue(f"dim: expected {-x.dim()} to {x.dim() - 1}, but got {dim}")


def ring_shard(x: Tensor, *, dim: int, group: Any = None, shards: Shards = "zigzag") -> Tensor:
    """The rows of a whole tensor that this rank holds: those of dimension dim, which is 1 for
    tokens and inputs [batch, length, ...], and 2 for q, k and v. Differentiable.

    shards "zigzag" (2 P chunks; rank r of P has chunks r and 2 P - 1 - r) or "contiguous" (P
    chunks). ``ring_shard(torch.arange(length), dim=0)`` is the positions of the rank's rows.

    Raises ValueError if the length is no multiple of the number of chunks."""
    _check_shards(shards)
    _check_dim(x, dim)
    _, rank, size = _place(group)
    if size == 1:
        return x
    chunks = 2 * size if shards == "zigzag" else size
    if x.size(dim) % chunks != 0:
        raise InvalidValue(f"x: expected a multiple of {chunks} rows, the chunks of {size} ranks, "
                           f"but got {x.size(dim)}")
    of_chunk = x.size(dim) // chunks
    own = (rank, 2 * size - 1 - rank) if shards == "zigzag" else (rank,)
    return torch.cat([x.narrow(dim, chunk * of_chunk, of_chunk) for chunk in own], dim)


@_untraced
def ring_unshard(x: Tensor, *, dim: int, group: Any = None,
                 shards: Shards = "zigzag") -> Tensor:
    """The whole of a tensor of which each rank of the group gives its rows, on all ranks: the
    opposite of ``ring_shard``. All ranks must call it. The gradient of x is the sum over ranks."""
    _check_shards(shards)
    _check_dim(x, dim)
    name, _, _ = _place(group)
    whole: Tensor = torch.ops.sextant.ring_unsharded(x, dim, group=name, shards=shards)
    return whole


@overload
def ring_attention(q: Tensor, k: Tensor, v: Tensor, method: str | Method = ..., *, group: Any = ...,
                   shards: Shards = ..., return_lse: Literal[False] = ...,
                   **call: Unpack[NamedArguments]) -> Tensor: ...
@overload
def ring_attention(q: Tensor, k: Tensor, v: Tensor, method: str | Method = ..., *, group: Any = ...,
                   shards: Shards = ..., return_lse: Literal[True],
                   **call: Unpack[NamedArguments]) -> tuple[Tensor, Tensor]: ...
@_untraced
@with_call
def ring_attention(q: Tensor, k: Tensor, v: Tensor, method: str | Method = "none", *,
                   group: Any = None, shards: Shards = "zigzag",
                   parameters: Sequence[Tensor] = (), layers: int = 1, width: int | None = None,
                   train_length: int | None = None, options: Mapping[str, Any] | None = None,
                   **call: Any) -> Result:
    """Computes attention to a sequence that is divided among the processes of a group (context
    parallelism), with any position encoding: ``sextant.attention`` of the whole, of which each rank
    gives and gets its own rows. All ranks must call it alike.

    Liu, Zaharia and Abbeel 2023 (Ring Attention, arXiv 2310.01889): keys and values visit all
    ranks, each while those before are used. A rank never has the keys of more than two ranks, nor a
    matrix of queries x keys.

    Shapes: q [batch, heads, rows, head_dim]; k [batch, key_heads, rows, head_dim]; v [batch,
    key_heads, rows, value_dim]; rows are the rank's, as many on each rank. ``ring_shard`` takes
    them from a whole tensor. The result is [batch, heads, rows, value_dim], with return_lse also
    lse [batch, heads, rows].

    Positions: shards is the order of ``ring_shard``, and the sequence has positions from 0. With
    the causal mask, "zigzag" gives all ranks as much to compute (as in the context parallelism of
    Megatron-LM and PyTorch); "contiguous" gives the last rank almost twice the average.

    group is a process group of torch.distributed, or a DeviceMesh of one dimension; None is the
    default group, and plain attention if there is none. It needs torch 2.1 or later and tensors in
    memory, so a backend for the CPU, such as Gloo.

    Gradients are those of the sum of the losses of all ranks, so all ranks must call backward().
    Those of q, k, v and key_bias are complete. Those of parameters and of the sink are the rank's
    part, as are those of the other weights of a model whose ranks share a sequence: reduce them in
    the same way, by DistributedDataParallel or all_reduce over the group.

    method is the name of an encoding, with parameters, layers, width, train_length (by default the
    length of the whole) and options as for ``sextant.attention``; or a ``sextant.Method``, which
    has all of these. scale, sink, window, key_bias (of the rank's own keys) and softcap have the
    meaning that they have there. A mask, dropout, packed sequences, segments, a cache and positions
    of one's own are refused.

    If another process of the group ends, calls on the other ranks raise RuntimeError.

    Raises errors as ``sextant.attention`` does, also for an argument that differs between ranks.
    """
    if not isinstance(method, (str, Method)):
        raise InvalidType("method: expected the name of a method or a sextant.Method, but got "
                          f"{type(method).__name__}")
    tensors: Sequence[Tensor] = parameters
    if isinstance(method, str):
        options = method_options(ring_attention, method, options, call)
    elif options or parameters:
        more = ", ".join(name for name, one in (("options", options), ("parameters", parameters))
                         if one)
        raise InvalidValue("method: expected no options and parameters beside a module, which has "
                           f"its own, but got {more}")
    arguments = call_of(ring_attention, {"causal": True, **call},
                        method if isinstance(method, str) else None)
    _refuse(arguments)
    if _transforms.active():
        raise InvalidValue("ring_attention: expected no transforms of torch.func, but got one")
    check_tensors("", q=q, k=k, v=v)
    _check_shards(shards)
    if arguments.causal is None:
        raise InvalidValue("causal: expected True or False, but got None")
    group, _, size = _place(group)
    if isinstance(method, Method):
        name, shape, text, tensors = method.name, method.shape, method.options, method.tensors()
    else:
        name, text = method, options_text(options or {})
        shape = shape_of_call(q, k, layers, width,
                              size * k.size(2) if train_length is None else train_length)
    out, lse = torch.ops.sextant.ring_attention(
        name, shape, text, list(tensors), q, k, v, group=group, shards=shards,
        layer=arguments.layer, causal=arguments.causal, scale=arguments.scale, sink=arguments.sink,
        key_bias=arguments.key_bias, window=window_sides(arguments.window, arguments.causal),
        softcap=arguments.softcap or 0.0)
    return (out, lse) if arguments.return_lse else out
