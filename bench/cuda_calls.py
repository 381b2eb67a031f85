"""Calls of attention that bench/cuda.py times: ours, by bench/cuda/shim.cc, and those of peers."""

import ctypes
import importlib.metadata
import math

import torch
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

TABLES = {"alibi": ["bias"], "t5": ["bias"], "shaw": ["on_query", "on_value"],
          "transformer-xl": ["on_query"], "deberta": ["on_query", "on_key"]}
ALL_TABLES = ["bias", "on_query", "on_key", "on_value"]
BUCKETS, MOST_DISTANCE = 32, 128  # of T5


class Shim:
    """The functions of bench/cuda/shim.cc. Every one that fails raises RuntimeError."""

    def __init__(self, path, fibers):
        self.library = ctypes.CDLL(str(path))
        self.library.sextant_shim_error.restype = ctypes.c_char_p
        self.library.sextant_shim_call.restype = ctypes.c_void_p
        for name in ("table_rows", "table_heads", "peak"):
            self.function(name).restype = ctypes.c_int64
        self.expect(self.function("begin")(int(fibers)))

    def function(self, name):
        return getattr(self.library, f"sextant_shim_{name}")

    def expect(self, result):
        if not result:
            raise RuntimeError(self.library.sextant_shim_error().decode())
        return result

    def peak(self):
        """The most memory of the backend since the last call of this function, in bytes."""
        return self.function("peak")()


def addresses(tensors):
    return (ctypes.c_void_p * len(tensors))(*(x.data_ptr() if x is not None else None
                                              for x in tensors))


def distances(length, device):
    """The distance of each diagonal of causal attention."""
    return torch.arange(length - 1, -1, -1, device=device)


def slopes(heads, device):
    return torch.tensor([2 ** (-8 * (h + 1) / heads) for h in range(heads)], device=device)


def buckets(distance):
    """T5's bucket of causal distances."""
    exact = BUCKETS // 2
    far = exact + (torch.log(distance.clamp(min=1).double() / exact) /
                   math.log(MOST_DISTANCE / exact) * (BUCKETS - exact) + 1e-9).long()
    return torch.where(distance < exact, distance, far.clamp(max=BUCKETS - 1))


class Ours:
    """A call of one kind on these tensors, with its own output and gradients."""

    name = "ours without positions"  # as a peer

    def __init__(self, shim, kind, q, k, v, d_out=None):
        self.shim, (batch, heads, queries, size) = shim, q.shape
        sizes = (ctypes.c_int64 * 6)(batch, heads, k.shape[1], queries, k.shape[2], size)
        name = str(q.dtype).removeprefix("torch.")
        self.call = ctypes.c_void_p(shim.expect(
            shim.function("call")(kind.encode(), sizes, name.encode())))
        self.scale = ctypes.c_double(1 / math.sqrt((3 if kind == "deberta" else 1) * size))
        self.out = torch.empty_like(q)
        self.lse = torch.empty(q.shape[:3], device=q.device)
        self.tables = self.make_tables(kind, q)
        given = [q, k, v, self.out, self.lse, *self.tables]
        self.given, self.addresses = given, addresses(given)
        if d_out is not None:
            self.gradients = [torch.empty_like(x) if x is not None else None for x in given]
            self.gradients[3:5] = [d_out, None]
            self.gradient_addresses = addresses(self.gradients)
        self.stream = ctypes.c_void_p(
            torch.cuda.current_stream().cuda_stream if q.is_cuda else None)

    def make_tables(self, kind, q):
        rows = self.shim.function("table_rows")(self.call)
        heads = self.shim.function("table_heads")(self.call)
        made = dict.fromkeys(ALL_TABLES)
        for name in TABLES.get(kind, []):
            columns = 1 if name == "bias" else q.shape[-1]
            made[name] = torch.randn(heads, rows, columns, device=q.device)
        if kind == "alibi":
            made["bias"] = -(slopes(heads, q.device)[:, None, None] *
                             distances(rows, q.device)[:, None]).contiguous()
        return list(made.values())

    def forward(self):
        self.shim.expect(self.shim.function("forward")(self.call, self.addresses, self.scale,
                                                       self.stream))

    def backward(self):
        self.shim.expect(self.shim.function("backward")(
            self.call, self.addresses, self.gradient_addresses, self.scale, self.stream))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.shim.function("free")(self.call)


class Peer:
    """A peer's call: a function of q, k and v, and the tensors beside these that are trained.
    Without d_out it has a forward pass only."""

    def __init__(self, name, call, q, k, v, d_out=None, trained=()):
        self.name, self.call, self.d_out = name, call, d_out
        self.leaves = [x.detach().requires_grad_(d_out is not None) for x in (q, k, v)]
        self.trained = list(trained)
        self.out = self.gradients = None

    def forward(self):
        with torch.set_grad_enabled(self.d_out is not None):
            self.out = self.call(*self.leaves)

    def backward(self):
        """Differentiates the last forward pass, any number of times."""
        self.gradients = torch.autograd.grad(self.out, [*self.leaves, *self.trained], self.d_out,
                                             retain_graph=True)


def flash(q, k, v, causal=True):
    """FlashAttention-2, by PyTorch."""
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        return functional.scaled_dot_product_attention(q, k, v, is_causal=causal)


def flash_decoding(q, k, v):
    """flash() of one query, with the query heads of a key head as rows."""
    batch, key_heads, _, size = k.shape
    return flash(q.view(batch, key_heads, -1, size), k, v, causal=False).reshape(q.shape)


def rotated_flash(length, size, device, compiled):
    """flash() of rotated queries and keys; halves are swapped as in Hugging Face's models."""
    frequencies = 10000 ** (-torch.arange(0, size, 2, dtype=torch.float64, device=device) / size)
    phases = torch.arange(length, dtype=torch.float64, device=device)[:, None] * frequencies
    cos, sin = (torch.cat([f(phases)] * 2, -1).float() for f in (torch.cos, torch.sin))

    def rotate(x):
        first, second = x.chunk(2, -1)
        return (x * cos + torch.cat([-second, first], -1) * sin).to(x.dtype)

    rotation = torch.compile(rotate, dynamic=False) if compiled else rotate
    return lambda q, k, v: flash(rotation(q), rotation(k), v)


def flex(kind, ours, length, heads, device):
    """(call, trained tensors) of flex_attention with the bias of `ours`; compiled on GPUs."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    mask = create_block_mask(lambda b, h, i, j: i >= j, None, None, length, length, device=device)
    trained = []
    if kind == "alibi":
        slope = slopes(heads, device)

        def modify(score, b, h, i, j):
            return score - slope[h] * (i - j)
    else:
        bias = ours.tables[0][..., 0].clone().requires_grad_()
        bucket = buckets(torch.arange(length, device=device))
        trained = [bias]

        def modify(score, b, h, i, j):
            return score + bias[h, bucket[(i - j).clamp(min=0)]]

    compiled = device == "cuda"
    attention = torch.compile(flex_attention, dynamic=False) if compiled else flex_attention
    return lambda q, k, v: attention(q, k, v, score_mod=modify, block_mask=mask), trained


def flash4():
    """(call, version) of flash-attn 4, or None where it is not installed."""
    try:
        from flash_attn.cute import flash_attn_func
        version = importlib.metadata.version("flash-attn-4")
    except ImportError:
        return None

    def call(q, k, v):
        out = flash_attn_func(*(x.transpose(1, 2) for x in (q, k, v)), causal=True)
        return (out[0] if isinstance(out, tuple) else out).transpose(1, 2)

    return call, version
