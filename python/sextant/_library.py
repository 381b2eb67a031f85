"""Finds the library that was built for the installed torch, and loads it.

A library works with one minor version of torch only. The wheel has several, one of which is chosen
by ``torch.__version__``; an installation from source has one. A library for another torch would
load a second libtorch into the process, or call functions that differ, and end in a segmentation
fault. The library's file therefore says which torch it was built for, and is read before it is
loaded.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

# libgomp workers that spin after each parallel region starve BLAS's own threads: a training step is
# then 3 times slower. libgomp reads the variable when it loads, so it is set before torch is
# imported.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

_PACKAGE = Path(__file__).resolve().parent
_TREE = _PACKAGE.parent.parent  # of the sources, if the package is used there
_FROM_SOURCE = "pip install . in a clone, or pip install FILE with the sdist of a release"

_state: dict[str, Path | None] = {}  # "path": the library that was loaded


def load() -> Path | None:
    """Registers the operators ``torch.ops.sextant`` and returns the path of the library, a
    ``Path``; None if something other than Python registered them before.

    The first use of a function of the package calls it. A file named by the environment variable
    SEXTANT_LIBRARY has precedence over the installed libraries and over that of a source tree.

    Raises ImportError, before any library is loaded, if there is no torch or no library for it.
    """
    if "path" not in _state:
        torch = _import_torch()
        # A second library with the same operators would abort the process.
        if hasattr(torch.ops.sextant, "method_attend"):
            known = (Path(path) for path in torch.ops.loaded_libraries)
            path = next((path for path in known if "sextant" in path.name), None)
        else:
            path = _library_for(torch.__version__)
            _refuse_foreign(path, torch.__version__)
            _load(torch, path)
        _state["path"] = path
    return _state["path"]


def _import_torch() -> Any:
    try:
        import torch  # pylint: disable=import-outside-toplevel
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ImportError(
            "sextant: expected torch, but this Python has none: pip install torch. The command "
            "`sextant` needs none."
        ) from error
    return torch


def _minor(version: str) -> str:
    """'2.11' of '2.11.0+cu130'."""
    found = re.match(r"\d+\.\d+", version)
    return found[0] if found else version


def _installed() -> dict[str, Path]:
    """The installed libraries, {minor version of torch: path}."""
    found = {}
    for path in (_PACKAGE / "lib").glob("libsextant_torch-*.so"):
        found[path.name.removeprefix("libsextant_torch-").removesuffix(".so")] = path
    return found


def _library_for(version: str) -> Path:
    if "SEXTANT_LIBRARY" in os.environ:
        path = Path(os.environ["SEXTANT_LIBRARY"])
        if not path.is_file():
            raise ImportError(f"SEXTANT_LIBRARY: expected a library, but there is no file {path}")
        return path
    installed = _installed()
    if _minor(version) in installed:
        return installed[_minor(version)]
    if installed:
        known = sorted(installed, key=lambda minor: [int(part) for part in minor.split(".")])
        raise ImportError(
            f"sextant: expected a library for torch {version}, but {_PACKAGE / 'lib'} has those "
            f"for torch {', '.join(known)} only. Install one of these torches, or build a library "
            f"for this one: {_FROM_SOURCE}"
        )
    path = _TREE / "build" / "release" / "lib" / "libsextant_torch.so"
    # scripts/torch_library.sh builds others, one for each torch.
    others = sorted((_TREE / "build").glob("with-torch-*/lib/libsextant_torch.so"))
    built = [path, *others] if path.is_file() else others
    for one in built:
        if _minor(_built_for(one.read_bytes()) or "") == _minor(version):
            return one
    if built:
        return built[0]  # refused with the reason
    raise ImportError(
        f"sextant: expected a library for torch {version} in {_PACKAGE / 'lib'}, or in a source "
        f"tree at {path}, but found none. Build one with ./check or pip install . in a clone, or "
        "set SEXTANT_LIBRARY to its path."
    )


def _built_for(content: bytes) -> str | None:
    """The version of torch that sextant/torch/built_for.cc writes into a library; or None."""
    found = re.search(rb"sextant-libtorch (\d+\.\d+[.\d]*)", content)
    return found[1].decode() if found else None


def _refuse_foreign(path: Path, version: str) -> None:
    """Reads the file, which has the version of its torch and, from the linker, the names of the
    libraries that it needs."""
    content = path.read_bytes()
    built_for = _built_for(content)
    if built_for is None:
        raise ImportError(
            f"sextant: {path}: expected the version of torch that it was built for, but it has "
            "none: it is no library of this version of Sextant. Build it again."
        )
    if _minor(built_for) != _minor(version):
        raise ImportError(
            f"sextant: {path} was built for torch {built_for}, but this Python has torch {version}."
            " Build it again with this Python (pip install . in a clone), or install that torch."
        )
    # Debian's libtorch has the version in the names of its libraries, PyPI's has not.
    for name in sorted(set(re.findall(rb"(?<=\0)lib(?:torch_cpu|c10)\.so[.\d]*(?=\0)", content))):
        if not _is_loaded(name.decode()):
            raise ImportError(
                f"sextant: {path} needs {name.decode()}, which is not the library of this Python's "
                f"torch {version}: it was built for another build of it, such as Debian's or "
                "PyPI's. Build it again with this Python (pip install . in a clone)."
            )


def _is_loaded(name: str) -> bool:
    """Whether the process has loaded a library of this name. The file of libtorch_cpu.so.1.13 is
    libtorch_cpu.so.1.13.0; it is not libtorch_cpu.so, even if a link of this name leads to it."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        loaded = {line.rstrip("\n").rpartition("/")[2] for line in maps if "/" in line}
    if name.endswith(".so"):
        return name in loaded
    return any(file == name or file.startswith(f"{name}.") for file in loaded)


def _load(torch: Any, path: Path) -> None:
    try:
        torch.ops.load_library(str(path))
    except OSError as error:
        raise ImportError(
            f"sextant: {path} does not fit torch {torch.__version__} "
            f"({error.__cause__ or error}). Build it again: "
            f"{_FROM_SOURCE}"
        ) from error
