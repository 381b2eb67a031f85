"""Does a library compute what the official implementations compute?

``python -m sextant.conformance PATH...`` runs every golden case it finds in the folders or files
given (.npz, each with a JSON text ``meta`` that names its method) and prints a table. A case is run
in float64 and in float32, forward and backward. A case that no function here knows is listed as not
covered; it never counts as passed.

Another library is put under the same test by ``--library MODULE``: a module with the functions
``attention``, ``method`` and ``tables`` of the package ``sextant``, or those of them it has; a case
that needs a function the module lacks is listed as not covered.
"""

import sextant.conformance.cases  # noqa: F401  (registers what is known)
from sextant.conformance.case import Case, case, handler_of
from sextant.conformance.runner import Result, run_case, run_paths

__all__ = ["Case", "Result", "case", "handler_of", "run_case", "run_paths"]
