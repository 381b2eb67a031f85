"""Makes sextant.doctor importable without the library for torch, which it does not need."""

import pathlib
import sys
import types

ROOT = pathlib.Path(__file__).resolve().parents[3]

if "sextant" not in sys.modules:
    bare = types.ModuleType("sextant")
    bare.__path__ = [str(ROOT / "python/sextant")]
    sys.modules["sextant"] = bare
