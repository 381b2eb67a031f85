"""The console script ``sextant``: runs the program that the wheel has beside this package."""

import os
import sys
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_PLACES = (_PACKAGE / "bin" / "sextant",
           _PACKAGE.parent.parent / "build" / "release" / "bin" / "sextant")


def main() -> None:
    """Replaces this process by the program, which needs neither torch nor Python."""
    # `sextant doctor` starts Python for models of transformers: the one that has this package.
    os.environ.setdefault("SEXTANT_PYTHON", sys.executable)
    try:
        from sextant._owner import refuse_clash  # pylint: disable=import-outside-toplevel

        refuse_clash()
    except ImportError as error:
        sys.exit(str(error))
    for program in _PLACES:
        if program.is_file():
            os.execv(program, ["sextant", *sys.argv[1:]])
    sys.exit(
        f"sextant: expected the program {_PLACES[0]}, but this installation was built from source, "
        "which builds the library for torch only. The wheel has the program; in a clone ./run "
        "builds and runs it."
    )


if __name__ == "__main__":
    main()
