"""Attention with a position encoding chosen by name."""

import json

import torch

from sextant import _transforms
from sextant._call import (
    as_lengths,
    as_softcap,
    by_row,
    check_number,
    check_tensors,
    is_packed,
    options_of_call,
    options_text,
    packing,
    refuse_unseen,
    shape_of_call,
    window_sides,
)
from sextant._packing import attend_by_row, attend_nested, is_nested, longest
from sextant.cache import Cache, refuse_beside_cache


def methods():
    """Describes all encodings: {name: {"summary": ..., "formula": ..., "options": {option:
    default}}}."""
    return json.loads(torch.ops.sextant.methods())


def rotary_positions(positions):
    """Brings positions [rows], [batch, rows] or [1 or batch, axes, rows] to the last shape, the one
    of the operators. None stays None."""
    if positions is None:
        return None
    if positions.dim() == 2:
        positions = positions.unsqueeze(1)
    return positions.view(1, 1, -1) if positions.dim() == 1 else positions


def attention(
    q,
    k,
    v,
    method="none",
    *,
    causal=None,
    first_query=None,
    first_key=0,
    mask=None,
    packed_queries=(),
    packed_keys=(),
    query_segments=None,
    key_segments=None,
    query_positions=None,
    key_positions=None,
    scale=None,
    sink=None,
    window=None,
    key_bias=None,
    return_lse=False,
    parameters=(),
    layer=0,
    layers=1,
    width=None,
    train_length=None,
    cache=None,
    sequences=None,
    softcap=None,
    dropout_p=0.0,
    **options,
):
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
    replace consecutive positions for methods that rotate rows (rope, xpos); visibility still
    follows first_query and first_key.

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
    sink (floating [heads]) is one more score of each head, in the denominator of softmax only. Both
    have gradients. With methods that have options named scale or window (complex; window, rerope,
    leaky-rerope, self-extend), these keywords are the options; ``Method`` has both.

    return_lse: returns (out, lse). lse [batch, heads, queries], float32 (float64 for float64 q),
    is the logarithm of the sum of exp over a query's scores, sink included, -infinity for a query
    that sees no key. It is differentiable.

    Encoding: method and **options name it, see methods(). parameters are its tensors, in the order
    and of the shapes that the method documents. train_length is L, for methods that depend on it;
    its default is the number of keys. Encodings that are added to the input (sinusoidal, learned,
    clock, binary, ...) have no effect here, since there is no input:
    ``sextant.method(name, ...).embed(x)`` adds them before q, k and v are projected from x.

    Decoding: with cache, a ``sextant.Cache``, k and v are the new rows of its sequences and q their
    queries, one per new row; the queries also see all rows in the cache. The positions are those of
    the sequences, so the arguments from causal to key_positions keep their defaults; scale, sink
    and window apply, key_bias and return_lse do not. sequences
    lists the sequence ids of the batch, in order. train_length then has no default, so methods
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

    Raises RuntimeError, which names the argument that does not fit.
    """
    if not isinstance(method, str):
        raise RuntimeError(
            f"method: expected the name of a method, but got {type(method).__name__}: a module is "
            "called itself, as in encoding(q, k, v)"
        )
    options, scale, window = options_of_call(attention, method, options, scale, window)
    check_tensors("", q=q, k=k, v=v)
    if q.size(1) % max(k.size(1), 1) != 0:
        raise RuntimeError(
            f"q: expected a multiple of the {k.size(1)} heads of k, but got {q.size(1)}"
        )
    if train_length is None:
        train_length = longest("k", k) if cache is None else 0
    shape = shape_of_call(q, k, layers, width, train_length)
    return attend(
        method,
        shape,
        options_text(options),
        parameters,
        q,
        k,
        v,
        layer=layer,
        causal=causal,
        first_query=first_query,
        first_key=first_key,
        mask=mask,
        packed_queries=packed_queries,
        packed_keys=packed_keys,
        query_segments=query_segments,
        key_segments=key_segments,
        query_positions=query_positions,
        key_positions=key_positions,
        scale=scale,
        sink=sink,
        window=window,
        key_bias=key_bias,
        return_lse=return_lse,
        cache=cache,
        sequences=sequences,
        softcap=softcap,
        dropout_p=dropout_p,
    )


def drawn_seed(dropout_p):
    """Draws the seed of a call's dropout from torch's default generator; None without dropout.

    It is a tensor and not an int, so that a tracer records the draw, and each run of the compiled
    graph draws anew; torch.utils.checkpoint restores the generator's state, and so repeats it."""
    if dropout_p == 0:
        return None
    return torch.randint(0, 2**63 - 1, (1,), dtype=torch.int64, device="cpu")


