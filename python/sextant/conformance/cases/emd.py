"""DeBERTa's enhanced mask decoder: a whole model of three layers, up to the logits of the masked
tokens."""

from torch.nn.functional import embedding, gelu, layer_norm, linear

from sextant.conformance.case import case
from sextant.conformance.cases._heads import merge, split


@case(r"deberta EMD$", "targets", "param_emb.position_embeddings.weight")
def emd(c):
    eps, layers = c.meta["ln_eps"], c.meta["layers"]

    def norm(x, name):
        return layer_norm(x, x.shape[-1:], *c.leaves(f"{name}.weight", f"{name}.bias"), eps)

    def dense(x, name):
        return linear(x, *c.leaves(f"{name}.weight", f"{name}.bias"))

    projections = [
        f"pos_{side}_proj.{part}" for side in ("key", "query") for part in ("weight", "bias")
    ]
    parameters = c.leaves(
        "param_enc.rel_embeddings.weight",
        *(f"param_enc.layer.{n}.attention.self.{p}" for n in range(layers) for p in projections),
        "param_emb.position_embeddings.weight",
    )
    method = c.library.method(
        "emd", heads=c.meta["H"], head_dim=c.meta["d_head"], layers=layers, width=c.meta["hidden"],
        rows=c.arrays["param_emb.position_embeddings.weight"].shape[0], dtype=c.dtype,
        options={"buckets": 0, "max_positions": c.meta["max_relative_positions"], "norm": False},
    )
    method.tensors = lambda: parameters  # the tensors of the case, whose gradients are compared

    def layer(n):
        name = f"param_enc.layer.{n}"

        def run(x, keys):
            q, k, v = (
                split(dense(y, f"{name}.attention.self.{side}_proj"), c.meta["H"])
                for side, y in (("query", x), ("key", keys), ("value", keys))
            )
            attended = merge(method(q, k, v, layer=n, causal=False))
            x = norm(dense(attended, f"{name}.attention.output.dense") + x,
                     f"{name}.attention.output.LayerNorm")
            inner = gelu(dense(x, f"{name}.intermediate.dense"))
            return norm(dense(inner, f"{name}.output.dense") + x, f"{name}.output.LayerNorm")

        return run

    token_table = c.leaf("param_emb.word_embeddings.weight")
    x = norm(embedding(c.tensor("input_ids"), token_table, padding_idx=0), "param_emb.LayerNorm")
    c.expect("hidden0", x, c.arrays["hidden0"])
    for n in range(layers - 1):
        x = layer(n)(x, x)
        c.expect(f"layer{n + 1}", x, c.arrays[f"layer{n + 1}"])
    last = layer(layers - 1)
    c.expect(f"layer{layers}", last(x, x), c.arrays[f"layer{layers}"])

    masked = c.tensor("targets") > 0
    runs = []

    def watched(queries, keys):
        runs.append(last(queries, keys))
        return runs[-1]

    read = method.run_last_layer(x, watched)[masked]
    for n, run in enumerate(runs, 1):
        c.expect(f"emd{n}", run[masked], c.arrays[f"emd{n}"])
    read = norm(gelu(dense(read, "param_emd.lm_head.dense")), "param_emd.lm_head.LayerNorm")
    c.expect_out(linear(read, token_table, c.leaf("param_emd.lm_head.bias")), "g", name="logits")
