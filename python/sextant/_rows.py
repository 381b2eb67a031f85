"""The positions of the rows of q and k, and the keys that each query sees."""

from collections import namedtuple

import torch

from sextant._call import as_lengths, by_row, check_cumulative, packing, refuse_unseen

_FARTHEST = 2**24  # float32 has all integers up to it

# A sequence: rows of q and of k with consecutive positions. A query sees keys of its own frame only
# (sextant/position/frame.h).
Frame = namedtuple("Frame", "query_row queries query_position key_row keys key_position")


class Rows:
    """The rows of a call: frames, whether keys at higher positions are hidden, and the sizes of q
    and k. Tensors are on the CPU, as the operators expect plans."""

    def __init__(self, frames, causal, queries, keys):
        self.frames, self.causal, self.queries, self.keys = frames, causal, queries, keys
        nearest, farthest = None, None
        for f in frames:
            if f.queries == 0 or f.keys == 0:
                continue
            near = f.query_position - (f.key_position + f.keys - 1)
            far = f.query_position + f.queries - 1 - f.key_position
            nearest = near if nearest is None else min(nearest, near)
            farthest = far if farthest is None else max(farthest, far)
        nearest, farthest = (0, -1) if nearest is None else (nearest, farthest)
        self.nearest = max(nearest, 0) if causal else nearest
        self.farthest = max(farthest, self.nearest - 1)
        if max(self.farthest, -self.nearest) > _FARTHEST:
            raise RuntimeError(f"encoding: expected distances up to {_FARTHEST}, which float32 has "
                               f"exactly, but got {max(self.farthest, -self.nearest)}")

    def frame_table(self):
        """int64 [frames, 7], the fields of sextant::Frame."""
        return torch.tensor([[-1, *frame] for frame in self.frames], dtype=torch.long).view(-1, 7)

    def key_ranges(self):
        """int64 [1, 1, queries, 2]: the key rows [first, last) that each query sees."""
        parts = []
        for f in self.frames:
            first = torch.full((f.queries,), f.key_row)
            last = first + f.keys
            if self.causal:
                start = f.query_position - f.key_position + 1
                seen = torch.arange(start, start + f.queries).clamp(0, f.keys)
                last = first + seen
            parts.append(torch.stack((first, last), 1))
        return torch.cat(parts)[None, None] if parts else torch.zeros(1, 1, 0, 2, dtype=torch.long)

    def distances(self, dtype):
        """The distance of each diagonal, falling: query position minus key position."""
        return torch.arange(self.farthest, self.nearest - 1, -1).to(dtype)

    def query_positions(self):
        """int64 [queries]"""
        parts = [torch.arange(f.query_position, f.query_position + f.queries) for f in self.frames]
        return torch.cat(parts) if parts else torch.zeros(0, dtype=torch.long)

    def key_positions(self):
        """int64 [keys]; 0 for rows of no sequence."""
        if len(self.frames) == 1 and self.frames[0].keys == self.keys:
            first = self.frames[0].key_position
            return torch.arange(first, first + self.keys)
        positions = torch.zeros(self.keys, dtype=torch.long)
        for f in self.frames:
            positions[f.key_row:f.key_row + f.keys] = torch.arange(
                f.key_position, f.key_position + f.keys)
        return positions


def rows_of_call(q, k, causal, first_query, first_key, packed_queries, packed_keys):
    """The rows of q and k, from the arguments of ``sextant.attention``."""
    if causal is not None and not isinstance(causal, bool):
        raise RuntimeError(f"causal: expected True, False or None, but got {causal!r}")
    queries, keys = q.size(2), k.size(2)
    packed_queries = as_lengths("packed_queries", packed_queries)
    packed_keys = as_lengths("packed_keys", packed_keys)
    if by_row(packed_queries, packed_keys) or isinstance(packed_queries, torch.Tensor):
        raise RuntimeError("packed_queries, packed_keys: expected one list of cumulative lengths, "
                           "but got lengths for each row of the batch, or a traced tensor")
    is_causal = causal is not False
    if not packed_queries and not packed_keys:
        if first_query is None:
            if causal is None:
                refuse_unseen(queries, keys, {})
            first_query = first_key + keys - queries
        return Rows([Frame(0, queries, first_query, 0, keys, first_key)], is_causal, queries, keys)
    if (first_query or 0) != 0 or first_key != 0:
        raise RuntimeError("first_query, first_key: expected 0, as sequences are packed, but got "
                           f"{first_query}, {first_key}")
    check_cumulative("packed_queries", packed_queries, queries)
    check_cumulative("packed_keys", packed_keys, keys)
    if len(packed_queries) != len(packed_keys):
        raise RuntimeError(f"packed_keys: expected {len(packed_queries)} entries, as "
                           f"packed_queries, but got {len(packed_keys)}")
    if causal is None:
        refuse_unseen(queries, keys, packing(packed_queries, packed_keys))
    frames = []
    for query, next_query, key, next_key in zip(packed_queries, packed_queries[1:], packed_keys,
                                                packed_keys[1:]):
        count, seen = next_query - query, next_key - key
        frames.append(Frame(query, count, seen - count, key, seen, 0))
    return Rows(frames, is_causal, queries, keys)
