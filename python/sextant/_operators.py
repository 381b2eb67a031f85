"""The import of this module registers ``torch.ops.sextant``, once."""

from sextant._library import load

load()

from sextant import _fakes  # noqa: E402  (it needs the operators)

_fakes.register()
