"""Biases that a query's input decides: WavLM, Inkling."""

from sextant.conformance.case import case


def attend(c, name, parameters, causal, **options):
    q, k, v = c.leaves("q", "k", "v")
    shape = {"heads": q.size(1), "head_dim": q.size(3), "width": c.leaf("x").size(2)}
    method = c.library.method(name, **shape, **options)
    method.tensors = lambda: parameters
    c.expect_out(method(method.queries(q, c.leaf("x")), k, v, causal=causal))


@case(r"WavLM gated bias", "table")
def wavlm(c):
    options = {name: c.meta[name] for name in ("buckets", "max_distance")}
    attend(c, "wavlm", c.leaves("table", "const", "weight", "linear_bias"), False, **options)


@case(r"Inkling", "proj", "w_r")
def inkling(c):
    options = {name: c.meta[name] for name in ("columns", "reach", "log_alpha", "log_floor")}
    second = "w_sink" in c
    names = ("proj", "w_r", "w_sink") if second else ("proj", "w_r")
    options["flavour"] = "inkling2" if second else "inkling"
    attend(c, "inkling", c.leaves(*names), True, **options)
