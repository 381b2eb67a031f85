"""How far float32 may be off in a case: what roundings do to its results, tried out in float64.

A case's arrays are rounded to float32 and its computation is done in float64; but before every
operation each floating number that enters it is moved by a random part of 2^-24 of itself, as if it
had just been rounded (Monte Carlo arithmetic, Parker 1997). How far the results then lie from the
golden ones is the conditioning of the case in units of float32: sums that cancel, large scores and
small variances all show. Attention is one operation here. Its products are moved with its operands,
in the backward pass with its upstream gradient, result and log-sum-exp as well.

It is always Sextant's operators that are moved, so that another library gets the same allowance.
"""

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from sextant.conformance.case import Case

UNIT = 2.0**-24
TRIALS = 4

# A sum of n terms is rounded n times, which grows as the root of n, and is moved here as if each
# term had been rounded once: the factor is for sums of 64 terms, about the most that golden cases
# have.
FACTOR = 8.0
# The result itself is rounded, and in another order of operations some more often.
FLOOR = 4 * UNIT

# These round nothing: x == x holds, and 58.0 becomes the integer 58.
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
        # Views and what works in place must get their own tensors.
        aliases = any(a.alias_info for a in func._schema.arguments)
        if not aliases and func._schema.name not in _EXACT:
            args, kwargs = tree_map(self._moved, (args, kwargs))
        return func(*args, **kwargs)


class _RoundedCase(Case):
    """Keeps what is to be compared until roundings are over."""

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
    """What Case takes as allowed, for float32."""
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
