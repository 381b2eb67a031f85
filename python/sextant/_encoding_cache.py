"""Decoding with an encoding of one's own over a ``sextant.Cache``."""

from sextant._packing import joined_rows, split_rows
from sextant._rows import Frame, Rows


def decode(encoding, q, k, v, cache, sequences):
    """Appends k and v, the new rows of the cache's sequences, and computes the attention of their
    queries. If it raises an error, the cache is unchanged."""
    if q.size(0) != k.size(0) or q.size(2) != k.size(2):
        raise RuntimeError(f"q: expected batch {k.size(0)} and {k.size(2)} rows, one query for "
                           f"each new key, but got {q.size(0)} and {q.size(2)}")
    if cache.rotated_keys:
        raise RuntimeError("cache: expected one without rotated_keys, as an encoding of one's own "
                           "rotates keys when they are read")
    with cache.batch(k, v, q.size(0), sequences) as (held, ids):
        held.append(k, v, ids)
        return _attended(encoding, q, held, ids, v.size(3))


def _attended(encoding, q, held, ids, value_columns):
    batch, heads, queries, _ = q.shape
    if batch == 0 or queries == 0:
        return q.new_zeros(batch, heads, queries, value_columns)
    changes = encoding.overrides("phases")
    key_pages, value_pages, table, int8_pages = held.pages(
        ids, changes or encoding.overrides("speeds"))
    page_rows = held.shape()[3]
    frames, first = [], 0
    for n, sequence in enumerate(ids):
        keys, start = held.rows(sequence), held.first_position(sequence)
        frames.append(Frame(n * queries, queries, start + keys - queries, first * page_rows, keys,
                            start))
        first += (keys + page_rows - 1) // page_rows
    rows = Rows(frames, True, batch * queries, table.numel() * page_rows)
    # All sequences form one batch entry, one after the other.
    joined = joined_rows(q)
    if changes or encoding.overrides("key_bias"):
        k, v = held.gathered_rows(ids)
    else:
        k, v = (_shaped(pages, rows.keys) for pages in (key_pages, value_pages))
    operands = encoding.operands(joined, k, v, rows)
    place = {}
    if not changes:
        operands.update(k=key_pages, v=value_pages)
        place = {"pages": table, "key_rows": rows.keys, "int8_pages": int8_pages}
    out = encoding.attend(q, operands, rows, **place)
    return split_rows(out, batch).contiguous()


def _shaped(pages, rows):
    """A tensor of the shape of ``gathered_rows`` for hooks that read no keys."""
    return pages.new_zeros(1).expand(1, pages.size(1), rows, pages.size(3))
