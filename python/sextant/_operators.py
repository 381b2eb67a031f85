"""The import of this module registers ``torch.ops.sextant``, once."""

from sextant._library import load

load()
