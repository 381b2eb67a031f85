"""Attention with a position encoding chosen by name."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, overload

import torch
from torch import Tensor

from sextant import _transforms
from sextant._call import (Call, CallArguments, by_row, call_of, check_tensors, is_packed,
                           method_options, options_text, packing, refuse_unseen, shape_of_call,
                           window_sides, with_call)
from sextant._errors import InvalidType, InvalidValue
from sextant._packing import Result, attend_by_row, attend_nested, is_nested, longest

if TYPE_CHECKING:
    from typing_extensions import Unpack


def methods() -> dict[str, dict[str, Any]]:
    """Describes all encodings: {name: {"summary": ..., "formula": ..., "options": {option:
    default}}}."""
    described: dict[str, dict[str, Any]] = json.loads(torch.ops.sextant.methods())
    return described


class NamedArguments(CallArguments, total=False):
    """The keywords of a call that names its method."""

    parameters: Sequence[Tensor]
    layers: int
    width: int | None
    train_length: int | None
    options: Mapping[str, Any] | None


@overload
def attention(q: Tensor, k: Tensor, v: Tensor, method: str = ..., *,
              return_lse: Literal[False] = ..., **call: Unpack[NamedArguments]) -> Tensor: ...
@overload
def attention(q: Tensor, k: Tensor, v: Tensor, method: str = ..., *, return_lse: Literal[True],
              **call: Unpack[NamedArguments]) -> tuple[Tensor, Tensor]: ...
@with_call
def attention(q: Tensor, k: Tensor, v: Tensor, method: str = "none", *,
              parameters: Sequence[Tensor] = (), layers: int = 1, width: int | None = None,
              train_length: int | None = None, options: Mapping[str, Any] | None = None,
              **call: Any) -> Result:
    """Computes attention and returns [batch, heads, queries, value_dim]. It is differentiable and
    never builds a matrix of queries x keys.

    Shapes: q [batch, heads, queries, head_dim]; k [batch, key_heads, keys, head_dim]; v [batch,
    key_heads, keys, value_dim]. With fewer key heads than query heads, each key head serves a group
    of query heads. For fox, k has heads / key_heads further columns, the logits of the gates.

    Types: float32, bfloat16 and float16 run on the fast kernel, which accumulates in float32;
    float64 runs on the reference. q, k, v and parameters may each be any of the first three. The
    result has the type of q, each gradient has the type of its tensor, and both are rounded once,
    to nearest. torch.autocast casts nothing here: q, k and v keep the types of the projections.

    Devices: q, k, v, parameters, mask, sink and key_bias are on the CPU, or all on one CUDA device
    (NVIDIA, compute capability 8.0 or later), which has no float64. There bfloat16 and float16 are
    multiplied as they are and float32 in float32, calls are queued on the current stream, and
    gradients are deterministic. What a call sees is planned on the CPU and kept for the next call
    with the same layout: packed_queries and packed_keys should be lists there, and query_positions
    and key_positions are on the CPU. A CUDA graph can record a call after one with the same layout,
    without dropout. A floating mask, FIRE, and return_lse beside a key_bias wait for the device in
    each call. Values of sink and key_bias are not checked there. A cache is on the device of its
    keys.

    Precision: on the CPU, after torch.set_float32_matmul_precision("medium"), the forward pass
    rounds q, k, the softmax weights and v to bfloat16 before each product, if machine and build
    have bfloat16 products (AMX, or AVX512_BF16 and Highway 1.2). After "high", and with at least
    1024 queries, the forward pass multiplies float32 on AMX, where the machine has it: results are
    as accurate, but their last bits differ from those of a token that is decoded alone. The
    backward pass does so by default. Calls that train biases by key (fox) run in float32 at
    "medium", too.

    Positions: key n has position first_key + n, query n first_query + n. By default the last query
    has the position of the last key, as in decoding and with a memory. causal, True by default,
    hides keys at higher positions. With more queries than keys, as in cross-attention, one of
    causal and first_query must be given. packed_queries and packed_keys are the cumulative lengths
    of sequences that are packed one after the other, as lists or as integer tensors (cu_seqlens);
    lists of lists pack each row of the batch for itself. q, k and v may instead be nested tensors
    of layout torch.jagged, [batch, heads, rows, columns] with ragged rows.
    query_segments and key_segments (int64 [batch, rows]) are for methods with segments (XLNet).
    query_positions and key_positions (int64 [rows], [batch, rows] or [1 or batch, axes, rows])
    replace consecutive positions for methods that rotate rows (rope, xpos), and are places on a
    grid for those by two distances (sam, swin, beit, layoutlm, alibi-2d); visibility still follows
    first_query and first_key.

    Visibility: mask is [keys], [batch, keys], [queries, keys] or [batch, heads, queries, keys],
    with sizes of 1 shared. A bool mask hides where it is False. A floating mask is added to scores
    as in scaled_dot_product_attention: -infinity (or the lowest number of its type) hides, and
    other values may depend on the key alone. A bias by query and key is refused. window hides keys
    beyond a distance: a number of keys, the query's own among them, or (left, right), the longest
    distances to keys before and after, -1 for no limit. It narrows what the method shows. A query
    that sees no key gives a row of zeros.

    Score: scale multiplies products of queries and keys instead of 1/sqrt(head_dim), or of the
    method's own factor (t5 has 1 by default, so no 1/sqrt(head_dim)). key_bias (floating, [keys],
    [batch, keys] or [batch, 1 or heads, keys]) is added to the scores of its key; -infinity hides.
    sink (floating [heads]) is one more score of each head, or [batch, heads, queries] of each query
    (Inkling 2), in the denominator of softmax only. Both have gradients.

    return_lse: returns (out, lse). lse [batch, heads, queries], float32 (float64 for float64 q),
    is the logarithm of the sum of exp over a query's scores, sink included, -infinity for a query
    that sees no key. It is differentiable.

    Encoding: method and its options, a dict such as {"max_bias": 4.0}, name it, see methods().
    parameters are its tensors, in the order and of the shapes that the method documents.
    train_length is L, for methods that depend on it; its default is the number of keys. Encodings
    that are added to the input (sinusoidal, learned, clock, binary, ...) have no effect here, since
    there is no input: ``sextant.method(name, ...).embed(x)`` adds them before q, k and v are
    projected from x.

    Decoding: with cache, a ``sextant.Cache``, k and v are the new rows of its sequences and q their
    queries, one per new row; the queries also see all rows in the cache. The positions are those of
    the sequences, so the arguments from causal to key_positions keep their defaults; scale, sink,
    softcap and window apply, key_bias, dropout_p and return_lse do not. sequences lists the
    sequence ids of the batch, in order. train_length then has no default, so methods
    that depend on it need the argument.

    softcap (above 0) limits scores: x becomes softcap tanh(x / softcap), where x is the scaled
    product of q and k with the terms that the encoding adds to it (vectors by distance, factors).
    Biases by distance or key are added after it and masks apply after it, as in Gemma 2 and
    flash-attention.

    dropout_p, from 0 to below 1, is the probability with which each attention weight is set to 0;
    the others are divided by 1 - dropout_p. It applies whenever it is above 0, as in
    ``scaled_dot_product_attention``: pass ``dropout_p=p if self.training else 0.0``. The weights
    multiply values and an encoding's vectors by distance alike. A seed is drawn from torch's
    default generator, and the pattern follows from it and from batch entry, head, query row and key
    row alone (Philox4x32-10), so it is the same for any number of threads, and
    ``torch.utils.checkpoint`` repeats it. With a cache, dropout is an error.

    Transforms of torch.func (grad, vjp, vmap) are supported with torch 2.1 or later, first
    derivatives only.

    Raises ValueError or TypeError (``sextant.Error``), or RuntimeError for shapes, which name the
    argument that does not fit. All of them are RuntimeErrors.
    """
    if not isinstance(method, str):
        raise InvalidType(
            f"method: expected the name of a method, but got {type(method).__name__}: a module is "
            "called itself, as in encoding(q, k, v)"
        )
    options = method_options(attention, method, options, call)
    arguments = call_of(attention, call, method)
    check_tensors("", q=q, k=k, v=v)
    if q.size(1) % max(k.size(1), 1) != 0:
        raise InvalidValue(
            f"q: expected a multiple of the {k.size(1)} heads of k, but got {q.size(1)}"
        )
    if train_length is None:
        train_length = longest("k", k) if arguments.cache is None else 0
    shape = shape_of_call(q, k, layers, width, train_length)
    return attend(Named(method, shape, options_text(options), list(parameters)), q, k, v, arguments)


@dataclasses.dataclass
class Named:
    """A method as the operators have it: shape, a list [layers, heads, key_heads, head_dim, width,
    train_length], and options as JSON."""

    name: str
    shape: list[int]
    options: str
    parameters: list[Tensor]

    def _bound(self, q: Tensor, k: Tensor, v: Tensor, call: Call) -> Bound:
        return self, q, k, v

    def _decode(self, q: Tensor, k: Tensor, v: Tensor, call: Call) -> Tensor:
        assert call.cache is not None
        return call.cache.attend(
            q, k, v, name=self.name, shape=self.shape, options=self.options,
            parameters=self.parameters, layer=call.layer, sequences=call.sequences,
            scale=call.scale, sink=call.sink, window=window_sides(call.window, True),
            softcap=call.softcap or 0.0)


Bound = tuple[Named, Tensor, Tensor, Tensor]


class Attending(Protocol):
    """An encoding whose attention ``attend`` computes. Its methods have names of their own, as
    classes of users derive from ``Encoding``."""

    def _bound(self, q: Tensor, k: Tensor, v: Tensor, call: Call) -> Bound:
        """The method, q, k and v as the operators have them; call has a first_query."""

    def _decode(self, q: Tensor, k: Tensor, v: Tensor, call: Call) -> Tensor:
        """The attention of new rows of a cache."""


def attend(method: Attending, q: Tensor, k: Tensor, v: Tensor, call: Call) -> Result:
    """Does the work of ``attention``."""
    if call.cache is not None:
        call.refuse_beside_cache()
        if _transforms.active():
            raise InvalidValue("cache: expected None inside a transform of torch.func, but got a "
                               "cache, which the call would change")
        return method._decode(q, k, v, call)

    def attend_rows(q: Tensor, k: Tensor, v: Tensor, call: Call) -> Result:
        return _attend_rows(method, q, k, v, call)

    if is_nested(q, k, v):
        return attend_nested(attend_rows, q, k, v, call)
    if by_row(call.packed_queries, call.packed_keys):
        return attend_by_row(attend_rows, q, k, v, call)
    return attend_rows(q, k, v, call)


def _attend_rows(method: Attending, q: Tensor, k: Tensor, v: Tensor, call: Call) -> Result:
    packed = packing(call.packed_queries, call.packed_keys)
    if call.first_query is None:
        if call.causal is None:
            refuse_unseen(q.size(2), k.size(2), packed)
        call = dataclasses.replace(call, first_query=0 if is_packed(
            call.packed_queries) else call.first_key + k.size(2) - q.size(2))
    named, bound_q, k, v = method._bound(q, k, v, call)
    result = call_operator(named, bound_q, k, v, call, first_query=call.first_query,
                           first_key=call.first_key, **packed)
    if isinstance(result, tuple):
        return result[0].to(q.dtype), result[1]
    return result.to(q.dtype)


def call_operator(method: Named, q: Tensor, k: Tensor, v: Tensor, call: Call,
                  **place: Any) -> Result:
    """Calls the operator. place: its arguments for the positions of rows and the pages of keys."""
    causal = call.causal is not False
    arguments = {"layer": call.layer, "causal": causal, **place, "mask": call.mask,
                 "query_segments": call.query_segments, "key_segments": call.key_segments,
                 "query_rotary_positions": rotary_positions(call.query_positions),
                 "key_rotary_positions": rotary_positions(call.key_positions), "scale": call.scale,
                 "window": window_sides(call.window, causal), "softcap": call.softcap or 0.0,
                 "dropout_p": call.dropout_p, "dropout_seed": drawn_seed(call.dropout_p)}
    name = "method_attend_with_lse" if call.return_lse else "method_attend"
    tensors = {"q": q, "k": k, "v": v, "sink": call.sink, "key_bias": call.key_bias}
    result: Result = _transforms.call_operator(
        name, (method.name, method.shape, method.options), method.parameters, tensors, arguments)
    return result


def rotary_positions(positions: Tensor | None) -> Tensor | None:
    """Brings positions [rows], [batch, rows] or [1 or batch, axes, rows] to the last shape, the one
    of the operators. None stays None."""
    if positions is None:
        return None
    if positions.dim() == 2:
        positions = positions.unsqueeze(1)
    return positions.view(1, 1, -1) if positions.dim() == 1 else positions


def drawn_seed(dropout_p: float) -> Tensor | None:
    """Draws the seed of a call's dropout from torch's default generator; None without dropout.

    It is a tensor and not an int, so that a tracer records the draw, and each run of the compiled
    graph draws anew; torch.utils.checkpoint restores the generator's state, and so repeats it."""
    if dropout_p == 0:
        return None
    return torch.randint(0, 2**63 - 1, (1,), dtype=torch.int64, device="cpu")
