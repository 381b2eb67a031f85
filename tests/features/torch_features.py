"""The cache, and features of torch: autograd, compilers, modules, types."""
import copy
import io

import torch

import sextant

from common import feature, method, qkv, random, sdpa


def decoded(**arguments):
    t5 = sextant.method("t5", heads=3, head_dim=4)
    q, k, v = qkv(7, dtype=torch.float32)
    cache = sextant.Cache()
    with torch.no_grad():
        parts = [t5(*(x[:, :, rows] for x in (q, k, v)), cache=cache, **arguments)
                 for rows in (slice(0, 4), slice(4, 7))]
        return [(torch.cat(parts, 2), t5(q, k, v, **arguments))]


@feature("With a cache")
def cached_terms():
    """`scale`, `sink`, `window`"""
    return decoded(scale=0.3, sink=torch.ones(3), window=3)


@feature("With a cache")
def cached_key_bias():
    """`key_bias` (`mask`, positions and packing likewise)"""
    decoded(key_bias=torch.zeros(7))


@feature("With a cache")
def cached_lse():
    """`return_lse`"""
    decoded(return_lse=True)


@feature("With a cache")
def cached_int8():
    """`Cache(dtype=torch.int8)`"""
    q, k, v = qkv(20, 20, dtype=torch.float32)
    cache = sextant.Cache(page_rows=16, dtype=torch.int8)
    with torch.no_grad():
        out = method().float()(q, k, v, cache=cache)
        k, v = (torch.cat(x) for x in zip(*map(cache.read, cache.sequences)))
        return [(out, method().float()(q, k, v))]


@feature("Autograd and torch.func")
def second_derivatives():
    """second derivatives"""
    q, k, v = (x.requires_grad_() for x in qkv())
    grad, = torch.autograd.grad(sextant.attention(q, k, v).square().sum(), q, create_graph=True)
    grad.sum().backward()


@feature("Autograd and torch.func", (2, 1))
def func_grad():
    """`torch.func.grad`, `vjp`"""
    q, k, v = qkv()
    loss = lambda q: method()(q, k, v).square().sum()
    q.requires_grad_()
    return [(torch.func.grad(loss)(q), torch.autograd.grad(loss(q), q)[0])]


@feature("Autograd and torch.func", (2, 1))
def func_vmap():
    """`torch.func.vmap`"""
    t5 = method()
    q, k, v = qkv()
    return [(torch.func.vmap(lambda q: t5(q, k, v))(torch.stack([q, 2 * q]))[1],
             t5(2 * q, k, v))]


@feature("Autograd and torch.func", (2, 1))
def func_samples():
    """gradients of each sample, `vmap(grad(functional_call))`"""
    t5 = method()
    q, k, v = qkv()
    loss = lambda parameters, *x: torch.func.functional_call(
        t5, parameters, tuple(y[None] for y in x)).square().sum()
    parameters = dict(t5.named_parameters())
    each = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0, 0))(parameters, q, k, v)
    return [(each[name][n], torch.func.grad(loss)(parameters, q[n], k[n], v[n])[name])
            for name in parameters for n in range(2)]


@feature("Autograd and torch.func", (2, 1))
def func_hessian():
    """second derivatives of torch.func"""
    q, k, v = qkv()
    gradient = torch.func.grad(lambda q: sextant.attention(q, k, v).square().sum())
    torch.func.grad(lambda q: gradient(q).sum())(q)


@feature("Autograd and torch.func")
def checkpointing():
    """`torch.utils.checkpoint`"""
    from torch.utils.checkpoint import checkpoint
    q, k, v = (x.requires_grad_() for x in qkv())
    t5 = method()
    arguments = {"use_reentrant": False}
    return [(torch.autograd.grad(checkpoint(t5, q, k, v, **arguments).square().sum(), q)[0],
             torch.autograd.grad(t5(q, k, v).square().sum(), q)[0])]


@feature("Compilers", (2, 6))
def compiled():
    """`torch.compile(fullgraph=True)`, with `packed_queries` as tensors and a floating mask too"""
    t5, sums = method(), torch.tensor([0, 2, 7])
    calls = [lambda q, k, v: t5(q, k, v, packed_queries=sums, packed_keys=sums),
             lambda q, k, v: t5(q, k, v, mask=mask, scale=0.3, window=3),
             lambda q, k, v: t5(q, k, v, sink=torch.ones(3), key_bias=mask, return_lse=True)[1]]
    mask = random(7)
    pairs = []
    for call in calls:
        torch.compiler.reset()
        q, k, v = (x.requires_grad_() for x in qkv(7))
        got = torch.compile(call, fullgraph=True, backend="aot_eager")(q, k, v)
        pairs += [(got, call(q, k, v)),
                  tuple(torch.autograd.grad(x.square().sum(), q)[0] for x in (got, call(q, k, v)))]
    return pairs


@feature("Compilers", (2, 6))
def exported():
    """`torch.export`"""
    t5 = method()
    program = torch.export.export(t5, tuple(qkv(7)))
    return [(program.module()(*qkv(7)), t5(*qkv(7)))]


@feature("Modules")
def stored():
    """`copy.deepcopy`, `torch.save`, `state_dict`"""
    t5, file, other = method(), io.BytesIO(), method()
    torch.save(t5.state_dict(), file)
    file.seek(0)
    other.load_state_dict(torch.load(file))
    return [(x(*qkv()), t5(*qkv())) for x in (copy.deepcopy(t5), other)]


@feature("Modules", (2, 0))
def meta_device():
    """made on `torch.device("meta")`, then `to_empty` and `reset_parameters()` (FSDP)"""
    with torch.device("meta"):
        t5 = sextant.method("t5", heads=3, head_dim=4, layers=2, dtype=torch.float64)
    t5.to_empty(device="cpu")
    torch.manual_seed(0)
    t5.reset_parameters()
    return [(t5(*qkv()), method()(*qkv()))]


@feature("Modules")
def groups():
    """`parameter_groups(lr)`: T5's table at 10 times the rate"""
    group, = method().parameter_groups(0.01)
    return [(torch.tensor(group["lr"]), torch.tensor(0.1))]


@feature("Modules")
def types():
    """float32, bfloat16 and float16; float64 on the reference"""
    return [(sextant.attention(*qkv(dtype=dtype), causal=False).double(), sdpa(*qkv()))
            for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.float16)]
