"""The positions of the rows of q and k, and the keys that each query sees."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from sextant._call import Call, check_cumulative
from sextant._errors import InvalidValue

_FARTHEST = 2**24  # float32 has all integers up to it


class Frame(NamedTuple):
    """A sequence: rows of q and of k with consecutive positions. A query sees keys of its own frame
    only (sextant/position/frame.h)."""

    query_row: int
    queries: int
    query_position: int
    key_row: int
    keys: int
    key_position: int


class Rows:
    """The rows of a call: frames, whether keys at higher positions are hidden, and the sizes of q
    and k. Tensors are on the CPU, as the operators expect plans."""

    def __init__(self, frames: list[Frame], causal: bool, queries: int, keys: int) -> None:
        self.frames, self.causal, self.queries, self.keys = frames, causal, queries, keys
        nearest: int | None = None
        farthest: int | None = None
        for f in frames:
            if f.queries == 0 or f.keys == 0:
                continue
            near = f.query_position - (f.key_position + f.keys - 1)
            far = f.query_position + f.queries - 1 - f.key_position
            nearest = near if nearest is None else min(nearest, near)
            farthest = far if farthest is None else max(farthest, far)
        if nearest is None or farthest is None:
            nearest, farthest = 0, -1
        self.nearest = max(nearest, 0) if causal else nearest
        self.farthest = max(farthest, self.nearest - 1)
        if max(self.farthest, -self.nearest) > _FARTHEST:
            raise InvalidValue(f"encoding: expected distances up to {_FARTHEST}, which float32 has "
                               f"exactly, but got {max(self.farthest, -self.nearest)}")

    def frame_table(self) -> Tensor:
        """int64 [frames, 7], the fields of sextant::Frame."""
        return torch.tensor([[-1, *frame] for frame in self.frames], dtype=torch.long).view(-1, 7)

    def distances(self, dtype: torch.dtype) -> Tensor:
        """The distance of each diagonal, falling: query position minus key position."""
        return torch.arange(self.farthest, self.nearest - 1, -1).to(dtype)

    def query_positions(self) -> Tensor:
        """int64 [queries]"""
        parts = [torch.arange(f.query_position, f.query_position + f.queries) for f in self.frames]
        return torch.cat(parts) if parts else torch.zeros(0, dtype=torch.long)

    def key_positions(self) -> Tensor:
        """int64 [keys]; 0 for rows of no sequence."""
        if len(self.frames) == 1 and self.frames[0].keys == self.keys:
            first = self.frames[0].key_position
            return torch.arange(first, first + self.keys)
        positions = torch.zeros(self.keys, dtype=torch.long)
        for f in self.frames:
            positions[f.key_row:f.key_row + f.keys] = torch.arange(
                f.key_position, f.key_position + f.keys)
        return positions


def rows_of_call(q: Tensor, k: Tensor, call: Call) -> Rows:
    """The rows of q and k. call has a first_query."""
    queries, keys = q.size(2), k.size(2)
    packed_queries, packed_keys = call.packed_queries, call.packed_keys
    if isinstance(packed_queries, Tensor) or isinstance(packed_keys, Tensor):
        raise InvalidValue("packed_queries, packed_keys: expected lists of cumulative lengths, but "
                           "got a traced tensor")
    is_causal = call.causal is not False
    if not packed_queries and not packed_keys:
        assert call.first_query is not None
        frame = Frame(0, queries, call.first_query, 0, keys, call.first_key)
        return Rows([frame], is_causal, queries, keys)
    check_cumulative("packed_queries", packed_queries, queries)
    check_cumulative("packed_keys", packed_keys, keys)
    if len(packed_queries) != len(packed_keys):
        raise InvalidValue(f"packed_keys: expected {len(packed_queries)} entries, as "
                           f"packed_queries, but got {len(packed_keys)}")
    frames = []
    for query, next_query, key, next_key in zip(packed_queries, packed_queries[1:], packed_keys,
                                                packed_keys[1:]):
        count, seen = next_query - query, next_key - key
        frames.append(Frame(query, count, seen - count, key, seen, 0))
    return Rows(frames, is_causal, queries, keys)
