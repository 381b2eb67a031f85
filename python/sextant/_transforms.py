"""The transforms of torch.func (grad, vjp, vmap, functional_call), which replace tensors by wrapped
ones that have no memory. An autograd function in Python gives them a rule for each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

import torch
from torch import Tensor

from sextant._call import compiling
from sextant._errors import Error

Tensors = tuple[Tensor, ...]


class _NoDerivative(Error, RuntimeError):
    pass


def active() -> bool:
    """Whether a transform of torch.func is at work. The operators refuse tensors of transforms that
    are not noticed here, those of torch before 2.1."""
    check = getattr(torch._C, "_are_functorch_transforms_active", None)
    return bool(hasattr(torch, "func") and check is not None and not compiling() and check())


def call_operator(name: str, method: tuple[str, list[int], str], parameters: Sequence[Tensor],
                  tensors: dict[str, Tensor | None], arguments: dict[str, Any]) -> Any:
    """Calls an operator of methods. parameters, and then tensors, are its arguments with gradients
    in the order of its schema."""
    if not active():
        return getattr(torch.ops.sextant, name)(*method, list(parameters), **tensors, **arguments)
    given = {key: x for key, x in tensors.items() if x is not None}
    call = Operator(name, method, len(parameters), tuple(given), arguments)
    results = Differentiable.apply(call, *parameters, *given.values())
    return results if len(results) > 1 else results[0]


class Operator:
    """A call of an operator of methods: all but its tensors, which are the parameters and those
    named ``names``. Integers among the parameters have no gradients."""

    def __init__(self, name: str, method: tuple[str, list[int], str], parameters: int,
                 names: tuple[str, ...], arguments: dict[str, Any]) -> None:
        self.name, self.method, self.parameters = name, method, parameters
        self.names, self.arguments = names, arguments
        # Whether the mapped dimension may become part of the batch: nothing else has a batch, as a
        # bias by key of an encoding of one's own may.
        self.joins = method[0] != "own" and not any(
            isinstance(x, Tensor) for x in arguments.values())

    def _call(self, name: str, before: Tensors, tensors: Tensors) -> Any:
        named = dict(zip(self.names, tensors[self.parameters:]))
        return getattr(torch.ops.sextant, name)(
            *before, *self.method, list(tensors[:self.parameters]), **named, **self.arguments)

    def run(self, tensors: Tensors) -> Tensors:
        results = self._call(self.name, (), tensors)
        return tuple(results) if isinstance(results, (tuple, list)) else (results,)

    def gradients(self, d_results: Tensors, tensors: Tensors) -> Tensors:
        return tuple(self._call(f"{self.name}_backward", d_results, tensors))

    def rows(self) -> range:
        """The places of q, k and v, or of x: tensors of which the batch is the first dimension."""
        count = sum(name in ("q", "k", "v", "x") for name in self.names)
        return range(self.parameters, self.parameters + count)


def _at(tensors: Iterable[Tensor], dims: Iterable[int | None], n: int) -> Tensors:
    return tuple(x if dim is None else x.select(dim, n) for x, dim in zip(tensors, dims))


def _stacked(each: list[Tensors]) -> tuple[Tensors, tuple[int, ...]]:
    """The results of all entries of the mapped dimension, stacked, and their dimensions."""
    results = tuple(torch.stack(parts) for parts in zip(*each))
    return results, (0,) * len(results)


class Differentiable(torch.autograd.Function):
    """The results of an Operator."""

    @staticmethod
    def forward(operator: Operator, *tensors: Tensor) -> Tensors:
        return operator.run(tensors)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.operator, *tensors = inputs
        ctx.save_for_backward(*tensors)

    @staticmethod
    def backward(ctx: Any, *d_results: Tensor) -> tuple[Tensor | None, ...]:
        tensors = ctx.saved_tensors
        found = iter(Gradients.apply(ctx.operator, len(d_results), *d_results, *tensors))
        return (None, *(next(found) if x.is_floating_point() else None for x in tensors))

    @staticmethod
    def vmap(info: Any, in_dims: Any, operator: Operator, *tensors: Tensor) -> Any:
        dims, size, rows = in_dims[1:], info.batch_size, operator.rows()
        if not operator.joins or any(dim is not None and n not in rows
                                     for n, dim in enumerate(dims)):
            each = [Differentiable.apply(operator, *_at(tensors, dims, n)) for n in range(size)]
            return _stacked(each)
        joined = list(tensors)
        for n in rows:
            x, dim = tensors[n], dims[n]
            whole = x.expand(size, *x.shape) if dim is None else x.movedim(dim, 0)
            joined[n] = whole.reshape(-1, *whole.shape[2:])
        results = cast(Tensors, Differentiable.apply(operator, *joined))
        return tuple(x.reshape(size, -1, *x.shape[1:]) for x in results), (0,) * len(results)


class Gradients(torch.autograd.Function):
    """The gradients of an Operator's tensors, for the gradients of its results. They have no
    derivatives."""

    @staticmethod
    def forward(operator: Operator, count: int, *tensors: Tensor) -> Tensors:
        return operator.gradients(tensors[:count], tensors[count:])

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *_: Tensor) -> None:
        raise _NoDerivative(
            "sextant: expected no derivative of its gradients (it has first derivatives only), but "
            "got a request for one"
        )

    @staticmethod
    def vmap(info: Any, in_dims: Any, operator: Operator, count: int, *tensors: Tensor) -> Any:
        # Gradients of parameters are sums over the batch, so each entry is a call of its own.
        each = [cast(Tensors, Gradients.apply(operator, count, *_at(tensors, in_dims[2:], n)))
                for n in range(info.batch_size)]
        return _stacked(each)
