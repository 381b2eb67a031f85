"""The version of CMakeLists.txt in a source tree, otherwise of the installed package."""

import importlib.metadata
import pathlib
import re

from sextant._owner import DISTRIBUTION


def _version() -> str:
    cmake = pathlib.Path(__file__).resolve().parent.parent.parent / "CMakeLists.txt"
    if cmake.is_file():
        found = re.search(r"^project\(sextant VERSION ([0-9.]+)", cmake.read_text(), re.MULTILINE)
        if found:
            return found[1]
    try:
        return importlib.metadata.version(DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError:  # the package was copied without its metadata
        return "unknown"


__version__ = _version()
