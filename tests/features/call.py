"""Arguments of a call: sizes, queries and keys, the score, masks."""
import torch

import sextant

from common import dense, feature, hidden, method, qkv, random, sdpa


@feature("Sizes")
def wrong_head_dim():
    """`q` with other columns than `head_dim`"""
    q, k, v = (torch.cat((x, x), 3) for x in qkv(7))
    method("rope")(q, k, v)


@feature("Sizes")
def wrong_heads():
    """`q` with other heads than `heads`"""
    method("alibi")(*(x[:, :1] for x in qkv(7)))


@feature("Sizes")
def wrong_key_heads():
    """`k` with other heads than `key_heads`"""
    q, k, v = qkv(7)
    method("rope")(q, k[:, :1], v[:, :1])


@feature("Sizes")
def wrong_layer():
    """a `layer` beyond `layers`"""
    method("shaw")(*qkv(7), layer=2)


@feature("Sizes")
def grouped_keys():
    """`k` and `v` with fewer heads (grouped-query attention)"""
    q, k, v = qkv(7)
    k, v = k[:, :1], v[:, :1]
    return [(sextant.attention(q, k, v, causal=False),
             sdpa(q, k.expand_as(q), v.expand_as(q)))]


@feature("Sizes")
def value_columns():
    """`v` with other columns than `k`"""
    q, k, v = qkv(7)
    wide = torch.cat((v, v), 3)
    return [(sextant.attention(q, k, wide, causal=False), sdpa(q, k, wide))]


@feature("Sizes")
def value_columns_with_vectors():
    """the same, with a method that adds vectors to values"""
    q, k, v = qkv(7)
    sextant.attention(q, k, v[..., :3], method="nezha")


@feature("Sizes")
def wrong_width():
    """an input of another width for `embed`"""
    method("learned").embed(random(2, 7, 6))


@feature("Queries and keys")
def cross_attention_unsaid():
    """more queries than keys, without `causal` or `first_query`"""
    sextant.attention(*qkv(9, 7))


@feature("Queries and keys")
def cross_attention():
    """more queries than keys, `causal=False`"""
    return [(sextant.attention(*qkv(9, 7), causal=False), sdpa(*qkv(9, 7)))]


@feature("Queries and keys")
def last_queries():
    """fewer queries than keys: the last ones"""
    q, k, v = qkv(7)
    whole = sdpa(q, k, v, is_causal=True)
    return [(sextant.attention(q[:, :, 5:], k, v), whole[:, :, 5:])]


@feature("Queries and keys")
def packed_lists():
    """`packed_queries`, `packed_keys` as lists"""
    return packed([0, 2, 7])


@feature("Queries and keys")
def packed_tensors():
    """the same as tensors, int32 or int64 (`cu_seqlens`)"""
    return packed(torch.tensor([0, 2, 7], dtype=torch.int32))


def packed(sums):
    q, k, v = qkv(7)
    out = method()(q, k, v, packed_queries=sums, packed_keys=sums)
    return [(out[:, :, rows], method()(*(x[:, :, rows] for x in (q, k, v))))
            for rows in (slice(0, 2), slice(2, 7))]


@feature("Queries and keys")
def packed_by_row():
    """lists of lists: each row of the batch packed for itself"""
    rows = [[0, 2, 7], [0, 7]]
    q, k, v = qkv(7)
    out = method()(q, k, v, packed_queries=rows, packed_keys=rows)
    return [(out[b : b + 1, :, first:last],
             method()(*(x[b : b + 1, :, first:last] for x in (q, k, v))))
            for b, first, last in ((0, 0, 2), (0, 2, 7), (1, 0, 7))]


@feature("Queries and keys")
def packed_by_row_with_mask():
    """a `mask` beside packing by row"""
    sextant.attention(*qkv(7), packed_queries=[[0, 7], [0, 7]], packed_keys=[[0, 7], [0, 7]],
                      mask=hidden(7))


def nested(layout):
    sequences = [random(n, 3, 4, seed=n) for n in (3, 5)]
    if layout == torch.strided:
        return torch.nested.nested_tensor([x.transpose(0, 1) for x in sequences])
    return torch.nested.nested_tensor(sequences, layout=layout).transpose(1, 2)


@feature("Queries and keys", (2, 6))
def nested_tensors():
    """nested tensors, layout `torch.jagged`"""
    x = nested(torch.jagged)
    return [(got[None], method()(one[None], one[None], one[None]))
            for got, one in zip(method()(x, x, x).unbind(), x.unbind())]


@feature("Queries and keys", (2, 6))
def strided_nested_tensors():
    """nested tensors of another layout"""
    x = nested(torch.strided)
    method()(x, x, x)


@feature("The score")
def scale():
    """`scale=`"""
    return [(sextant.attention(*qkv(), causal=False, scale=0.3),
             dense(*qkv()[:2], 0.3).softmax(3) @ qkv()[2])]


