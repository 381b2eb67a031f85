"""Attention with a position encoding chosen by name."""

import json

import torch

from sextant.cache import refuse_beside_cache


def methods():
    """All encodings: {name: {"summary": ..., "formula": ..., "options": {option: default}}}."""
    return json.loads(torch.ops.sextant.methods())


def rotary_positions(positions):
    """Positions [rows], [batch, rows] or [1 or batch, axes, rows] as the operators take them."""
    if positions is None:
        return None
    if positions.dim() == 2:
        positions = positions.unsqueeze(1)
    return positions.view(1, 1, -1) if positions.dim() == 1 else positions


# Traced by torch.compile, options are constants: their text is made once.
if hasattr(torch, "compiler"):
    options_text = torch.compiler.assume_constant_result(json.dumps)
else:
    options_text = json.dumps


def attention(
    q,
    k,
    v,
    method="none",
    *,
    causal=True,
    first_query=None,
    first_key=0,
    mask=None,
    packed_queries=(),
    packed_keys=(),
    query_segments=None,
    key_segments=None,
    query_positions=None,
    key_positions=None,
    parameters=(),
    layer=0,
    layers=1,
    width=None,
    train_length=None,
    cache=None,
    sequences=None,
    **options,
):
    """Attends: [batch, heads, queries, value_dim]. Differentiable, never builds queries x keys.

    q [batch, heads, queries, head_dim]; k, v [batch, key_heads, keys, ...]: fewer key heads are
    shared by groups of query heads. With fox k has heads / key_heads more columns than q, its
    gates' logits. float32, bfloat16 and float16 run on the fast kernel, which computes in float32;
    float64 on the reference. After torch.set_float32_matmul_precision("medium") the forward pass
    rounds q, k, weights and v to bfloat16 before it multiplies them, on machines and builds that
    have products of bfloat16 (AMX, or AVX512_BF16 and Highway 1.2). After "high" it multiplies
    float32 by AMX, where there is that and for 1024 queries and more: as exactly, but with other
    last bits than a token decoded has. The backward pass does so by default. q, k, v and parameters
    may each be any of the first three. The result has the type of q, each gradient that of what it
    is of, and both are rounded once, to nearest. Under torch.autocast nothing is cast: q, k and v
    come as the projections made them.

    Keys stand at positions first_key, first_key + 1, ...; queries at first_query, ..., by default
    so that the last query stands at the last key (decoding, memory). causal hides keys at higher
    positions. mask (bool, [batch, heads, queries, keys], sizes of 1 are shared; False = hidden) is
    for what is no function of distance. packed_queries and packed_keys are cumulative lengths of
    texts packed one after the other. query_segments and key_segments (int64 [batch, rows]) are read
    by methods that know segments (XLNet). query_positions and key_positions (int64 [rows], [batch,
    rows] or [1 or batch, axes, rows]) say where rows stand for methods that turn them (rope, xpos),
    where that is not one after the other; what is seen goes by first_query and first_key all the
    same.

    method and **options name the encoding, see methods(); parameters are its tensors in the order
    of the method's list, each of its documented shape. train_length is L, for methods that depend
    on it. Encodings that are added to the input (sinusoidal, learned, clock, binary, ...) do
    nothing here, where there is no input: ``sextant.method(name, ...).embed(x)`` adds them before
    q, k and v are made of x.

    cache, a ``sextant.Cache``: k and v are the new rows of its sequences, and q, as many, their
    queries, which see what the cache holds, too. Its sequences say where rows stand, so the arguments
    from causal to key_positions keep their defaults. sequences: the numbers of the sequences of the batch, in order.
    train_length is then not taken from k: methods that depend on it ask for it.

    Raises RuntimeError that names the argument that does not fit.
    """
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        if not isinstance(tensor, torch.Tensor) or tensor.dim() != 4:
            got = list(tensor.shape) if isinstance(tensor, torch.Tensor) else type(tensor).__name__
            raise RuntimeError(f"{name}: expected a tensor [batch, heads, rows, columns], but got {got}")
    heads, head_dim = q.size(1), q.size(3)
    shape = [
        layers,
        heads,
        k.size(1),
        head_dim,
        heads * head_dim if width is None else width,
        (k.size(2) if cache is None else 0) if train_length is None else train_length,
    ]
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
        cache=cache,
        sequences=sequences,
    )


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
    causal=True,
    first_query=None,
    first_key=0,
    mask=None,
    packed_queries=(),
    packed_keys=(),
    query_segments=None,
    key_segments=None,
    query_positions=None,
    key_positions=None,
    cache=None,
    sequences=None,
):
    """``attention`` with the method as the operators name it: shape, a list of sizes, and options,
    JSON."""
    if cache is not None:
        refuse_beside_cache(
            causal=(causal, True),
            first_query=(first_query, None),
            first_key=(first_key, 0),
            mask=(mask, None),
            packed_queries=(tuple(packed_queries), ()),
            packed_keys=(tuple(packed_keys), ()),
            query_segments=(query_segments, None),
            key_segments=(key_segments, None),
            query_positions=(query_positions, None),
            key_positions=(key_positions, None),
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
        )
    if first_query is None:
        first_query = 0 if packed_queries else first_key + k.size(2) - q.size(2)
    return torch.ops.sextant.method_attend(
        name,
        shape,
        options,
        list(parameters),
        q,
        k,
        v,
        layer=layer,
        first_query=first_query,
        first_key=first_key,
        causal=causal,
        packed_queries=list(packed_queries),
        packed_keys=list(packed_keys),
        mask=mask,
        query_segments=query_segments,
        key_segments=key_segments,
        query_rotary_positions=rotary_positions(query_positions),
        key_rotary_positions=rotary_positions(key_positions),
    )
