"""Packing by row of a batch, and nested tensors: both become one row of packed sequences."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Union

import torch
from torch import Tensor

from sextant._call import Call, as_lengths, check_cumulative, is_packed
from sextant._errors import InvalidValue

Result = Union[Tensor, "tuple[Tensor, Tensor]"]  # out, or out and lse
Attend = Callable[[Tensor, Tensor, Tensor, Call], Result]


def joined_lengths(name: str, lengths: Any, batch: int, rows: int) -> list[int]:
    """The cumulative lengths of the rows of a batch one after the other."""
    if len(lengths) != batch or not all(isinstance(sums, list) for sums in lengths):
        raise InvalidValue(f"{name}: expected one list for each of the {batch} rows of the batch, "
                           f"but got {len(lengths)} entries")
    joined = [0]
    for n, sums in enumerate(lengths):
        check_cumulative(f"{name}: row {n}", sums, rows)
        joined += [n * rows + length for length in sums[1:]]
    return joined


def joined_rows(x: Tensor) -> Tensor:
    """[batch, heads, rows, columns] -> [1, heads, batch * rows, columns]"""
    return x.transpose(0, 1).reshape(1, x.size(1), -1, x.size(3))


def split_rows(x: Tensor, batch: int) -> Tensor:
    """[1, heads, batch * rows, ...] -> [batch, heads, rows, ...]"""
    return x.reshape(x.size(1), batch, x.size(2) // batch, *x.shape[3:]).transpose(0, 1)


def _joined_numbers(x: Tensor | None, batch: int) -> Tensor | None:
    """Positions or a bias by key, [rows], [batch, rows] or [1 or batch, n, rows] -> [1, n, batch *
    rows]; None stays None."""
    if x is None:
        return None
    x = x.unsqueeze(0) if x.dim() == 1 else x
    x = x.unsqueeze(1) if x.dim() == 2 else x
    return joined_rows(x.expand(batch, -1, -1).unsqueeze(3)).squeeze(3)


def _joined_segments(x: Tensor | None) -> Tensor | None:
    return None if x is None else x.reshape(1, -1)


def _map_results(results: Result, function: Callable[[Tensor], Tensor]) -> Result:
    if isinstance(results, tuple):
        return function(results[0]), function(results[1])
    return function(results)


def attend_by_row(attend: Attend, q: Tensor, k: Tensor, v: Tensor, call: Call) -> Result:
    """Calls attend(q, k, v, call) with the rows of the batch one after the other."""
    if call.mask is not None:
        raise InvalidValue(
            "mask: expected none, as sequences are packed by row, but got one: a key_bias of "
            "-infinity hides keys"
        )
    batch = q.size(0)
    packed_queries = joined_lengths("packed_queries", call.packed_queries, batch, q.size(2))
    packed_keys = joined_lengths("packed_keys", call.packed_keys, batch, k.size(2))
    for n, (queries, keys) in enumerate(zip(call.packed_queries, call.packed_keys)):
        if len(queries) != len(keys):
            raise InvalidValue(
                f"packed_keys: row {n}: expected {len(queries)} entries, as packed_queries, but "
                f"got {len(keys)}"
            )
    joined = dataclasses.replace(
        call, packed_queries=packed_queries, packed_keys=packed_keys,
        key_bias=_joined_numbers(call.key_bias, batch),
        query_segments=_joined_segments(call.query_segments),
        key_segments=_joined_segments(call.key_segments),
        query_positions=_joined_numbers(call.query_positions, batch),
        key_positions=_joined_numbers(call.key_positions, batch))
    results = attend(joined_rows(q), joined_rows(k), joined_rows(v), joined)
    return _map_results(results, lambda x: split_rows(x, batch))


def is_nested(*tensors: Tensor) -> bool:
    return any(isinstance(x, torch.Tensor) and x.is_nested for x in tensors)


def _ragged(name: str, x: Any) -> tuple[Tensor, Tensor]:
    """(rows of all sequences [1, heads, rows, columns], offsets) of a nested tensor."""
    jagged = getattr(torch, "jagged", None)
    what = (f"{name}: expected a contiguous nested tensor [batch, heads, rows, columns] of layout "
            "torch.jagged, with as many rows as each sequence has, but got ")
    if not x.is_nested:
        raise InvalidValue(f"{what}a tensor {list(x.shape)}, while others are nested")
    if jagged is None or x.layout != jagged:
        raise InvalidValue(f"{what}layout {x.layout}: pass layout=torch.jagged to nested_tensor, "
                           "or packed sequences (packed_queries, packed_keys)")
    if x.dim() != 4 or x._ragged_idx != 2:
        raise InvalidValue(f"{what}{x.dim()} dimensions, of which dimension {x._ragged_idx} is "
                           "ragged: [batch, rows, heads, columns].transpose(1, 2) is such a tensor")
    rows = x.transpose(1, 2)
    if rows.lengths() is not None:
        raise InvalidValue(f"{what}one with gaps between sequences: contiguous() removes them")
    return rows.values().transpose(0, 1).unsqueeze(0), x.offsets()


def longest(name: str, x: Tensor) -> int:
    """The number of rows of x, [batch, heads, rows, columns]; of its longest sequence if it is
    nested."""
    if not x.is_nested:
        return x.size(2)
    _, offsets = _ragged(name, x)
    return int(offsets.diff().max()) if offsets.numel() > 1 else 0


def attend_nested(attend: Attend, q: Tensor, k: Tensor, v: Tensor, call: Call) -> Result:
    """Calls attend(q, k, v, call) with the sequences of nested tensors packed."""
    for name in ("packed_queries", "packed_keys"):
        if is_packed(getattr(call, name)):
            raise InvalidValue(f"{name}: expected none beside nested tensors, but got lengths")
    for name in ("mask", "key_bias", "query_segments", "key_segments", "query_positions",
                 "key_positions"):
        if getattr(call, name) is not None:
            raise InvalidValue(f"{name}: expected none beside nested tensors, but got a tensor: "
                               "pass packed sequences instead (packed_queries, packed_keys)")
    (q, queries), (k, keys), (v, values) = (
        _ragged(name, x) for name, x in (("q", q), ("k", k), ("v", v))
    )
    if not torch.equal(keys, values):
        raise InvalidValue("v: expected sequences as long as those of k, but got others")
    results = attend(q, k, v, dataclasses.replace(call, packed_queries=as_lengths("q", queries),
                                                  packed_keys=as_lengths("k", keys)))

    def nested(x: Tensor) -> Tensor:
        rows = x.squeeze(0).transpose(0, 1).contiguous()
        return torch.nested.nested_tensor_from_jagged(rows, queries).transpose(1, 2)

    return _map_results(results, nested)
