"""Sextant: position encodings as fused, differentiable attention.

``attention(q, k, v, method="alibi")`` attends with one of Sextant's position encodings, ``method(name)``
is an encoding with its parameters as an ``nn.Module``, and ``tables`` holds the numbers encodings are
made of (slopes, buckets, sinusoids, spectra). The operators themselves are ``torch.ops.sextant``.
"""

from sextant import tables
from sextant._library import load
from sextant.attention import attention, methods
from sextant.method import Method, method
from sextant.turn import turn

load()

__all__ = ["Method", "attention", "load", "method", "methods", "tables", "turn"]
