"""Sextant: position encodings as fused, differentiable attention.

``attention(q, k, v, method="alibi")`` computes attention with one of Sextant's position encodings.
``method(name)`` is an encoding with its parameters as an ``nn.Module``, ``Encoding`` the base class
of encodings of one's own. ``Cache`` keeps the keys and values of growing sequences for decoding.
``tables`` computes the constants of the encodings (slopes, buckets, sinusoids, rotary frequencies).
``ring_attention`` is attention to a sequence that is divided among processes. ``doctor(model)``
compares a live model with its configuration. ``Error`` is the base of the errors of the package.
The operators are ``torch.ops.sextant``.

``import sextant`` imports no torch. The first use of one of these names does, and loads the library
for that torch; ``load()`` does so at once.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from sextant._errors import Error
from sextant._library import load
from sextant._owner import refuse_clash
from sextant._version import __version__

if TYPE_CHECKING:
    from sextant import tables
    from sextant._attention import attention, methods
    from sextant._call import CallArguments as CallArguments
    from sextant._call import Lengths as Lengths
    from sextant._method import Method, method
    from sextant._ring import Shards as Shards
    from sextant._ring import ring_attention, ring_shard, ring_unshard
    from sextant._rotate import rotate
    from sextant.cache import Cache
    from sextant.doctor import doctor
    from sextant.encoding import Encoding

refuse_clash()

# The module of each name. The modules of functions have other names than these: an imported
# submodule is an attribute of its package and would hide the function.
_MODULES = {
    "Cache": "cache",
    "Encoding": "encoding",
    "Method": "_method",
    "attention": "_attention",
    "doctor": "doctor",
    "method": "_method",
    "methods": "_attention",
    "ring_attention": "_ring",
    "ring_shard": "_ring",
    "ring_unshard": "_ring",
    "rotate": "_rotate",
    "tables": "tables",
}

__all__ = ["Cache", "Encoding", "Error", "Method", "__version__", "attention", "doctor", "load",
           "method", "methods", "ring_attention", "ring_shard", "ring_unshard", "rotate", "tables"]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'sextant' has no attribute '{name}'")
    if name != "doctor":  # which needs no library of operators
        load()
    module = importlib.import_module(f"sextant.{_MODULES[name]}")
    globals()[name] = module if name == _MODULES[name] else getattr(module, name)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(_MODULES))