def attend(
    name,
    shape,
    options,
    parameters,
    q,
    k,
    v,
    *,
    layer=0,
    causal=None,
    first_query=None,
    first_key=0,
    mask=None,
    packed_queries=(),
    packed_keys=(),
    query_segments=None,
    key_segments=None,
    query_positions=None,
    key_positions=None,
    scale=None,
    sink=None,
    window=None,
    key_bias=None,
    return_lse=False,
    cache=None,
    sequences=None,
    softcap=None,
    dropout_p=0.0,
):
    """Does the work of ``attention``, with the method in the form of the operators: shape, a list
    [layers, heads, key_heads, head_dim, width, train_length], and options as JSON."""
    dropout_p = check_number("dropout_p", dropout_p, "at least 0 and below 1",
                             lambda p: 0 <= p < 1)
    softcap = as_softcap(softcap)
    if causal is not None and not isinstance(causal, bool):
        raise RuntimeError(f"causal: expected True, False or None, but got {causal!r}")
    packed_queries = as_lengths("packed_queries", packed_queries)
    packed_keys = as_lengths("packed_keys", packed_keys)
    if cache is None and sequences is not None:
        raise RuntimeError("sequences: expected None without a cache, but got a list")
    if cache is not None:
        if not isinstance(cache, Cache):
            raise RuntimeError(f"cache: expected a sextant.Cache, but got {type(cache).__name__}")
        refuse_beside_cache(
            causal=(causal is None or causal, True),
            first_query=(first_query, None),
            first_key=(first_key, 0),
            mask=(mask, None),
            packed_queries=(packed_queries, []),
            packed_keys=(packed_keys, []),
            query_segments=(query_segments, None),
            key_segments=(key_segments, None),
            query_positions=(query_positions, None),
            key_positions=(key_positions, None),
            dropout_p=(dropout_p, 0.0),
            key_bias=(key_bias, None),
            return_lse=(return_lse, False),
        )
        return cache.attend(
            q,
            k,
            v,
            name=name,
            shape=shape,
            options=options,
            parameters=list(parameters),
            layer=layer,
            sequences=sequences,
            scale=scale,
            sink=sink,
            window=window_sides(window, True),
            softcap=softcap,
        )
    arguments = {
        "layer": layer,
        "causal": causal,
        "first_query": first_query,
        "first_key": first_key,
        "mask": mask,
        "packed_queries": packed_queries,
        "packed_keys": packed_keys,
        "query_segments": query_segments,
        "key_segments": key_segments,
        "query_positions": query_positions,
        "key_positions": key_positions,
        "scale": scale,
        "sink": sink,
        "window": window,
        "key_bias": key_bias,
        "return_lse": return_lse,
        "softcap": softcap,
        "dropout_p": dropout_p,
    }
    method = name, shape, options

    def attend_rows(q, k, v, **arguments):
        return _attend_rows(method, parameters, q, k, v, **arguments)

    if is_nested(q, k, v):
        return attend_nested(attend_rows, q, k, v, **arguments)
    if by_row(packed_queries, packed_keys):
        return attend_by_row(attend_rows, q, k, v, **arguments)
    return attend_rows(q, k, v, **arguments)


def _attend_rows(method, parameters, q, k, v, *, layer, causal, first_query, first_key, mask,
                 packed_queries, packed_keys, query_segments, key_segments, query_positions,
                 key_positions, scale, sink, window, key_bias, return_lse, softcap, dropout_p):
    """Calls the operator, with the arguments of ``attend``."""
    packed = packing(packed_queries, packed_keys)
    if causal is None and first_query is None:
        refuse_unseen(q.size(2), k.size(2), packed)
    causal = causal is not False
    if first_query is None:
        first_query = 0 if is_packed(packed_queries) else first_key + k.size(2) - q.size(2)
    arguments = {
        "layer": layer,
        "first_query": first_query,
        "first_key": first_key,
        "causal": causal,
        **packed,
        "mask": mask,
        "query_segments": query_segments,
        "key_segments": key_segments,
        "query_rotary_positions": rotary_positions(query_positions),
        "key_rotary_positions": rotary_positions(key_positions),
        "scale": scale,
        "window": window_sides(window, causal),
        "softcap": softcap,
        "dropout_p": dropout_p,
        "dropout_seed": drawn_seed(dropout_p),
    }
    operator = "method_attend_with_lse" if return_lse else "method_attend"
    terms = {"sink": sink, "key_bias": key_bias}
    if _transforms.active():
        given = {name: term for name, term in terms.items() if term is not None}
        call = _transforms.Operator(operator, method, 3, tuple(given), arguments)
        return call(q, k, v, *given.values(), *parameters)
    call = getattr(torch.ops.sextant, operator)
    return call(*method, list(parameters), q, k, v, **arguments, **terms)
