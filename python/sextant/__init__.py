"""Sextant: position encodings as fused, differentiable attention.

``attention(q, k, v, method="alibi")`` computes attention with one of Sextant's position encodings.
``method(name)`` is an encoding with its parameters as an ``nn.Module``. ``Cache`` keeps the keys
and values of growing sequences for decoding. ``tables`` computes the constants of the encodings
(slopes, buckets, sinusoids, rotary frequencies). The operators are ``torch.ops.sextant``.
"""

from sextant import tables
from sextant._library import load
from sextant._version import __version__
from sextant.attention import attention, methods
from sextant.cache import Cache
from sextant.method import Method, method
from sextant.rotate import rotate

load()

__all__ = ["Cache", "Method", "__version__", "attention", "load", "method", "methods", "tables",
           "rotate"]
