"""Keys and values of texts that grow: decoding."""

import torch


class Cache:
    """One layer's keys and values, in pages, of any number of texts.

    ``sextant.attention(q, k, v, method=..., cache=cache)`` appends k and v, the new rows, and lets their
    queries see all that there is: a prompt, chunks of it and single steps in any mixture give what one call
    over the whole text gives. Entry n of a batch is the text ``cache.texts[n]``; the first call adds as many
    texts as its batch has. Texts may have other lengths and positions: ``texts=[...]`` chooses and orders them.

    Texts are known by their numbers, which are not used again. A text's row n stands at position
    first_position + n. Keys are kept as they were given, and turned when they are read, so that a stretch
    that goes by the length of the text stays exact. They are held in ``dtype``, and computed with in float32.
    Not thread-safe. What is held gives no gradients; queries and a method's parameters get theirs.

    Errors are RuntimeErrors that name what does not fit; the cache is then as it was.
    """

    def __init__(self, *, page_rows=256, dtype=None):
        """page_rows: rows of a page, a multiple of 16; 256 is what the kernel reads without a copy. dtype:
        torch.float32, torch.bfloat16 or torch.float16, to which keys and values are rounded; by default that of
        the first keys."""
        self.page_rows = page_rows
        self.dtype = dtype
        self.texts = []
        self._held = None

    @property
    def held(self):
        """The ``torch.classes.sextant.KVCache``, which the first keys, or the first file, give its sizes."""
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
        """Gives the cache the sizes of k and v, [batch, key_heads, rows, columns], and its dtype if it has none;
        the first ``attention`` does so."""
        self._hold(k, v)

    def add(self, first_position=0, rotated_by=None):
        """A new text without rows, behind those of the batch. Returns its number.

        rotated_by, options of the method "rope" as JSON: keys are held turned, once, at their positions. That
        saves the work where a text's spectrum never changes; attend with turned queries (``sextant.turn``) and
        the method "none". Needs ``prepare``.
        """
        self.texts.append(self.held.add(first_position, rotated_by))
        return self.texts[-1]

    def fork(self, text, rows=None):
        """A new text that begins with the first rows (all) of another, which it shares until one of them
        changes. It joins the batch. Returns its number."""
        rows = self.held.rows(text) if rows is None else rows
        self.texts.append(self.held.fork(text, rows))
        return self.texts[-1]

    def remove(self, text):
        self.held.remove(text)
        self.texts.remove(text)

    def rows(self, text):
        return self.held.rows(text)

    def first_position(self, text):
        return self.held.first_position(text)

    def next_position(self, text):
        """Where the next row stands: ``first_query`` of ``Method.embed``, for absolute encodings."""
        return self.first_position(text) + self.rows(text)

    def truncate(self, text, rows):
        """Keeps the first rows."""
        self.held.truncate(text, rows)

    def drop(self, text, first, count):
        """Takes out rows [first, first + count); those behind move up, to the positions that become free."""
        self.held.drop(text, first, count)

    def rerotate(self, text, first_position=None, rotated_by=None):
        """Moves a text to other positions, and keys that are held turned to another spectrum, options of the
        method "rope" as JSON. Plain keys need no work: attend with another method."""
        if first_position is not None:
            self.held.move_to(text, first_position)
        if rotated_by is not None:
            self.held.rerotate(text, rotated_by)

    def append(self, k, v, texts=None):
        """k and v [batch, key_heads, rows, columns], behind those of ``texts``, without attending."""
        self.held.append(k, v, self._batch(k.size(0), texts))

    def read(self, text):
        """Keys as they are held and values, [1, key_heads, rows, columns], copied."""
        return self.held.read(text)

    def save(self, text, path):
        """Writes a text to a file, which is there whole, with checksums, or as it was before.

        Folders above it that do not exist are made.
        """
        self.held.save(text, str(path))

    def load(self, path):
        """Adds the text of a file to the batch. Returns its number.

        A file that is cut short, altered or of other sizes is refused with the field and the byte.
        """
        held = self._held
        if held is None:
            shape, dtype = torch.ops.sextant.saved_cache_shape(str(path))
            held = self._new(*shape, dtype)
        self.texts.append(held.load(str(path)))
        self._held = held
        return self.texts[-1]

    def _batch(self, count, texts):
        if texts is not None:
            return list(texts)
        if not self.texts and self._held is not None:
            for _ in range(count):
                self.add()
        return self.texts

    def attend(self, q, k, v, *, name, shape, options, parameters, layer, texts=None):
        """What ``sextant.attention`` and ``Method`` call."""
        fresh = self._held is None
        held = self._hold(k, v)
        before = list(self.texts)
        try:
            return held.attend(
                q, k, v, self._batch(q.size(0), texts), name, shape, options, parameters, layer
            )
        except Exception:
            for text in self.texts[len(before) :]:
                held.remove(text)
            self.texts = before
            self._held = None if fresh else held
            raise


def refuse_beside_cache(**arguments):
    """Raises if an argument has not its default, (value, default): the cache says where rows stand."""
    for name, (value, default) in arguments.items():
        if value is not default and value != default:
            raise RuntimeError(
                f"attention: {name}: expected {default}, as a cache is there, but got another value"
            )
