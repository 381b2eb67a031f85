#!/usr/bin/env python3
"""Stands in for the CUDA libraries that the torch of this interpreter is linked to and that are
absent.

    cuda_stand_ins.py                    writes the libraries into torch/lib and prints their names
    cuda_stand_ins.py --forget-packages  removes the CUDA packages from the metadata of torch

A CUDA build of torch cannot be imported without CUDA's libraries, even for work on the CPU. The
script writes a small shared library for each of them: every function returns 100
(cudaErrorNoDevice), so torch finds no device. It reads the names of libraries, symbols and symbol
versions from the ELF files of torch (readelf, nm), and so works with other versions of torch. It
writes no stand-in for a library that the loader finds in a system folder. A library elsewhere, such
as a CUDA toolkit under /usr/local, counts as absent, because it may have another version than torch
needs. A build without CUDA gets no stand-in. scripts/torch_env.sh calls this script.
"""

from __future__ import annotations

import argparse
import collections
import ctypes
import importlib.metadata
import importlib.util
import pathlib
import re
import subprocess
import tempfile

CUDA_PACKAGES = re.compile(r"Requires-Dist: (nvidia-|cuda-|triton\b)", re.IGNORECASE)

# Functions whose result the callers use without a check for errors.
BODIES = {
    "cudaGetErrorName": 'const char* cudaGetErrorName(int e) { return "cudaErrorNoDevice"; }',
    "cudaGetErrorString": 'const char* cudaGetErrorString(int e) { return "no CUDA device"; }',
    "cudaGetLastError": "int cudaGetLastError(void) { return 0; }",
    "cudaPeekAtLastError": "int cudaPeekAtLastError(void) { return 0; }",
    "cudaStreamIsCapturing":
        "int cudaStreamIsCapturing(void* stream, int* status) { *status = 0; return 0; }",
}
NO_DEVICE = 100

Symbols = dict[str, set[str]]  # symbol version (empty: none) -> names


