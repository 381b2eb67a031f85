"""Encodings of one's own: a class in Python, fused attention, no compiler."""

from __future__ import annotations

import dataclasses
import warnings
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Union, overload

import torch
from torch import Tensor

from sextant import _operators  # noqa: F401  (registers torch.ops.sextant)
from sextant._attention import Bound, Named, attend
from sextant._call import (
    Call,
    CallArguments,
    call_of,
    check_tensors,
    compiling,
    options_text,
    with_call,
)
from sextant._encoding_cache import decode
from sextant._errors import InvalidType, InvalidValue
from sextant._packing import Result
from sextant._rows import Rows, rows_of_call

if TYPE_CHECKING:
    from typing_extensions import Unpack

# A term by distance: a tensor, or a table and the row of each distance.
ByDistance = Union[Tensor, "tuple[Tensor, Tensor]", None]

HOOKS = ("bias", "weight", "on_query", "on_key", "on_value", "key_bias", "query_scale",
         "frequencies", "phases", "sink")


class Encoding(torch.nn.Module):
    """A position encoding of one's own. A subclass overrides the hooks that it needs, each a term
    of Sextant's equation for the score of a query and a key at distance d (query position minus
    key position, positive for keys in the past):

        p = <R q, R k> + q.A[d] + k.B[d]
        s = scale w[d] p + b[d] + c_j
        o = sum_j e^s (v + C[d]) / (e^sink + sum_j e^s)

        class SqrtAlibi(sextant.Encoding):
            def __init__(self, **sizes):
                super().__init__(**sizes)
                self.slopes = torch.nn.Parameter(sextant.tables.alibi_slopes(self.heads).float())

            def bias(self, distances):
                return -self.slopes[:, None] * distances.abs().sqrt()

        out = SqrtAlibi(heads=8)(q, k, v)

    Hooks return tensors, which autograd differentiates; no matrix of queries x keys exists. They
    are called in every forward pass. Distances and positions arrive as float32, or as float64 if q
    is float64, on the device of q, where results must be, and autocast is off. Leading sizes of a
    result that is shared by heads or by the batch may be 1 or left out. A hook that is not
    overridden leaves its term out. On a CUDA device a call copies distances and positions there,
    and frequencies and rows of tables to the CPU, so a CUDA graph cannot record it.

    heads is the number of query heads, key_heads (default: heads) that of key heads, head_dim the
    columns of q; a call with another q or k is an error. train_length is L, for encodings that
    depend on it. ``sextant survey`` passes all four.

    Attributes of the class: scale, the factor of the score (None: 1 / sqrt(columns of q)); pairing,
    the columns that pair f of frequencies and phases rotates: "half-split" (f, f + pairs) or
    "interleaved" (2f, 2f + 1); shared, whether the layers of a survey's model have one encoding
    instead of one each.
    """

    scale: float | None = None
    pairing: Literal["half-split", "interleaved"] = "half-split"
    shared: bool = False

    def __init__(self, *, heads: int, key_heads: int | None = None, head_dim: int | None = None,
                 train_length: int | None = None) -> None:
        super().__init__()
        self.heads, self.key_heads = heads, heads if key_heads is None else key_heads
        self.head_dim, self.train_length = head_dim, train_length
        if self.heads < 1 or self.key_heads < 1 or self.heads % self.key_heads:
            raise InvalidValue(f"{type(self).__name__}: heads: expected a multiple of key_heads="
                               f"{self.key_heads}, both at least 1, but got {self.heads}")
        if type(self) is not Encoding and not any(self.overrides(hook) for hook in HOOKS):
            raise InvalidType(f"{type(self).__name__}: expected at least one method of "
                               f"{', '.join(HOOKS)}, but the class has none of them")

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        old_name = cls.__dict__.get("speeds")  # until the next version
        if old_name is not None and "frequencies" not in cls.__dict__:
            warnings.warn(f"{cls.__name__}.speeds: its name is frequencies now",
                          FutureWarning, stacklevel=2)
            setattr(cls, "frequencies", old_name)

    # The hooks. D is the number of distances.

    def bias(self, distances: Tensor) -> ByDistance:
        """b: a number by distance. distances [D] -> [1 or heads, D]; or a pair of a table [1 or
        heads, rows] and the row of each distance, int64 [D]."""

    def weight(self, distances: Tensor) -> ByDistance:
        """w: a factor by distance. Shapes are those of bias."""

    def on_query(self, distances: Tensor) -> ByDistance:
        """A: vectors by distance, multiplied with the first columns of q. distances [D] -> [1 or
        heads, D, columns]; or a pair of a table [1 or heads, rows, columns] and the row of each
        distance, int64 [D] (clipping, buckets)."""

    def on_key(self, distances: Tensor) -> ByDistance:
        """B: vectors by distance, multiplied with the first columns of k. Shapes are those of
        on_query."""

    def on_value(self, distances: Tensor) -> ByDistance:
        """C: vectors by distance, added to values, with all columns of v. Shapes are those of
        on_query."""

    def key_bias(self, k: Tensor, positions: Tensor) -> Tensor | None:
        """c: a number for each key, which may depend on the keys of its sequence: k [batch,
        key_heads, keys, columns], positions [keys] -> [1 or batch, 1 or heads, keys]. Only
        differences between keys of a sequence matter. They are computed in float64."""

    def query_scale(self, q: Tensor, positions: Tensor) -> Tensor | None:
        """A factor for each query: q [batch, heads, queries, columns], positions [queries] -> [1 or
        batch, 1 or heads, queries]."""

    def frequencies(self) -> Tensor | None:
        """The rotation R by position: radians per position of each pair of columns, [pairs].
        Phases are exact at any position, and frequencies are constants: train ``phases``
        instead."""

    def phases(self, k: Tensor, positions: Tensor) -> Tensor | None:
        """A rotation by token: the angle of each pair at each key, in radians. k [batch, key_heads,
        keys, columns], positions [keys] -> [1 or batch, 1 or key_heads, keys, pairs]. A query
        rotates as the key at its position does."""

    def sink(self) -> Tensor | None:
        """One more score for each query head, in the denominator only, [heads]."""

    @overload
    def forward(self, q: Tensor, k: Tensor, v: Tensor, *, return_lse: Literal[False] = ...,
                **call: Unpack[CallArguments]) -> Tensor: ...
    @overload
    def forward(self, q: Tensor, k: Tensor, v: Tensor, *, return_lse: Literal[True],
                **call: Unpack[CallArguments]) -> tuple[Tensor, Tensor]: ...
    @with_call
    def forward(self, q: Tensor, k: Tensor, v: Tensor, **call: Any) -> Result:
        """Computes attention and returns [batch, heads, queries, value_dim] in the type of q, with
        return_lse=True also lse.

        Shapes and arguments are those of ``sextant.attention`` beside those that name a method.
        scale replaces the attribute of the class, key_bias is added to the hook's, and a sink
        beside the hook is an error. query_positions and key_positions are for ``frequencies``.
        Packed sequences are separate: the hooks that read keys are called once for each. With
        ``cache`` (a ``sextant.Cache`` without rotated_keys) k and v are the new rows of its
        sequences, and hooks that read keys read all of a sequence.

        Raises errors that name the argument, or the hook with the expected and the actual shape.
        """
        self._check_call(q, k, v)
        arguments = call_of(Encoding.forward, call)
        for name in ("query_segments", "key_segments"):
            if arguments.asks(name):
                raise InvalidValue(f"{type(self).__name__}: {name}: expected None, as an encoding "
                                   "of one's own has no segments, but got a tensor")
        if arguments.scale is None and self.scale is not None:
            arguments = dataclasses.replace(arguments, scale=float(self.scale))
        return attend(self, q, k, v, arguments)

    if TYPE_CHECKING:
        __call__ = forward

    def overrides(self, hook: str) -> bool:
        """Whether the class has a hook of its own."""
        return getattr(type(self), hook) is not getattr(Encoding, hook)

    def operands(self, q: Tensor, k: Tensor, v: Tensor, rows: Rows) -> dict[str, Tensor]:
        """The operands of a call by name, also q, k and v, from the hooks
        (sextant/torch/named_operands.h)."""
        with torch.autocast(device_type=q.device.type, enabled=False):
            return _Operands(self, q, k, v, rows).named

    def _named(self, q: Tensor, k: Tensor, v: Tensor, rows: Rows) -> Bound:
        found = self.operands(q, k, v, rows)
        q, k, v = found.pop("q"), found.pop("k"), found.pop("v")
        shape = [1, self.heads, self.key_heads, q.size(3), self.heads * q.size(3), 0]
        names = options_text({"names": list(found)})
        return Named("own", shape, names, list(found.values())), q, k, v

    def _bound(self, q: Tensor, k: Tensor, v: Tensor, call: Call) -> Bound:
        return self._named(q, k, v, rows_of_call(q, k, call))

    def _decode(self, q: Tensor, k: Tensor, v: Tensor, call: Call) -> Tensor:
        return decode(self, q, k, v, call)

    def _check_call(self, q: Tensor, k: Tensor, v: Tensor) -> None:
        name = type(self).__name__
        check_tensors(f"{name}: ", q=q, k=k, v=v)
        if self.pairing not in ("half-split", "interleaved"):
            raise InvalidValue(f"{name}.pairing: expected half-split or interleaved, but got "
                               f"{self.pairing!r}")
        for argument, got, expected in (
                ("q", q.size(1), self.heads), ("k", k.size(1), self.key_heads),
                ("v", v.size(1), self.key_heads)):
            if got != expected:
                raise InvalidValue(
                    f"{name}: {argument}: expected {expected} heads, as the encoding was made with "
                    f"heads={self.heads}, key_heads={self.key_heads}, but got {got}")
        columns = q.size(3) if self.head_dim is None else self.head_dim
        for argument, x in (("q", q), ("k", k)):
            if x.size(3) != columns:
                raise InvalidValue(f"{name}: {argument}: expected {columns} columns, as "
                                   f"{'q has' if self.head_dim is None else 'head_dim is'}, but "
                                   f"got {x.size(3)}")


