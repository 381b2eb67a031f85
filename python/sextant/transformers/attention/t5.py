"""The T5 family: its table goes to the kernel instead of a bias of heads x queries x keys.

A layer of T5, mT5, umT5 or Switch asks the attention interface with a position_bias that
``compute_bias`` makes. The swap lets it return the table itself, [buckets, heads], and nothing for
cross-attention, whose bias is zeros; ``interface.method_of`` reads them. Weights keep their names.
"""

import functools

from sextant.transformers.errors import ModelError
from sextant.transformers.reach import asks_interface


def biased(model):
    """The attention modules that compute a bias by distance."""
    return [module for module in model.modules() if hasattr(module, "compute_bias")
            and hasattr(module, "relative_attention_num_buckets")]


def swap(model):
    """Swaps the bias of all layers."""
    modules = biased(model)
    for module in modules:
        if not asks_interface(module):
            raise ModelError(
                f"{type(model).__name__}: expected layers that ask transformers' attention "
                f"interface, but {type(module).__name__} computes its own attention (T5 does so "
                "before transformers 5)")
    for module in modules:
        if "_sextant_biased" in module.__dict__:
            continue
        module._sextant_biased = module.has_relative_attention_bias
        module.compute_bias = functools.partial(
            _table if module.has_relative_attention_bias else _nothing, module)
        # Without a bias the layer would make zeros of heads x queries x keys.
        module.has_relative_attention_bias = True


def unswap(model):
    for module in model.modules():
        if "_sextant_biased" in module.__dict__:
            del module.compute_bias
            module.has_relative_attention_bias = module._sextant_biased
            del module._sextant_biased


def _table(module, *_, **__):
    # A copy: a layer under torch.utils.checkpoint must not return its parameter itself.
    return module.relative_attention_bias.weight.clone()


def _nothing(module, *_, **__):
    return next(module.parameters()).new_zeros(0)
