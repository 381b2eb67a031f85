"""Attention with a position encoding chosen by name."""

import json

import torch

from sextant.cache import refuse_beside_cache


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


# torch.compile treats options as constants when it traces a call, and so serializes them once.
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

    Precision: after torch.set_float32_matmul_precision("medium") the forward pass rounds q, k, the
    softmax weights and v to bfloat16 before each product, if machine and build have bfloat16
    products (AMX, or AVX512_BF16 and Highway 1.2). After "high", and with at least 1024 queries,
    the forward pass multiplies float32 on AMX, where the machine has it: results are as accurate,
    but their last bits differ from those of a token that is decoded alone. The backward pass does
    so by default. Calls that train biases by key (fox) run in float32 at "medium", too.

    Positions: key n has position first_key + n, query n first_query + n. By default the last query
    has the position of the last key, as in decoding and with a memory. causal hides keys at higher
    positions. mask (bool, [batch, heads, queries, keys], sizes of 1 are broadcast; False hides)
    covers all other cases, those that do not depend on distance alone. packed_queries and
    packed_keys are the cumulative lengths of sequences that are packed one after the other.
    query_segments and key_segments (int64 [batch, rows]) are for methods with segments (XLNet).
    query_positions and key_positions (int64 [rows], [batch, rows] or [1 or batch, axes, rows])
    replace consecutive positions for methods that rotate rows (rope, xpos); visibility still
    follows first_query and first_key.

    Encoding: method and **options name it, see methods(). parameters are its tensors, in the order
    and of the shapes that the method documents. train_length is L, for methods that depend on it;
    its default is the number of keys. Encodings that are added to the input (sinusoidal, learned,
    clock, binary, ...) have no effect here, since there is no input:
    ``sextant.method(name, ...).embed(x)`` adds them before q, k and v are projected from x.

    Decoding: with cache, a ``sextant.Cache``, k and v are the new rows of its sequences and q their
    queries, one per new row; the queries also see all rows in the cache. The positions are those of
    the sequences, so the arguments from causal to key_positions keep their defaults. sequences
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

    Raises RuntimeError, which names the argument that does not fit.
    """
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        if not isinstance(tensor, torch.Tensor) or tensor.dim() != 4:
            got = list(tensor.shape) if isinstance(tensor, torch.Tensor) else type(tensor).__name__
            raise RuntimeError(
                f"{name}: expected a tensor [batch, heads, rows, columns], but got {got}"
            )
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


def checked_softcap(softcap):
    """Brings softcap to the operators' form, in which 0 is none."""
    if softcap is None:
        return 0.0
    if not softcap > 0 or softcap == float("inf"):
        raise RuntimeError(f"softcap: expected a finite number above 0, or None, but got {softcap}")
    return float(softcap)


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
    softcap=None,
    dropout_p=0.0,
):
    """Does the work of ``attention``, with the method in the form of the operators: shape, a list
    [layers, heads, key_heads, head_dim, width, train_length], and options as JSON."""
    if not 0 <= dropout_p < 1:
        raise RuntimeError(f"dropout_p: expected at least 0 and below 1, but got {dropout_p}")
    softcap = checked_softcap(softcap)
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
            dropout_p=(dropout_p, 0.0),
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
            softcap=softcap,
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
        softcap=softcap,
        dropout_p=dropout_p,
        dropout_seed=drawn_seed(dropout_p),
    )
