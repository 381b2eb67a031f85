"""Refuses an installation that shares its folder with another distribution.

The package index has a tool named ``sextant`` whose import name is ``sextant`` as well. pip
installs both into one folder and says nothing: files of the same name are those of the later one.
"""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

DISTRIBUTION = "sextant-attention"


def refuse_clash(package: Path = Path(__file__).resolve().parent) -> None:
    """Raises ImportError that names the other distribution. package: the folder of the package.

    Only modules that are not of this distribution are looked up, so the check costs less than a
    millisecond. A source tree, and a module that no distribution owns, are accepted.
    """
    record = next(package.parent.glob("sextant_attention-*.dist-info/RECORD"), None)
    if record is None:
        return
    own = {line.split("/")[1].split(",")[0] for line in record.read_text().splitlines()
           if line.startswith(f"{package.name}/")}
    for entry in sorted(package.iterdir()):
        is_module = entry.suffix in (".py", ".so") or (entry / "__init__.py").is_file()
        if not is_module or entry.name in own:
            continue
        other = _owner_of(f"{package.name}/{entry.name}", package.parent)
        if other is not None:
            raise ImportError(
                f"sextant: {package} is the folder of two distributions, {DISTRIBUTION} and "
                f"{other}, and {entry.name} is of the latter. Use one environment for each, or: "
                f"pip uninstall {other}, and install the wheel of {DISTRIBUTION} again"
            )


def _owner_of(path: str, folder: Path) -> str | None:
    for distribution in importlib.metadata.distributions(path=[str(folder)]):
        files = (str(file) for file in distribution.files or [])
        if any(file == path or file.startswith(f"{path}/") for file in files):
            return str(distribution.metadata["Name"])
    return None
