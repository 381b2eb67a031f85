"""The transforms of torch.func (grad, vjp, vmap, functional_call), which replace tensors by wrapped
ones that have no memory. An autograd function in Python gives them a rule for each."""

import torch

from sextant._call import compiling


def active():
    """Whether a transform of torch.func is at work. The operators refuse tensors of transforms that
    are not noticed here, those of torch before 2.1."""
    check = getattr(torch._C, "_are_functorch_transforms_active", None)
    return hasattr(torch, "func") and check is not None and not compiling() and check()


class Operator:
    """A call of an operator of methods: all but its differentiable tensors, which are its inputs,
    optional inputs, and the parameters, in this order."""

    def __init__(self, name, method, inputs, optional, arguments):
        self.name, self.method = name, method
        self.inputs, self.optional, self.arguments = inputs, optional, arguments
        # Whether the mapped dimension may become part of the batch: no argument has a batch.
        self.joins = not any(isinstance(x, torch.Tensor) for x in arguments.values())

    def _call(self, name, before, tensors):
        first = self.inputs + len(self.optional)
        return getattr(torch.ops.sextant, name)(
            *before,
            *self.method,
            list(tensors[first:]),
            *tensors[: self.inputs],
            **dict(zip(self.optional, tensors[self.inputs : first])),
            **self.arguments,
        )

    def run(self, tensors):
        results = self._call(self.name, (), tensors)
        return tuple(results) if isinstance(results, (tuple, list)) else (results,)

    def gradients(self, d_results, tensors):
        return tuple(self._call(f"{self.name}_backward", d_results, tensors))

    def __call__(self, *tensors):
        results = Differentiable.apply(self, *tensors)
        return results if len(results) > 1 else results[0]


def _at(tensors, dims, n):
    return [x if dim is None else x.select(dim, n) for x, dim in zip(tensors, dims)]


def _stacked(each):
    """The results of all entries of the mapped dimension, stacked, and their dimensions."""
    results = tuple(torch.stack(parts) for parts in zip(*each))
    return results, (0,) * len(results)


class Differentiable(torch.autograd.Function):
    """The results of an Operator."""

    @staticmethod
    def forward(operator, *tensors):
        return operator.run(tensors)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.operator, *tensors = inputs
        ctx.save_for_backward(*tensors)

    @staticmethod
    def backward(ctx, *d_results):
        count = len(d_results)
        return (None, *Gradients.apply(ctx.operator, count, *d_results, *ctx.saved_tensors))

    @staticmethod
    def vmap(info, in_dims, operator, *tensors):
        dims, size, inputs = in_dims[1:], info.batch_size, operator.inputs
        if not operator.joins or any(dim is not None for dim in dims[inputs:]):
            each = [Differentiable.apply(operator, *_at(tensors, dims, n)) for n in range(size)]
            return _stacked(each)
        rows = [x.expand(size, *x.shape) if dim is None else x.movedim(dim, 0)
                for x, dim in zip(tensors[:inputs], dims)]
        joined = [x.reshape(-1, *x.shape[2:]) for x in rows]
        results = Differentiable.apply(operator, *joined, *tensors[inputs:])
        return tuple(x.unflatten(0, (size, -1)) for x in results), (0,) * len(results)


class Gradients(torch.autograd.Function):
    """The gradients of an Operator's tensors, for the gradients of its results. They have no
    derivatives."""

    @staticmethod
    def forward(operator, count, *tensors):
        return operator.gradients(tensors[:count], tensors[count:])

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, *_):
        raise RuntimeError(
            "sextant: expected no derivative of its gradients (it has first derivatives only), but "
            "got a request for one"
        )

    @staticmethod
    def vmap(info, in_dims, operator, count, *tensors):
        # Gradients of parameters are sums over the batch, so each entry is a call of its own.
        each = [Gradients.apply(operator, count, *_at(tensors, in_dims[2:], n))
                for n in range(info.batch_size)]
        return _stacked(each)
