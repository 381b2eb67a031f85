"""The reading of a configuration: the answer of ``sextant explain --json``, as values.

This is the only module that knows how the answer is obtained. In this order:

1. the torch-free library that SEXTANT_CONFIG_LIBRARY names or the wheel has beside this package
   (``lib/libsextant_config.so``);
2. the command that SEXTANT_COMMAND names, the wheel's ``bin/sextant``, that of a source tree after
   its build, or ``sextant`` on PATH.

The library's functions are those of ``sextant/sextant_config.h``.
"""

from __future__ import annotations

import ctypes
import functools
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field
from typing import Any

from .._errors import Error
from .._files import MOST_JSON, read_bytes
from .._write_file import write_file

_PACKAGE = pathlib.Path(__file__).resolve().parent.parent
_TREE = _PACKAGE.parent.parent
_TIMEOUT = 60  # seconds


class ReadingError(Error):
    """explain refused the configuration, or there is no explain here."""


@dataclass(frozen=True)
class Group:
    """Layers that are alike, as explain describes them: an entry of ``settings``."""

    layers: str  # kind of layer; "": there is one kind
    layer_numbers: tuple[int, ...] | None  # None: all, or not known
    rotates: bool
    instead: str | None
    pairing: str | None
    rotated_channels: tuple[int, int] | None  # first and last
    head_dim: int | None
    base: float | None
    method: str
    plain: tuple[float, ...]  # radians a position, as trained
    frequencies: tuple[float, ...]  # radians a position, in use
    attention_factor: float
    score_factor: float
    softmax_scale: float | None  # of rotated channels, with both factors
    softmax_scale_of_unturned: float | None
    window: int | None
    chunk: int | None
    query_law: str | None
    rope_type: str | None = None
    factor: float = 1.0
    trained_length: int | None = None
    target_length: int | None = None
    parameters: dict[str, Any] = field(default_factory=dict, compare=False, hash=False)

    @staticmethod
    def of(entry: dict[str, Any]) -> Group:
        numbers, channels = entry["layer_numbers"], entry["rotated_channels"]
        pairs = entry["pairs"]
        return Group(
            layers=entry["layers"], layer_numbers=tuple(numbers) if numbers else None,
            rotates=entry["rotates"], instead=entry["instead"], pairing=entry["pairing"],
            rotated_channels=(channels[0], channels[1]) if channels else None,
            head_dim=entry["head_dim"], base=entry["base"], method=entry["method"],
            plain=tuple(pair["frequency"] for pair in pairs),
            frequencies=tuple(pair["stretched"] for pair in pairs),
            attention_factor=entry["attention_factor"], score_factor=entry["score_factor"],
            softmax_scale=entry["softmax_scale"],
            softmax_scale_of_unturned=entry["softmax_scale_of_unturned"],
            window=entry["window"], chunk=entry["chunk"], query_law=entry["query_law"],
            rope_type=entry["rope_type"], factor=entry["factor"],
            trained_length=entry["trained_length"], target_length=entry["target_length"],
            parameters=entry["parameters"])


@dataclass(frozen=True)
class Reading:
    """A configuration as explain understands it."""

    dialect: str
    groups: tuple[Group, ...]
    warnings: tuple[str, ...]
    doubts: tuple[str, ...]  # warnings about values without the effect that they promise

    @staticmethod
    def of(answer: dict[str, Any]) -> Reading:
        if answer.get("schema") != 2:
            raise ReadingError(f"explain: schema: expected 2, but got {answer.get('schema')}")
        entries = answer["settings"]
        warnings, doubts = (dict.fromkeys(w for entry in entries for w in entry[key])
                            for key in ("warnings", "doubts"))
        return Reading(answer["dialect"], tuple(Group.of(e) for e in entries), tuple(warnings),
                       tuple(doubts))

    def group_of(self, layer: int | None, kind: str | None) -> Group | None:
        """The group of a layer. kind: its name in ``layer_types``, if the configuration has it."""
        own = next((g for g in self.groups if g.layer_numbers and layer in g.layer_numbers), None)
        rest = [g for g in self.groups if g.layer_numbers is None]
        if own or len(rest) == 1:
            return own or rest[0]
        return next((g for g in rest if g.layers and g.layers == kind), None)

    @property
    def depends_on_length(self) -> bool:
        """Whether frequencies depend on the length of the sequence."""
        return any(g.rope_type in ("dynamic", "longrope") for g in self.groups)


def _library_path() -> pathlib.Path | None:
    if "SEXTANT_CONFIG_LIBRARY" in os.environ:
        return pathlib.Path(os.environ["SEXTANT_CONFIG_LIBRARY"])
    path = _PACKAGE / "lib" / "libsextant_config.so"
    return path if path.is_file() else None


@functools.cache
def _library() -> Any:
    """The library, or None. Raises ReadingError if it is none of Sextant's."""
    path = _library_path()
    if path is None:
        return None
    try:
        library = ctypes.CDLL(str(path))
        explain, free, error = (library.sextant_explain_json, library.sextant_free,
                                library.sextant_error)
    except (OSError, AttributeError) as problem:
        raise ReadingError(f"{path}: expected the library sextant_config, but {problem}"
                           ) from problem
    explain.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int64,
                        ctypes.POINTER(ctypes.c_void_p)]
    explain.restype = ctypes.c_int
    free.argtypes, free.restype = [ctypes.c_void_p], None
    error.argtypes, error.restype = [], ctypes.c_char_p
    return library


def command() -> str:
    """The path of the command ``sextant``. Raises ReadingError if there is none."""
    named = os.environ.get("SEXTANT_COMMAND")
    places = [named] if named else [str(_PACKAGE / "bin/sextant"),
                                    str(_TREE / "build/release/bin/sextant"),
                                    shutil.which("sextant")]
    for place in places:
        if place and os.access(place, os.X_OK) and pathlib.Path(place).is_file():
            return place
    raise ReadingError(
        "expected the command sextant at one of " + ", ".join(p for p in places if p) +
        ", but there is none. The wheel has it; in a source tree ./run explain builds it; "
        "SEXTANT_COMMAND names another place")


def _from_library(library: Any, path: str, length: int) -> str:
    try:
        content = read_bytes(path, MOST_JSON)
    except OSError as problem:
        raise ReadingError(f"{path}: {problem.strerror}") from problem
    text = ctypes.c_void_p()
    status = library.sextant_explain_json(content, len(content), length, ctypes.byref(text))
    if status != 0:
        raise ReadingError(library.sextant_error().decode())
    try:
        return ctypes.string_at(text.value).decode()
    finally:
        library.sextant_free(text)


def _from_command(path: str, length: int) -> str:
    line = [command(), "explain", path, "--json"]
    if length:
        line += ["--length", str(length)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=_TIMEOUT, check=False)
    if done.returncode != 0:
        raise ReadingError(done.stderr.strip() or f"{line[0]} ended with {done.returncode}")
    return done.stdout


def read(path: str, length: int = 0) -> Reading:
    """Reads a configuration. path: a config.json; length: the tokens of a sequence,
    on which dynamic stretches depend; 0: not given. Raises ReadingError."""
    library = _library()
    text = _from_library(library, path, length) if library else _from_command(path, length)
    return Reading.of(json.loads(text))


def read_fields(fields: dict[str, Any], length: int = 0) -> Reading:
    """Reads the fields of a config.json."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "config.json")
        write_file(path, json.dumps(fields, default=str))
        try:
            return read(str(path), length)
        except ReadingError as error:
            raise ReadingError(str(error).replace(f"{folder}/", "")) from error