class _Operands:
    """Calls the hooks of an encoding and checks their results."""

    def __init__(self, encoding: Encoding, q: Tensor, k: Tensor, v: Tensor, rows: Rows) -> None:
        self.encoding, self.rows, self.device = encoding, rows, q.device
        self.wide = torch.float64 if q.dtype == torch.float64 else torch.float32
        self.name = type(encoding).__name__
        self.sizes = {"batch": q.size(0), "heads": q.size(1), "key_heads": k.size(1)}
        self.named: dict[str, Tensor] = {}
        self._tables(q.size(3), v.size(3))
        self._sink()
        factor = self._call("query_scale", q, self._of_device(rows.query_positions()))
        q, k = self._rotations(q, k)
        if factor is not None:
            factor = self._checked("query_scale", factor, "batch", "heads", queries=q.size(2))
            q = q.to(self.wide) * factor.to(self.wide).unsqueeze(3)
        self.named.update(q=q, k=k, v=v)

    def _call(self, hook: str, *arguments: Tensor) -> Any:
        function = getattr(self.encoding, hook)
        # Dynamo of torch 2.8 knows no vars().
        if not compiling() and (not callable(function) or hook in vars(self.encoding)):
            raise InvalidType(f"{self.name}.{hook}: expected a method of the class, but it is an "
                              f"attribute of type {type(function).__name__}, which needs another "
                              "name")
        return function(*arguments)

    def _of_device(self, x: Tensor) -> Tensor:
        return x.to(self.device, self.wide)

    def _refuse(self, hook: str, expected: object, got: object) -> NoReturn:
        raise InvalidValue(f"{self.name}.{hook}: expected {expected}, but got {got}")

    def _checked(self, hook: str, value: Any, *shared: str, **exact: int | None) -> Tensor:
        """value with all its sizes, those in `shared` 1 or full. An exact size of None is free."""
        expected: list[tuple[str, int | None, bool]] = [
            (name, self.sizes[name], True) for name in shared]
        expected += [(name, size, False) for name, size in exact.items()]
        if not isinstance(value, torch.Tensor) or not value.is_floating_point():
            self._refuse(hook, "a tensor of floating point numbers",
                         value.dtype if isinstance(value, torch.Tensor) else type(value).__name__)
        whole = value
        while whole.dim() < len(expected):
            whole = whole.unsqueeze(0)
        fits = whole.dim() == len(expected) and all(
            size is None or got == size or (is_shared and got == 1)
            for got, (_, size, is_shared) in zip(whole.shape, expected))
        if not fits:
            sizes = ", ".join(
                name if size is None else ("1 or " if is_shared else "") + f"{name}={size}"
                for name, size, is_shared in expected)
            self._refuse(hook, f"[{sizes}]", list(value.shape))
        if value.device != self.device:
            self._refuse(hook, f"{self.device}, as q", value.device)
        return whole

    def _tables(self, columns: int, value_columns: int) -> None:
        distances = self._of_device(self.rows.distances(self.wide))
        for hook in ("bias", "weight", "on_query", "on_key", "on_value"):
            value = self._call(hook, distances)
            if value is None:
                continue
            exact: dict[str, int | None] = {"distances": distances.numel()}
            if isinstance(value, tuple):
                value, row_at = value if len(value) == 2 else (None, None)
                exact = {"rows": None}
                if not isinstance(row_at, torch.Tensor) or row_at.dtype not in (
                        torch.int32, torch.int64) or row_at.shape != distances.shape:
                    got = (f"{row_at.dtype} {list(row_at.shape)}"
                           if isinstance(row_at, torch.Tensor) else type(row_at).__name__)
                    self._refuse(hook, "a pair of a table and int64 [distances="
                                 f"{distances.numel()}], the row of each distance", got)
                # The operator has int32; it refuses rows that a table lacks also where values are
                # traced.
                if not compiling() and row_at.numel() and int(row_at.abs().max()) >= 2**31:
                    self._refuse(hook, "rows of the table", int(row_at.abs().max()))
                self.named[hook + "_rows"] = row_at.clamp(-2**31, 2**31 - 1).to("cpu", torch.int32)
            if hook == "on_value":
                exact["columns"] = value_columns
            elif hook.startswith("on_"):
                exact["columns"] = None
            value = self._checked(hook, value, "heads", **exact)
            if hook in ("on_query", "on_key") and value.size(2) > columns:
                self._refuse(hook, f"at most {columns} columns, as q", value.size(2))
            self.named[hook] = value.to(self.wide)

    def _sink(self) -> None:
        sink = self._call("sink")
        if sink is not None:
            sink = self._checked("sink", sink, heads=self.sizes["heads"])
            self.named["sink"] = sink.to(self.wide)

    def _by_sequence(self, hook: str, k: Tensor, *shared: str,
                     **exact: int | None) -> list[Tensor] | None:
        """The results of a hook that reads keys, one for each sequence; None if it is not
        overridden."""
        results = []
        positions = self._of_device(self.rows.key_positions())
        for f in self.rows.frames:
            part = k[:, :, f.key_row:f.key_row + f.keys]
            value = self._call(hook, part, positions[f.key_row:f.key_row + f.keys])
            if value is None:
                return None
            results.append(self._checked(hook, value, *shared, keys=f.keys, **exact))
        return results

    def _of_rows(self, results: list[Tensor], dim: int, starts: list[int],
                 count: int) -> Tensor:
        """The results of sequences side by side, with zeros between them."""
        sizes = [1, 1]
        for x in results:
            sizes = [max(sizes[0], x.size(0)), max(sizes[1], x.size(1))]
        parts: list[Tensor] = []
        at = 0
        for x, start in zip(results, starts):
            x = x.expand(sizes[0], sizes[1], *x.shape[2:])
            if start > at:
                parts.append(x.new_zeros(*sizes, start - at, *x.shape[3:]))
            parts.append(x)
            at = start + x.size(dim)
        if count > at:
            parts.append(parts[-1].new_zeros(*sizes, count - at, *parts[-1].shape[3:]))
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim)

    def _rotations(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """Adds the operands of keys, and returns q and k rotated by the phases of their tokens."""
        frames = self.rows.frames
        if not frames:
            return q, k
        starts = [f.key_row for f in frames]
        biases = self._by_sequence("key_bias", k, "batch", "heads")
        if biases is not None:
            biases = [x.to(torch.float64) for x in biases]
            self.named["key_bias"] = self._of_rows(biases, 2, starts, k.size(2))
        frequencies = self._call("frequencies")
        if frequencies is not None:
            self._frequencies(self._checked("frequencies", frequencies, pairs=None), q.size(3))
        phases = self._by_sequence("phases", k, "batch", "key_heads", pairs=None)
        if phases is None:
            return q, k
        if 2 * phases[0].size(3) > q.size(3):
            self._refuse("phases", f"at most {q.size(3) // 2} pairs, as q has {q.size(3)} columns",
                         phases[0].size(3))
        of_queries = []
        for f, x in zip(frames, phases):
            first = f.query_position - f.key_position
            if f.queries and not 0 <= first <= f.keys - f.queries:
                self._refuse("phases", "a key at the position of each query",
                             f"queries from {f.query_position} on and {f.keys} keys from "
                             f"{f.key_position} on")
            of_queries.append(x[:, :, first:first + f.queries])
        angles = self._of_rows(of_queries, 2, [f.query_row for f in frames], q.size(2))
        if angles.size(1) > 1:
            angles = angles.repeat_interleave(q.size(1) // k.size(1), 1)
        pairing = self.encoding.pairing
        of_keys = self._of_rows(phases, 2, starts, k.size(2))
        return (_rotated(q.to(self.wide), angles.to(self.wide), pairing),
                _rotated(k.to(self.wide), of_keys.to(self.wide), pairing))

    def _frequencies(self, frequencies: Tensor, columns: int) -> None:
        if frequencies.requires_grad:
            self._refuse("frequencies", "constants (train phases(), which autograd differentiates)",
                         "a tensor that requires its gradient")
        if 2 * frequencies.numel() > columns:
            self._refuse("frequencies", f"at most {columns // 2} pairs, as q has {columns} columns",
                         frequencies.numel())
        finite = frequencies.isfinite().all()
        if compiling():  # a traced value is known only when the code runs
            torch._assert_async(
                finite, "frequencies: expected finite numbers, but got NaN or infinity")
        elif not bool(finite):
            self._refuse("frequencies", "finite numbers", "NaN or infinity")
        pairs = torch.arange(frequencies.numel())
        split = self.encoding.pairing == "half-split"
        half = frequencies.numel()
        first, second = (pairs, pairs + half) if split else (2 * pairs, 2 * pairs + 1)
        self.named["frequencies"] = frequencies.to("cpu", torch.float64)
        self.named["pairs"] = torch.stack((first, second, torch.zeros_like(pairs)), 1)


def _rotated(x: Tensor, angles: Tensor, pairing: str) -> Tensor:
    """x [batch, heads, rows, columns] with its first pairs of columns rotated by angles [1 or
    batch, 1 or heads, rows, pairs]."""
    pairs = angles.size(3)
    cos, sin = angles.cos(), angles.sin()
    if pairing == "half-split":
        first, second = x[..., :pairs], x[..., pairs:2 * pairs]
    else:
        first, second = x[..., 0:2 * pairs:2], x[..., 1:2 * pairs:2]
    both = first * cos - second * sin, first * sin + second * cos
    head = torch.cat(both, 3) if pairing == "half-split" else torch.stack(both, 4).flatten(3)
    return torch.cat((head, x[..., 2 * pairs:]), 3)
