"""``python -m sextant.doctor`` is the command ``sextant doctor``, whose models this Python runs."""

import os
import sys

from .._printable import print_error
from .reading import ReadingError, command


def main() -> int:
    """Replaces this process by the command. Returns 2 if there is none."""
    os.environ["SEXTANT_PYTHON"] = sys.executable
    try:
        program = command()
    except ReadingError as error:
        print_error(error, "sextant doctor")
        return 2
    os.execv(program, ["sextant", "doctor", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
