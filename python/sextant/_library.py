"""Loads libsextant_torch.so, which registers ``torch.ops.sextant``."""

import os
from pathlib import Path

# libgomp workers that spin after each parallel region starve BLAS's own threads: a training step is
# then 3 times slower. libgomp reads the variable when it loads, so it is set before torch is
# imported.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import torch  # noqa: E402

_NAME = "libsextant_torch.so"


def _candidates():
    if "SEXTANT_LIBRARY" in os.environ:
        yield Path(os.environ["SEXTANT_LIBRARY"])
        return
    here = Path(__file__).resolve().parent
    yield here / _NAME  # the package as pip installed it
    yield here.parent.parent / "build" / "release" / "lib" / _NAME  # a source tree after its build


def load():
    """Registers the operators and returns the path of the library, a ``Path``.

    ``import sextant`` calls it once. The path in the environment variable SEXTANT_LIBRARY has
    precedence over the installed library and over that of a source tree.

    Raises ImportError if there is no library, or if it was built against another torch.
    """
    tried = list(_candidates())
    for path in tried:
        if path.is_file():
            try:
                torch.ops.load_library(str(path))
            except OSError as error:
                raise ImportError(
                    f"sextant: {path} does not fit torch {torch.__version__}, as it does if it "
                    f"was built for another one ({error}). Build it again: python3 -m pip install ."
                ) from error
            return path
    raise ImportError(
        f"sextant: expected {_NAME} at one of {', '.join(map(str, tried))}, but found none. "
        "Build it with ./check or pip install ., or set SEXTANT_LIBRARY to its path."
    )
