"""Loads libsextant_torch.so, which registers ``torch.ops.sextant``."""

import os
from pathlib import Path

# Workers of libgomp that spin after each region starve BLAS's own threads: a training step is then
# 3 times slower. libgomp reads this when it loads, so it must be said before torch is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import torch  # noqa: E402

_NAME = "libsextant_torch.so"


def _candidates():
    if "SEXTANT_LIBRARY" in os.environ:
        yield Path(os.environ["SEXTANT_LIBRARY"])
        return
    here = Path(__file__).resolve().parent
    yield here / _NAME  # installed by pip
    yield here.parent.parent / "build" / "release" / "lib" / _NAME  # a source tree, built


def load():
    """Registers the operators. Returns the library's path; called once by ``import sextant``."""
    tried = list(_candidates())
    for path in tried:
        if path.is_file():
            try:
                torch.ops.load_library(str(path))
            except OSError as error:
                raise ImportError(
                    f"sextant: {path} does not fit torch {torch.__version__}, as it does if it was built "
                    f"for another one ({error}). Build it again: python3 -m pip install ."
                ) from error
            return path
    raise ImportError(
        f"sextant: expected {_NAME} at one of {', '.join(map(str, tried))}, but found none. "
        "Build it with ./check or pip install ., or set SEXTANT_LIBRARY to its path."
    )
