"""The checks of scripts/check_literature.py, one function each."""
from literature_checks.common import Failed  # noqa: F401, first: it finds the package sextant

from literature_checks.absolute import *  # noqa: F401,F403
from literature_checks.relative import *  # noqa: F401,F403
from literature_checks.rotary import *  # noqa: F401,F403
