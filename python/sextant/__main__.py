"""``python -m sextant`` is the command ``sextant``."""

from sextant._command import main

main()
