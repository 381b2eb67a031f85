"""A golden case in one precision: its arrays as tensors, and the comparisons with them."""

import collections
import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import numpy
import torch

from sextant._call import options_known
from sextant._errors import Error

# The allowed error of a float64 result, relative to the largest magnitude of the golden array (at
# least 1): golden arrays are accurate to 1e-14, and sums are reordered. rounding.py computes the
# tolerances of float32.
FLOAT64_TOLERANCE = 1e-11

_DTYPES = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "U64": "<u8", "U8": "u1", "BOOL": "?"}

_handlers: list[Any] = []


class NotCovered(Error):
    """The library under test lacks a function of the case, or the handler does not support this
    kind of case."""


def case(pattern, *arrays):
    """Registers a function for cases whose ``meta["method"]`` matches the regular expression
    ``pattern`` from its start and that contain all ``arrays``. Later registrations have
    precedence."""

    def register(function):
        _handlers.insert(0, (re.compile(pattern, re.IGNORECASE), arrays, function))
        return function

    return register


def handler_of(meta, names):
    """The function for a case, or None if no pattern matches."""
    for pattern, arrays, function in _handlers:
        if pattern.match(meta.get("method", "")) and all(name in names for name in arrays):
            return function
    return None


@dataclasses.dataclass
class Comparison:
    what: str
    number: int  # index among the comparisons of this name
    error: float  # relative to the largest magnitude expected, at least 1
    tolerance: float

    @property
    def passed(self):
        return self.error <= self.tolerance  # a NaN fails

    @property
    def share(self):
        """The error as a fraction of the tolerance."""
        return self.error / self.tolerance if self.tolerance else float(self.error > 0)


def _read(path):
    """The arrays of a file, and its text `meta`."""
    if path.suffix == ".npz":
        with numpy.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        return arrays, str(arrays.pop("meta"))
    data = bytearray(path.read_bytes())  # writable arrays, which torch wants
    try:
        start = 8 + int.from_bytes(data[:8], "little")
        header = json.loads(data[8:start])
        meta = header.pop("__metadata__")["meta"]
        arrays = {}
        for name, one in header.items():
            first, last = one["data_offsets"]
            array = numpy.frombuffer(data[start + first : start + last], _DTYPES[one["dtype"]])
            arrays[name] = array.reshape(one["shape"])
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"conformance: {path}: expected safetensors with the text `meta`, but got {error!r}"
        ) from error
    return arrays, meta


class Case:
    """A golden case. allowed: the tolerance of each comparison without one of its own, by (what,
    number); None: the tolerance of float64."""

    def __init__(self, path, library, dtype, allowed=None):
        path = Path(path)
        self.arrays, meta = _read(path)
        self.name = path.stem
        self.meta = json.loads(meta)
        self.library = library
        self.dtype = dtype
        self.allowed = allowed
        self.comparisons = []
        self._counts = collections.Counter()
        self._leaves = {}

    def attention(self, q, k, v, method="none", **named):
        """``attention`` of the library, with options of the method among the keywords."""
        known = options_known(method)
        options = {name: named.pop(name) for name in list(named) if name in known}
        return self.library.attention(q, k, v, method=method, options=options, **named)

    def __contains__(self, name):
        return name in self.arrays

    def tensor(self, name):
        """The array as a tensor; floats are converted to the precision under test."""
        array = torch.from_numpy(numpy.array(self.arrays[name], order="C"))  # 0-d arrays stay 0-d
        return array.to(self.dtype) if array.is_floating_point() else array

    def leaf(self, name):
        """An input that requires gradients; its gradient is compared if the case contains one."""
        if name not in self._leaves:
            self._leaves[name] = self.tensor(name).requires_grad_()
        return self._leaves[name]

    def leaves(self, *names):
        return [self.leaf(name) for name in names]

    def expect(self, what, got, expected, tolerance=None):
        """Compares two arrays of the same shape. Infinite elements must be equal."""
        got = torch.as_tensor(got).detach().double()
        expected = torch.as_tensor(expected).detach().double()
        if got.shape != expected.shape:
            raise ValueError(
                f"{what}: expected shape {tuple(expected.shape)}, got {tuple(got.shape)}"
            )
        finite = torch.isfinite(expected)
        scale = max(1.0, expected[finite].abs().max().item() if finite.any() else 0.0)
        difference = torch.where(finite, got - torch.where(finite, expected, got), 0 * got)
        wrong = (~finite) & (got != expected)
        error = (
            float("inf") if wrong.any() else (difference.abs().max().item() if got.numel() else 0.0)
        )
        number = self._counts[what]
        self._counts[what] += 1
        if tolerance is None:
            tolerance = FLOAT64_TOLERANCE if self.allowed is None else self.allowed[what, number]
        self.comparisons.append(Comparison(what, number, error / scale, tolerance))

    def expect_out(self, out, upstream=None, name="out"):
        """Compares ``out``, and the gradients of sum(out * upstream) with respect to all leaves."""
        self.expect(name, out, self.arrays[name])
        if upstream is None:
            upstream = "gout" if "gout" in self.arrays else "g"
        if upstream in self.arrays:
            self.expect_gradients((out * self.tensor(upstream)).sum())

    def expect_gradients(self, loss):
        wanted = {}
        for name, leaf in self._leaves.items():
            name = name.removeprefix("param_")
            for key in (f"grad_{name}", f"d{name}", f"d_{name}"):
                if key in self.arrays:
                    wanted[key] = leaf
        if not wanted:
            return
        # The graph is retained for cases that differentiate several losses.
        grads = torch.autograd.grad(loss, list(wanted.values()), allow_unused=True,
                                    retain_graph=True)
        for (key, leaf), grad in zip(wanted.items(), grads):
            self.expect(key, torch.zeros_like(leaf) if grad is None else grad, self.arrays[key])