def output_of(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def torch_folder() -> pathlib.Path:
    found = importlib.util.find_spec("torch")
    if found is None or not found.submodule_search_locations:
        raise SystemExit("cuda_stand_ins.py: this interpreter has no torch")
    return pathlib.Path(found.submodule_search_locations[0])


def needed_by(library: pathlib.Path) -> list[str]:
    return re.findall(r"\(NEEDED\).*\[(.+)\]", output_of("readelf", "-dW", str(library)))


class LinkMap(ctypes.Structure):
    """The first fields of glibc's struct link_map, to which the handle of a library points."""

    _fields_ = [("address", ctypes.c_void_p), ("name", ctypes.c_char_p)]


def system_folders() -> set[pathlib.Path]:
    """The folders that this interpreter's own libraries were loaded from."""
    maps = pathlib.Path("/proc/self/maps").read_text(encoding="utf-8")
    return {
        pathlib.Path(path).parent for path in re.findall(r" (/\S+\.so\S*)$", maps, re.MULTILINE)
    }


def find_library(name: str, folders: set[pathlib.Path]) -> ctypes.CDLL | None:
    """The library, or None if the loader does not find it in one of the folders."""
    try:
        library = ctypes.CDLL(name)
    except OSError:
        return None
    handle = library._handle  # pylint: disable=protected-access
    path = ctypes.cast(handle, ctypes.POINTER(LinkMap)).contents.name
    return library if pathlib.Path(path.decode()).resolve().parent in folders else None


def versions_from(library: pathlib.Path) -> dict[str, set[str]]:
    """Library name -> the symbol versions that `library` needs from it."""
    found: dict[str, set[str]] = collections.defaultdict(set)
    name = ""
    for line in output_of("readelf", "-VW", str(library)).splitlines():
        if file := re.search(r"File: (\S+)", line):
            name = file[1]
        elif (version := re.search(r"Name: (\S+) +Flags", line)) and name:
            found[name].add(version[1])
    return found


def symbols_of(library: pathlib.Path, which: str) -> list[tuple[str, str]]:
    """(name, version) of the dynamic symbols of a library, without weak undefined ones, which the
    loader does not need. which: an option of nm."""
    found = []
    for line in output_of("nm", "-D", which, str(library)).splitlines():
        *_, kind, symbol = line.split()
        if kind not in "wv":
            name, _, version = symbol.partition("@")
            found.append((name, version.lstrip("@")))
    return found


def wanted_symbols(libraries: list[pathlib.Path], absent: set[str],
                   present: list[ctypes.CDLL]) -> dict[str, Symbols]:
    """Absent library -> the symbols that torch's own files need from it."""
    defined = {name for file in libraries for name, _ in symbols_of(file, "--defined-only")}
    wanted: dict[str, Symbols] = {name: collections.defaultdict(set) for name in sorted(absent)}
    for file in libraries:
        owner = {version: name for name, versions in versions_from(file).items()
                 for version in versions}
        # A symbol without a version may come from any library that the file needs.
        own = next((name for name in needed_by(file) if name in absent), min(absent))
        for name, version in symbols_of(file, "--undefined-only"):
            if version:
                if owner.get(version) in absent:
                    wanted[owner[version]][version].add(name)
            elif name not in defined and not any(hasattr(library, name) for library in present):
                wanted[own][""].add(name)
    return wanted


def write_library(path: pathlib.Path, symbols: Symbols) -> None:
    names = sorted(set().union(*symbols.values()))
    code = [BODIES.get(name, f"int {name}(void) {{ return {NO_DEVICE}; }}") for name in names]
    versions = [f"{version} {{ global: {' '.join(f'{name};' for name in sorted(named))} }};"
                for version, named in sorted(symbols.items()) if version]
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "stand_in.c")
        source.write_text("\n".join(code) + "\n")
        options = ["-shared", "-fPIC", "-w", "-fno-builtin", f"-Wl,-soname,{path.name}"]
        if versions:
            script = pathlib.Path(folder, "versions")
            script.write_text("\n".join(versions) + "\n")
            options.append(f"-Wl,--version-script={script}")
        unfinished = path.with_name(path.name + ".new")
        subprocess.run(["gcc", *options, "-o", str(unfinished), str(source)], check=True)
        unfinished.rename(path)


def stand_in(folder: pathlib.Path) -> dict[str, int]:
    """Writes the absent libraries. Returns the number of functions of each."""
    libraries = [file for file in sorted(folder.rglob("*.so*")) if file.is_file()]
    own = {file.name for file in libraries}
    absent, present, folders = set(), [ctypes.CDLL(None)], system_folders()
    for name in sorted({name for file in libraries for name in needed_by(file)} - own):
        library = find_library(name, folders)
        absent |= set() if library else {name}
        present += [library] if library else []
    if not absent:
        return {}
    wanted = wanted_symbols(libraries, absent, present)
    for name, symbols in wanted.items():
        write_library(folder / "lib" / name, symbols)
    return {name: len(set().union(*symbols.values())) for name, symbols in wanted.items()}


def forget_packages() -> int:
    """Removes the CUDA packages from the metadata of torch. Returns their number."""
    files = importlib.metadata.files("torch") or []
    metadata = next(file.locate() for file in files if file.name == "METADATA")
    lines = pathlib.Path(metadata).read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line for line in lines if not CUDA_PACKAGES.match(line)]
    unfinished = pathlib.Path(f"{metadata}.new")
    unfinished.write_text("".join(kept), encoding="utf-8")
    unfinished.rename(metadata)
    return len(lines) - len(kept)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--forget-packages", action="store_true",
                         help="take CUDA's packages out of the metadata of torch")
    if options.parse_args().forget_packages:
        print(f"torch: {forget_packages()} packages of CUDA left out")
        return
    written = stand_in(torch_folder())
    for name, count in written.items():
        print(f"{name}: a stand-in with {count} functions")


if __name__ == "__main__":
    main()
