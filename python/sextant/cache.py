"""Keys and values of sequences that grow: decoding."""

import torch


class Cache:
    """One layer's keys and values, in pages, of any number of sequences.

    ``sextant.attention(q, k, v, method=..., cache=cache)`` appends k and v, the new rows, and lets
    their queries see all that there is: a prompt, chunks of it and single steps in any mixture give
    what one call over the whole text gives. Entry n of a batch is the text ``cache.sequences[n]``;
    the first call adds as many sequences as its batch has. Sequences may have other lengths and
    positions: ``sequences=[...]`` chooses and orders them.

    Texts are known by their numbers, which are not used again. A text's row n stands at position
    first_position + n. Keys are kept as they were given, and turned when they are read, so that a
    stretch that goes by the length of the text stays exact. They are held in ``dtype``, and
    computed with in float32. Not thread-safe. What is held gives no gradients; queries and a
    method's parameters get theirs.

    Errors are RuntimeErrors that name what does not fit; the cache is then as it was.
    """

    def __init__(self, *, page_rows=256, dtype=None):
        """page_rows: rows of a page, a multiple of 16; 256 is what the kernel reads without a copy.
        dtype: torch.float32, torch.bfloat16 or torch.float16, to which keys and values are rounded;
        by default that of the first keys."""
        self.page_rows = page_rows
        self.dtype = dtype
        self.sequences = []
        self._held = None

    @property
    def held(self):
        """The ``torch.classes.sextant.KVCache``, which the first keys, or the first file, give its
        sizes."""
        if self._held is None:
            raise RuntimeError("kv cache: expected keys and values before this, but it is empty")
        return self._held

    def _new(self, key_heads, key_columns, value_columns, dtype):
        dtype = str(dtype if self.dtype is None else self.dtype).removeprefix("torch.")
        return torch.classes.sextant.KVCache(
            key_heads, key_columns, value_columns, self.page_rows, dtype
        )

    def _hold(self, k, v):
        if self._held is None:
            self._held = self._new(k.size(1), k.size(3), v.size(3), k.dtype)
        return self._held

    def prepare(self, k, v):
        """Gives the cache the sizes of k and v, [batch, key_heads, rows, columns], and its dtype if
        it has none; the first ``attention`` does so."""
        self._hold(k, v)

    def add(self, first_position=0, rotated_by=None):
        """A new text without rows, behind those of the batch. Returns its number.

        rotated_by, options of the method "rope" as JSON: keys are held turned, once, at their
        positions. That saves the work where a text's spectrum never changes; attend with turned
        queries (``sextant.rotate``) and the method "none". Needs ``prepare``.
        """
        self.sequences.append(self.held.add(first_position, rotated_by))
        return self.sequences[-1]

    def fork(self, sequence, rows=None):
        """A new text that begins with the first rows (all) of another, which it shares until one of
        them changes. It joins the batch. Returns its number."""
        rows = self.held.rows(sequence) if rows is None else rows
        self.sequences.append(self.held.fork(sequence, rows))
        return self.sequences[-1]

    def remove(self, sequence):
        self.held.remove(sequence)
        self.sequences.remove(sequence)

    def rows(self, sequence):
        return self.held.rows(sequence)

    def first_position(self, sequence):
        return self.held.first_position(sequence)

    def next_position(self, sequence):
        """Where the next row stands: ``first_query`` of ``Method.embed``, for absolute
        encodings."""
        return self.first_position(sequence) + self.rows(sequence)

    def truncate(self, sequence, rows):
        """Keeps the first rows."""
        self.held.truncate(sequence, rows)

    def drop(self, sequence, first, count):
        """Takes out rows [first, first + count); those behind move up, to the positions that become
        free."""
        self.held.drop(sequence, first, count)

    def rerotate(self, sequence, first_position=None, rotated_by=None):
        """Moves a text to other positions, and keys that are held turned to another spectrum,
        options of the method "rope" as JSON. Plain keys need no work: attend with another
        method."""
        if first_position is not None:
            self.held.move_to(sequence, first_position)
        if rotated_by is not None:
            self.held.rerotate(sequence, rotated_by)

    def append(self, k, v, sequences=None):
        """k and v [batch, key_heads, rows, columns], behind those of ``sequences``, without
        attending."""
        self.held.append(k, v, self._batch(k.size(0), sequences))

    def read(self, sequence):
        """Keys as they are held and values, [1, key_heads, rows, columns], copied."""
        return self.held.read(sequence)

    def save(self, sequence, path):
        """Writes a text to a file, which is there whole, with checksums, or as it was before.

        Folders above it that do not exist are made.
        """
        self.held.save(sequence, str(path))

    def load(self, path):
        """Adds the text of a file to the batch. Returns its number.

        A file that is cut short, altered or of other sizes is refused with the field and the byte.
        """
        held = self._held
        if held is None:
            shape, dtype = torch.ops.sextant.saved_cache_shape(str(path))
            held = self._new(*shape, dtype)
        self.sequences.append(held.load(str(path)))
        self._held = held
        return self.sequences[-1]

    def _batch(self, count, sequences):
        if sequences is not None:
            return list(sequences)
        if not self.sequences and self._held is not None:
            for _ in range(count):
                self.add()
        return self.sequences

    def attend(self, q, k, v, *, name, shape, options, parameters, layer, sequences=None):
        """What ``sextant.attention`` and ``Method`` call."""
        fresh = self._held is None
        held = self._hold(k, v)
        before = list(self.sequences)
        try:
            return held.attend(
                q, k, v, self._batch(q.size(0), sequences), name, shape, options, parameters, layer
            )
        except Exception:
            for sequence in self.sequences[len(before) :]:
                held.remove(sequence)
            self.sequences = before
            self._held = None if fresh else held
            raise


def refuse_beside_cache(**arguments):
    """Raises if an argument has not its default, (value, default): the cache says where rows
    stand."""
    for name, (value, default) in arguments.items():
        if value is not default and value != default:
            raise RuntimeError(
                f"attention: {name}: expected {default}, as a cache is there, but got another value"
            )
