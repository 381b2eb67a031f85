"""Decoding with an encoding of one's own over a ``sextant.Cache``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import Tensor

from sextant._attention import call_operator
from sextant._call import Call
from sextant._errors import InvalidValue
from sextant._packing import joined_rows, split_rows
from sextant._rows import Frame, Rows

if TYPE_CHECKING:
    from sextant.encoding import Encoding


def decode(encoding: Encoding, q: Tensor, k: Tensor, v: Tensor, call: Call) -> Tensor:
    """Appends k and v, the new rows of the cache's sequences, and computes the attention of their
    queries. If it raises an error, the cache is unchanged."""
    cache = call.cache
    assert cache is not None
    if q.size(0) != k.size(0) or q.size(2) != k.size(2):
        raise InvalidValue(f"q: expected batch {k.size(0)} and {k.size(2)} rows, one query for "
                           f"each new key, but got {q.size(0)} and {q.size(2)}")
    if cache.rotated_keys:
        raise InvalidValue("cache: expected one without rotated_keys, as an encoding of one's own "
                           "rotates keys when they are read")
    with cache.batch(k, v, q.size(0), call.sequences) as (held, ids):
        frames = held.frames(ids, q.size(2))
        held.append(k, v, ids)
        return _attended(encoding, q, held, ids, frames, v.size(3), call)


def _attended(encoding: Encoding, q: Tensor, held: Any, ids: list[int], frames: Tensor,
              value_columns: int, call: Call) -> Tensor:
    batch, heads, queries, _ = q.shape
    if batch == 0 or queries == 0:
        return q.new_zeros(batch, heads, queries, value_columns)
    changes = encoding.overrides("phases")
    key_pages, value_pages, table, int8_pages = held.pages(
        ids, changes or encoding.overrides("frequencies"))
    rows = Rows([Frame(*frame[1:]) for frame in frames.tolist()], True, batch * queries,
                table.numel() * held.shape()[3])
    # All sequences form one batch entry, one after the other.
    joined = joined_rows(q)
    if changes or encoding.overrides("key_bias"):
        k, v = held.gathered_rows(ids)
    else:
        k, v = (_shaped(pages, rows.keys) for pages in (key_pages, value_pages))
    named, joined, k, v = encoding._named(joined, k, v, rows)
    place: dict[str, Any] = {"frames": frames}
    if not changes:
        k, v = key_pages, value_pages
        place.update(pages=table, key_rows=rows.keys, int8_pages=int8_pages)
    out = call_operator(named, joined, k, v, call, **place)
    assert isinstance(out, Tensor)  # with a cache there is no return_lse
    return split_rows(out.to(q.dtype), batch).contiguous()


def _shaped(pages: Tensor, rows: int) -> Tensor:
    """A tensor of the shape of ``gathered_rows`` for hooks that read no keys."""
    return pages.new_zeros(1).expand(1, pages.size(1), rows, pages.size(3))
