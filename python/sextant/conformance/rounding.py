"""Tolerances of float32 for a case, by perturbation in float64.

The arrays of a case are rounded to float32 and its computation is done in float64; but before every
operation each floating-point operand is perturbed by a random relative error of up to 2^-24, as if
it had just been rounded (Monte Carlo arithmetic, Parker 1997). The distance of the results from the
golden ones is the conditioning of the case in units of float32: cancelling sums, large scores and
small variances all appear in it. Attention is one operation here: its products are perturbed
through its operands, and in the backward pass through its upstream gradient, result and log-sum-exp
as well.

The perturbed operators are always Sextant's, so that another library gets the same tolerances.
"""

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from sextant.conformance.case import Case

UNIT = 2.0**-24
TRIALS = 4

# The rounding error of a sum of n terms grows as sqrt(n), but the perturbation rounds each term
# only once. The factor sqrt(64) is for sums of 64 terms, about the longest in golden cases.
FACTOR = 8.0
# The result itself is rounded, and intermediate results more often in another order of operations.
FLOOR = 4 * UNIT

# Exact operations are not perturbed: x == x must hold, and 58.0 must become the integer 58.
_EXACT = {f"aten::{name}" for name in ("eq", "ne", "lt", "le", "gt", "ge", "clone", "_to_copy")}


class _Rounding(TorchDispatchMode):
    def __init__(self, seed):
        super().__init__()
        self._random = torch.Generator().manual_seed(seed)

    def _moved(self, x):
        if not isinstance(x, torch.Tensor) or x.dtype != torch.float64:
            return x
        noise = torch.rand(x.shape, generator=self._random, dtype=x.dtype)
        return x * (1 + UNIT * (2 * noise - 1))

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        # Views and in-place operations must get their original tensors.
        aliases = any(a.alias_info for a in func._schema.arguments)
        if not aliases and func._schema.name not in _EXACT:
            args, kwargs = tree_map(self._moved, (args, kwargs))
        return func(*args, **kwargs)


class _RoundedCase(Case):
    """Records the comparisons, which are made after the perturbed computation."""

    def __init__(self, path, library):
        super().__init__(path, library, torch.float64)
        self._kept = []

    def tensor(self, name):
        x = super().tensor(name)
        return x.float().double() if x.is_floating_point() else x

    def expect(self, what, got, expected, tolerance=None):
        self._kept.append((what, got, expected, tolerance))

    def compare(self):
        for comparison in self._kept:
            super().expect(*comparison)


def allowances(path, library, handler):
    """The tolerances ``allowed`` of ``Case`` for float32: the largest error of TRIALS perturbed
    computations, times FACTOR, plus FLOOR."""
    largest = {}
    for seed in range(TRIALS):
        one = _RoundedCase(path, library)
        with _Rounding(seed):
            handler(one)
        one.compare()
        for comparison in one.comparisons:
            key = comparison.what, comparison.number
            largest[key] = max(largest.get(key, 0.0), comparison.error)
    return {key: FACTOR * error + FLOOR for key, error in largest.items()}
