"""The key-value cache, for decoding."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from os import PathLike
from typing import Any

import torch
from torch import Tensor

from sextant import _operators  # noqa: F401  (registers torch.ops.sextant)
from sextant._old_names import warn_of_old_name


class Cache:
    """A paged key-value cache of one layer, for any number of sequences.

    ``sextant.attention(q, k, v, method=..., cache=cache)`` appends k and v, the new rows, and its
    queries then see all rows of their sequence. A prompt, chunks of it and single steps, in any
    mixture, give the result of one call over the whole sequence. Entry n of a batch is the sequence
    ``cache.sequences[n]``; the first call adds one sequence per batch entry. Sequences may differ
    in length and positions; ``sequences=[...]`` selects and orders them.

    A sequence is an integer id, which is never reused. Row n of a sequence has position
    first_position + n. Keys are stored unrotated and are rotated when the kernel loads them, so
    that a RoPE stretch that depends on the sequence length stays exact (``rotated_keys=True``
    stores them rotated, which saves that work). Keys and values are stored in ``dtype`` and
    computed with in float32. Stored rows get no gradient; queries and the parameters of a method
    do. Not thread-safe.

    Errors are RuntimeErrors that name the value that does not fit; they leave the cache unchanged.
    """

    def __init__(self, *, page_rows: int = 256, dtype: torch.dtype | None = None,
                 rotated_keys: bool = False, device: torch.device | str | None = None) -> None:
        """page_rows: rows per page, a multiple of 16; the kernel reads pages of 256 rows without a
        copy. dtype: torch.float32, torch.bfloat16, torch.float16 or torch.int8, to which keys and
        values are rounded; by default the type of the first keys. A finite number that this type
        would round to infinity is a RuntimeError, and nothing is written.

        torch.int8: a page is bfloat16 until it is full, and is then rounded to integers with a
        scale for each column of keys (before their rotation) and for each row of values: half the
        memory of bfloat16. Infinities, NaN and ``rotated_keys`` are a RuntimeError. Rows that are
        written again (``drop``, and what follows a ``truncate`` or ``fork`` within a page) are
        rounded once more, also by a call that fails after a page became full.

        rotated_keys: keys are rotated once, when they are stored, by the method of the first call,
        and each later call rotates its queries alone. The method must rotate all keys by the same
        frequencies at every length: one whose rotation changes (dynamic stretches beyond training
        length), another method, or one that rotates a key differently for different queries is a
        RuntimeError, as stored keys are not rotated again. Keys are rounded to ``dtype`` after
        their rotation instead of before it.

        device: "cpu", or a CUDA device, which the rows and queries must be on; by default that of
        the first keys, and the CPU for a file that is loaded before them. On CUDA torch.int8 and
        ``rotated_keys`` are a RuntimeError, and the check that ``dtype`` holds the numbers waits
        for the device where its range is smaller than that of the rows."""
        self.page_rows = page_rows
        self.dtype = dtype
        self.rotated_keys = rotated_keys
        self.device = device
        self.sequences: list[int] = []
        self._held: Any = None
        self._attend: Any = None

    @property
    def held(self) -> Any:
        """The ``torch.classes.sextant.KVCache``. The first keys, or the first file, determine its
        sizes; before them it raises RuntimeError."""
        if self._held is None:
            raise RuntimeError("kv cache: expected keys and values before this, but it is empty")
        return self._held

    def _new(self, key_heads: int, key_columns: int, value_columns: int, dtype: object,
             device: object) -> Any:
        dtype = str(dtype if self.dtype is None else self.dtype).removeprefix("torch.")
        device = str(device if self.device is None else self.device)
        return torch.classes.sextant.KVCache(key_heads, key_columns, value_columns, self.page_rows,
                                             dtype, device)

    def _hold(self, k: Tensor, v: Tensor) -> Any:
        if self._held is None:
            self._held = self._new(k.size(1), k.size(3), v.size(3), k.dtype, k.device)
        return self._held

    def prepare(self, k: Tensor, v: Tensor) -> None:
        """Sets the sizes of the cache from k and v, [batch, key_heads, rows, columns], and its
        dtype from k if none was given. The first ``attention`` does the same."""
        self._hold(k, v)

    def add(self, first_position: int = 0, rotated_keys: str | None = None, **old: str) -> int:
        """Adds an empty sequence at the end of the batch and returns its id.

        rotated_keys, options of the method "rope" as JSON: keys are rotated once, when they are
        stored. That saves the rotation per call if the spectrum of a sequence never changes; such
        keys need a method with the same frequencies, or rotated queries (``sextant.rotate``)
        and the method "none". Call ``prepare`` first if the cache has no sizes yet.
        """
        rotated_keys = _new_name(rotated_keys, **old)
        self.sequences.append(self.held.add(first_position, rotated_keys))
        return self.sequences[-1]

    def fork(self, sequence: int, rows: int | None = None) -> int:
        """Adds a sequence to the batch that starts with the first ``rows`` rows of another, by
        default all, and returns its id. Both share pages until one of them changes."""
        rows = self.held.rows(sequence) if rows is None else rows
        self.sequences.append(self.held.fork(sequence, rows))
        return self.sequences[-1]

    def remove(self, sequence: int) -> None:
        """Removes a sequence and frees the pages that no other sequence uses."""
        self.held.remove(sequence)
        self.sequences.remove(sequence)

    def rows(self, sequence: int) -> int:
        """The number of rows of a sequence."""
        return int(self.held.rows(sequence))

    def first_position(self, sequence: int) -> int:
        """The position of row 0 of a sequence."""
        return int(self.held.first_position(sequence))

    def next_position(self, sequence: int) -> int:
        """The position of the next row: ``first_query`` of ``Method.embed``, for absolute
        encodings."""
        return self.first_position(sequence) + self.rows(sequence)

    def truncate(self, sequence: int, rows: int) -> None:
        """Keeps the first ``rows`` rows of a sequence."""
        self.held.truncate(sequence, rows)

    def drop(self, sequence: int, first: int, count: int) -> None:
        """Removes rows [first, first + count); later rows move up to the freed positions."""
        self.held.drop(sequence, first, count)

    def rerotate(self, sequence: int, first_position: int | None = None,
                 rotated_keys: str | None = None, **old: str) -> None:
        """Moves a sequence to other positions, or its rotated keys to another spectrum
        (rotated_keys, options of the method "rope" as JSON). Keys that are stored unrotated need no
        spectrum: call attention with another method."""
        rotated_keys = _new_name(rotated_keys, **old)
        if first_position is not None:
            self.held.move_to(sequence, first_position)
        if rotated_keys is not None:
            self.held.rerotate(sequence, rotated_keys)

    def append(self, k: Tensor, v: Tensor, sequences: Sequence[int] | None = None) -> None:
        """Appends k and v, [batch, key_heads, rows, columns], to ``sequences``, by default those of
        the batch, without computing attention."""
        self.held.append(k, v, self._batch(k.size(0), sequences))

    def read(self, sequence: int) -> tuple[Tensor, Tensor]:
        """Returns copies of the keys, as they are stored, and of the values, each [1, key_heads,
        rows, columns] in the type of the cache; of int8, the numbers in float32."""
        keys, values = self.held.read(sequence)
        return keys, values

    def save(self, sequence: int, path: str | PathLike[str]) -> None:
        """Writes a sequence to a file, with checksums. The write is atomic: a failure leaves any
        older file unchanged. Missing parent folders are created."""
        self.held.save(sequence, str(path))

    def load(self, path: str | PathLike[str]) -> int:
        """Adds the sequence of a file to the batch and returns its id.

        Raises RuntimeError with the field and the byte for a file that is truncated, altered, or of
        other sizes than the cache.
        """
        held = self._held
        if held is None:
            shape, dtype = torch.ops.sextant.saved_cache_shape(str(path))
            if dtype == "int8":  # whose pages are in the file
                self.page_rows = shape[3]
            held = self._new(shape[0], shape[1], shape[2], dtype, "cpu")
        self.sequences.append(held.load(str(path)))
        self._held = held
        return self.sequences[-1]

    def _batch(self, count: int, sequences: Sequence[int] | None) -> list[int]:
        if sequences is not None:
            return list(sequences)
        if not self.sequences and self._held is not None:
            for _ in range(count):
                self.add()
        return self.sequences

    def attend(self, q: Tensor, k: Tensor, v: Tensor, *, name: str, shape: Sequence[int],
               options: str, parameters: Sequence[Tensor], layer: int,
               sequences: Sequence[int] | None = None, scale: float | None = None,
               sink: Tensor | None = None, window: Sequence[int] = (),
               softcap: float = 0.0) -> Tensor:
        """Appends k and v and computes attention; ``sextant.attention`` and ``Method`` call it."""
        terms = (name, shape, options, parameters, layer, scale, sink, list(window), softcap,
                 self.rotated_keys)
        ids = self.sequences if sequences is None else list(sequences)
        if ids and self._attend is not None:  # if it raises an error, nothing has changed
            out: Tensor = self._attend(q, k, v, ids, *terms)
            return out
        with self.batch(k, v, q.size(0), sequences) as (held, ids):
            out = held.attend(q, k, v, ids, *terms)
            self._attend = held.attend  # the look-up of a method takes as long as a call
        return out

    @contextlib.contextmanager
    def batch(self, k: Tensor, v: Tensor, count: int,
              sequences: Sequence[int] | None) -> Iterator[tuple[Any, list[int]]]:
        """Yields the ``torch.classes.sextant.KVCache``, with the sizes of k and v, and the ids of
        a batch of ``count`` sequences, which a first call adds. Afterwards the cache has the
        sequences and rows that it had before if there was an error."""
        fresh = self._held is None
        held = self._hold(k, v)
        before = list(self.sequences)
        rows = {}
        try:
            ids = self._batch(count, sequences)
            rows = {sequence: held.rows(sequence) for sequence in ids}
            yield held, ids
        except Exception:
            for sequence, kept in rows.items():
                if held.rows(sequence) > kept:
                    held.truncate(sequence, kept)
            for sequence in self.sequences[len(before) :]:
                held.remove(sequence)
            self.sequences = before
            self._held = None if fresh else held
            raise


def _new_name(rotated_keys: str | None, rotated_by: str | None = None) -> str | None:
    """rotated_keys, which has the old name rotated_by, too."""
    if rotated_by is None:
        return rotated_keys
    warn_of_old_name("rotated_by", "rotated_keys", 3)
    return rotated_by
