"""One golden case in one precision: its arrays as tensors, and the comparisons made with them."""

import collections
import dataclasses
import json
import re
from pathlib import Path

import numpy
import torch

# How far a float64 result may be from the golden one, relative to the largest magnitude of the
# array (at least 1): golden arrays are good to 1e-14 and sums are reordered. What float32 may,
# rounding.py tells.
FLOAT64_TOLERANCE = 1e-11

_handlers = []


class NotCovered(Exception):
    """The library under test lacks what the case needs, or the case is of a kind that its handler
    does not know."""


def case(pattern, *arrays):
    """Registers a function for cases whose meta's method matches the regular expression ``pattern``
    from its start and which hold ``arrays``. Later registrations are asked first."""

    def register(function):
        _handlers.insert(0, (re.compile(pattern, re.IGNORECASE), arrays, function))
        return function

    return register


def handler_of(meta, names):
    """The function for a case, or None."""
    for pattern, arrays, function in _handlers:
        if pattern.match(meta.get("method", "")) and all(name in names for name in arrays):
            return function
    return None


@dataclasses.dataclass
class Comparison:
    what: str
    number: int  # among those of that name
    error: float  # relative to the largest magnitude expected, at least 1
    tolerance: float

    @property
    def passed(self):
        return self.error <= self.tolerance  # a NaN fails

    @property
    def share(self):
        """The error in parts of the tolerance."""
        return self.error / self.tolerance if self.tolerance else float(self.error > 0)


class Case:
    """allowed: the tolerance of each comparison that brings none, by (what, number); None for the
    tolerance of float64."""

    def __init__(self, path, library, dtype, allowed=None):
        path = Path(path)
        with numpy.load(path, allow_pickle=False) as arrays:
            self.arrays = {name: arrays[name] for name in arrays.files}
        self.name = path.stem
        self.meta = json.loads(str(self.arrays.pop("meta")))
        self.library = library
        self.dtype = dtype
        self.allowed = allowed
        self.comparisons = []
        self._counts = collections.Counter()
        self._leaves = {}

    def __contains__(self, name):
        return name in self.arrays

    def tensor(self, name):
        """The array as it is; floats in the precision under test."""
        array = torch.from_numpy(numpy.array(self.arrays[name], order="C"))  # a number stays one
        return array.to(self.dtype) if array.is_floating_point() else array

    def leaf(self, name):
        """An input whose gradient is compared if the case holds one."""
        if name not in self._leaves:
            self._leaves[name] = self.tensor(name).requires_grad_()
        return self._leaves[name]

    def leaves(self, *names):
        return [self.leaf(name) for name in names]

    def expect(self, what, got, expected, tolerance=None):
        """Compares two arrays of the same shape; -inf must meet -inf, where there is any."""
        got = torch.as_tensor(got).detach().double()
        expected = torch.as_tensor(expected).detach().double()
        if got.shape != expected.shape:
            raise ValueError(f"{what}: expected shape {tuple(expected.shape)}, got {tuple(got.shape)}")
        finite = torch.isfinite(expected)
        scale = max(1.0, expected[finite].abs().max().item() if finite.any() else 0.0)
        difference = torch.where(finite, got - torch.where(finite, expected, got), 0 * got)
        wrong = (~finite) & (got != expected)
        error = float("inf") if wrong.any() else (difference.abs().max().item() if got.numel() else 0.0)
        number = self._counts[what]
        self._counts[what] += 1
        if tolerance is None:
            tolerance = FLOAT64_TOLERANCE if self.allowed is None else self.allowed[what, number]
        self.comparisons.append(Comparison(what, number, error / scale, tolerance))

    def expect_out(self, out, upstream=None, name="out"):
        """Compares ``out``, and with the gradient of sum(out * upstream) each leaf's gradient."""
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
        # Kept, since a case may ask for the gradients of several losses.
        grads = torch.autograd.grad(loss, list(wanted.values()), allow_unused=True, retain_graph=True)
        for (key, leaf), grad in zip(wanted.items(), grads):
            self.expect(key, torch.zeros_like(leaf) if grad is None else grad, self.arrays[key])
