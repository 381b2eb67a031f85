"""The positions of rows in the cache of a stretched model.

A stretched model rotates cached keys by their rows, so the positions of a call must go on where
those of the rows before it end. transformers' caches do not know the positions of their rows, and a
cache can be copied, cropped, reordered, compressed or filled elsewhere. So each cache carries a
record of one layer, which grows with it: a few numbers of each row's key, by which the row is known
again, and, for each entry of the batch, how far positions are from rows.
"""

import weakref
from dataclasses import dataclass
from typing import Any

import torch

from sextant.transformers.errors import ModelError

MARKS = 4  # channels of a key that are kept
RECORD = "_sextant_record"  # the attribute of a cache
# The cache of the layer's call in progress.
_CACHES: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()


@dataclass
class Record:
    """marks: [batch, rows, MARKS]. offsets: the position minus the row, for each entry of the
    batch; None before its first row that is no padding."""

    marks: torch.Tensor
    offsets: list


@torch.compiler.disable
def note_cache(module, arguments):
    """Notes the cache among the arguments of a layer, for ``check``."""
    from transformers import Cache
    cache = next((x for x in arguments if isinstance(x, Cache)), None)
    _CACHES[module] = None if cache is None else weakref.ref(cache)


def check(module, key, first_query, sees_itself, position_ids):
    """Raises ModelError unless the positions of a call follow those of the cached rows; notes its
    rows in the cache.

    key: [batch, heads, rows, columns], of which first_query rows were cached before. sees_itself:
    bool [1 or batch, queries], False for padding. position_ids: [1 or batch, queries]."""
    cache = _CACHES.get(module)
    cache = cache() if cache is not None else None
    batch, queries = key.size(0), position_ids.size(1)
    marks = key[:, 0, :first_query + queries, :MARKS].detach().nan_to_num()
    positions = position_ids.cpu().expand(batch, -1)
    sees_itself = sees_itself.expand(batch, -1)
    if first_query == 0:
        befores = [Record(marks[:, :0], [None] * batch)]
    else:
        record = getattr(cache, RECORD, None)
        befores = [] if record is None else _found(record, marks[:, :first_query])
        if not befores:
            raise ModelError(
                "past_key_values: expected a cache as this model has filled it since it was "
                f"stretched, whole, cropped, or without its first rows, but got {first_query} rows "
                "of unknown positions")
    offsets = [_continued(before, positions, sees_itself) for before in befores]
    fitting = [n for n, one in enumerate(offsets) if one is not None]
    if not fitting:
        raise ModelError(
            "position_ids: expected those that follow the rows of the cache, as the model is "
            f"stretched, but got {positions[:, 0].tolist()} for row {befores[0].marks.size(1)}, "
            f"where the earlier rows have the positions row + {befores[0].offsets}")
    if cache is not None:
        before = befores[fitting[0]]
        setattr(cache, RECORD, Record(torch.cat([before.marks, marks[:, first_query:]], 1),
                                      offsets[fitting[0]]))


def _found(record, marks):
    """Records of the rows that a cache holds: the last ones of a record, or its first ones after
    the cache was cropped; empty where they are neither."""
    rows, kept = record.marks.size(1), marks.size(1)
    if kept == rows and marks.size(0) == record.marks.size(0) and torch.equal(
            marks[:, -1], record.marks[:, -1]):
        return [record]
    found = []
    if kept <= rows:
        for part, whole in ((record.marks[:, rows - kept:], record.marks),
                            (record.marks[:, :kept], record.marks[:, :kept])):
            entries = [_entry(part, own, b) for b, own in enumerate(marks)]
            if None not in entries:
                found.append(Record(whole[entries], [record.offsets[n] for n in entries]))
    return found


def _entry(part, own, b):
    """The entry of a record with these marks, preferably b, as caches may be reordered."""
    order = sorted(range(part.size(0)), key=lambda n: n != b)
    return next((n for n in order if torch.equal(part[n], own)), None)


def _continued(before, positions, sees_itself):
    """The offsets after a call; None if its positions do not follow the rows before."""
    rows = torch.arange(positions.size(1)) + before.marks.size(1)
    result = []
    for b, offset in enumerate(before.offsets):
        own = set((positions[b] - rows)[sees_itself[b]].tolist())
        if before.marks.size(1) > 0 and own and offset is not None:
            own.add(offset)
        if len(own) > 1 and before.marks.size(1) > 0:
            return None
        # Packed sequences, whose positions begin again, have several: nothing can follow them.
        result.append(offset if not own else own.pop() if len(own) == 1 else float("nan"))
    return result
