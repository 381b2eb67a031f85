"""Tests whether a library computes the results of the official implementations.

``python -m sextant.conformance [PATH...]`` runs every golden case in the given folders or files
(.safetensors or .npz, each with a JSON text ``meta`` that names its method), by default those of
the package, and prints a table. A case runs in float64 and in float32, forward and backward. A case
without a handler is listed as not covered; it never counts as passed. A folder without cases is an
error.

``--library MODULE`` tests another library: a module with some of the functions ``attention``,
``method`` and ``tables`` of the package ``sextant``. A case that needs a function which the module
lacks is listed as not covered.
"""

from sextant import _operators  # noqa: F401  (says what is missing if there is no torch)
import sextant.conformance.cases  # noqa: F401  (registers the handlers)
from sextant.conformance.case import Case, case, handler_of
from sextant.conformance.runner import Result, run_case, run_paths

__all__ = ["Case", "Result", "case", "handler_of", "run_case", "run_paths"]