@feature("The score")
def t5_scale():
    """`scale=` with `t5`, which has none by default"""
    t5, scaled = method("t5"), method("t5", scaled=True)
    return [(t5(*qkv(), scale=0.5), scaled(*qkv()))]


@feature("The score")
def sink():
    """`sink=`, a score per head"""
    q, k, v = qkv()
    scores = torch.cat((dense(q, k), torch.ones(2, 3, 5, 1, dtype=q.dtype)), 3)
    return [(sextant.attention(q, k, v, causal=False, sink=torch.ones(3)),
             scores.softmax(3)[..., :-1] @ v)]


@feature("The score")
def second_sink():
    """`sink=` beside the method `sink`"""
    method("sink")(*qkv(7), sink=torch.zeros(3))


@feature("The score")
def key_bias():
    """`key_bias=`, [keys], [batch, keys] or [batch, heads, keys]"""
    bias = random(2, 7)
    return [(sextant.attention(*qkv(), causal=False, key_bias=bias),
             sdpa(*qkv(), attn_mask=bias[:, None, None]))]


@feature("The score")
def window():
    """`window=`, keys or (left, right)"""
    distance = torch.arange(7)[:, None] - torch.arange(7)
    return [(sextant.attention(*qkv(7), window=3),
             sdpa(*qkv(7), attn_mask=(distance >= 0) & (distance < 3))),
            (sextant.attention(*qkv(7), causal=False, window=(1, 2)),
             sdpa(*qkv(7), attn_mask=(distance <= 1) & (distance >= -2)))]


@feature("The score")
def softcap():
    """`softcap=`, with a gradient"""
    q, k, v = (x.requires_grad_() for x in qkv())
    got = sextant.attention(q, k, v, causal=False, softcap=0.8)
    expected = (0.8 * (dense(q, k) / 0.8).tanh()).softmax(3) @ v
    return [(got, expected),
            (*(torch.autograd.grad(x.sin().sum(), q)[0] for x in (got, expected)),)]


@feature("The score")
def dropout():
    """`dropout_p=`: weights are 0 or divided by 1 - p, by a seed of torch's generator"""
    q, k, _ = qkv()
    identity = torch.eye(7, dtype=q.dtype).expand(2, 3, 7, 7)  # so that the result is the weights
    plain = sextant.attention(q, k, identity, causal=False)
    torch.manual_seed(3)
    weights = sextant.attention(q, k, identity, causal=False, dropout_p=0.25)
    torch.manual_seed(3)
    again = sextant.attention(q, k, identity, causal=False, dropout_p=0.25)
    return [(weights, torch.where(weights == 0, torch.zeros_like(plain), plain / 0.75)),
            (again, weights), ((weights == 0).any().double(), torch.ones((), dtype=q.dtype))]


@feature("The score")
def return_lse():
    """`return_lse=True`, with a gradient"""
    q, k, v = (x.requires_grad_() for x in qkv())
    lse = dense(q, k).logsumexp(3)
    _, got = sextant.attention(q, k, v, causal=False, return_lse=True)
    return [(got, lse), (*(torch.autograd.grad(x.sin().sum(), q)[0] for x in (got, lse)),)]


@feature("The score")
def need_weights():
    """`need_weights=`: the matrix of weights"""
    sextant.attention(*qkv(7), need_weights=True)


@feature("Masks")
def bool_masks():
    """bool [keys], [batch, keys], [queries, keys], [batch, 1 or heads, queries, keys]"""
    return [(sextant.attention(*qkv(), causal=False, mask=mask), sdpa(*qkv(), attn_mask=same))
            for mask, same in ((hidden(7), hidden(7)), (hidden(2, 7), hidden(2, 1, 1, 7)),
                               (hidden(5, 7), hidden(5, 7)),
                               (hidden(2, 1, 5, 7), hidden(2, 1, 5, 7)))]


@feature("Masks")
def floats_that_hide():
    """floating, 0 and -infinity (or the lowest number)"""
    mask = torch.zeros(5, 7).masked_fill(~hidden(5, 7), torch.finfo(torch.float32).min)
    return [(sextant.attention(*qkv(), causal=False, mask=mask),
             sdpa(*qkv(), attn_mask=hidden(5, 7)))]


@feature("Masks")
def floats_by_key():
    """floating, the same for all queries"""
    mask = random(2, 1, 1, 7)
    return [(sextant.attention(*qkv(), causal=False, mask=mask), sdpa(*qkv(), attn_mask=mask))]


@feature("Masks")
def floats_by_query_and_key():
    """floating, by query and key"""
    sextant.attention(*qkv(), mask=random(5, 7))


@feature("Masks")
def unclear_mask():
    """[rows, keys] where batch and queries have as many rows"""
    sextant.attention(*qkv(2), mask=hidden(2, 7))


@feature("Masks")
def integer_mask():
    """integers (0 and 1)"""
    sextant.attention(*qkv(), mask=hidden(2, 7).long())
