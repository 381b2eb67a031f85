"""Tables of vectors by distance: Shaw, tensor2tensor's v2 ("skew"), BERT's relative_key, NEZHA."""

import torch
from torch.nn.functional import linear

from sextant.conformance.case import case
from sextant.conformance.cases._heads import merge, split

HIDDEN = -1000.0  # masks hide a key by a term below this


def visible(c, name):
    """An additive mask as a boolean one, or None if the case has no such array."""
    return c.tensor(name) > HIDDEN if name in c else None


@case(r"shaw_relative_kv$", "rel_k", "rel_v")
def shaw(c):
    q, k, v, rel_k, rel_v = c.leaves("q", "k", "v", "rel_k", "rel_v")
    c.expect_out(
        c.attention(q, k, v, method="shaw", clip=c.meta["max_relative_position"],
                    causal=c.meta["causal"], mask=visible(c, "bias"), parameters=[rel_k, rel_v])
    )


@case(r"relative_v2_skew$", "rel_k")
def skew(c):
    q, k, v, rel_k = c.leaves("q", "k", "v", "rel_k")
    values = c.meta["add_relative_to_values"]
    c.expect_out(
        c.attention(q, k, v, method="skew", max_relative_position=c.meta["max_relative_position"],
                    heads_share_relative_embedding=rel_k.dim() == 2, add_relative_to_values=values,
                    unmasked=c.meta["unmasked"], causal=not c.meta["unmasked"],
                    mask=visible(c, "bias"),
                    parameters=[rel_k] + ([c.leaf("rel_v")] if values else []))
    )


def projections(c, x):
    """Projects x, [batch, length, width], to q, k and v with the weights and biases of the case."""
    return [
        split(linear(x, c.leaf(f"{side}_w"), c.leaf(f"{side}_b")), c.meta["H"]) for side in "qkv"
    ]


@case(r"bert_relative_key(_query)?$", "dist_emb")
def bert_relative_key(c):
    q, k, v = projections(c, c.leaf("x"))
    out = c.attention(q, k, v, method="relative-key",
                      position_embedding_type=c.meta["method"].removeprefix("bert_"),
                      max_position_embeddings=c.meta["max_position_embeddings"],
                      causal=False, parameters=[c.leaf("dist_emb")])
    c.expect_out(merge(out))


@case(r"nezha$", "rel_table", "out_signed")
def nezha(c):
    q, k, v = projections(c, c.leaf("x"))
    place = dict(method="nezha", max_relative_position=c.meta["max_relative_position"],
                 causal=False, mask=visible(c, "attention_mask"))
    c.expect_out(merge(c.attention(q, k, v, **place)))
    paper = merge(c.attention(q, k, v, flavour="paper", **place))
    c.expect("out_signed", paper, c.arrays["out_signed"])


def shifted(c, x, keys, columns, **options):
    """The softmax of the shifted x, [queries, keys]. A row of x is a query and a row of the table
    selects a column, so that the score is the row map of "skew" alone."""
    q = (x * x.size(1) ** 0.5)[None, None]
    zeros = q.new_zeros(1, 1, keys, x.size(1))
    values = torch.eye(keys, dtype=x.dtype)[None, None]
    rows = options["max_relative_position"] * (2 if options["unmasked"] else 1)
    rows -= options["unmasked"]
    table = torch.zeros(rows, x.size(1), dtype=x.dtype)
    table[:columns] = torch.eye(columns, x.size(1), dtype=x.dtype)
    return c.attention(q, zeros, values, method="skew", causal=not options["unmasked"],
                       heads_share_relative_embedding=True, parameters=[table], **options)[0, 0]


def causal_softmax(y):
    """The softmax over the causal keys; later columns of a shifted row belong to the next row, or
    are padding."""
    queries, keys = y.shape
    later = torch.ones(queries, keys).triu(1 + keys - queries) > 0
    return y.masked_fill(later, -torch.inf).softmax(1)


@case(r"rel_shift$", "x", "y")
def transformer_xl_shift(c):
    keys = c.tensor("y").size(1)
    got = shifted(c, c.tensor("x"), keys, keys, max_relative_position=keys, unmasked=False)
    c.expect("softmax(y)", got, causal_softmax(c.tensor("y")))


@case(r"rel_shift$", "x", "y", "x_uni", "y_uni")
def xlnet_shift(c):
    keys = c.tensor("y").size(1)
    for what, columns in (("y", c.tensor("x").size(1)), ("y_uni", keys + 1)):
        got = shifted(c, c.tensor(what.replace("y", "x")), keys, columns,
                      max_relative_position=keys + 1, unmasked=what == "y")
        y = c.tensor(what)
        c.expect(f"softmax({what})", got, y.softmax(1) if what == "y" else causal_softmax(y))


@case(r"shift$", "x", "shift", "tshift")
def tener_shifts(c):
    x = c.tensor("x")
    length, columns = x.size(0), x.size(1)
    got = shifted(c, x, length, columns, max_relative_position=columns // 2 + 1, unmasked=True)
    c.expect("softmax(shift)", got, c.tensor("shift").softmax(1))
    keys = (x * columns**0.5)[None, None]
    table = torch.zeros(columns + 1, columns, dtype=x.dtype)
    table[:columns] = torch.eye(columns, dtype=x.dtype)
    got = c.attention(torch.zeros_like(keys), keys, torch.eye(length, dtype=x.dtype)[None, None],
                      method="relative-key", position_embedding_type="relative_key_query",
                      max_position_embeddings=columns // 2 + 1, causal=False,
                      parameters=[table])[0, 0]
    c.expect("softmax(tshift)", got, c.tensor("tshift").softmax(1))
