"""Encodings of one's own: a class in Python, fused attention, no compiler."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Literal, Union, overload

import torch
from torch import Tensor

from sextant import _operators  # noqa: F401  (registers torch.ops.sextant)
from sextant._attention import Bound, Named, attend
from sextant._call import (Call, CallArguments, call_of, check_tensors, options_text, with_call)
from sextant._encoding_cache import decode
from sextant._encoding_operands import EncodingOperands
from sextant._errors import InvalidType, InvalidValue
from sextant._old_names import warn_of_old_name
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
            warn_of_old_name(f"{cls.__name__}.speeds", "frequencies", 2)
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
            return EncodingOperands(self, q, k, v, rows).named

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
