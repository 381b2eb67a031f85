"""The T5 family: its table goes to the kernel instead of a bias of heads x queries x keys.

A layer of T5, mT5, umT5 or Switch asks the attention interface with a position_bias that
``compute_bias`` makes. The swap lets it return the table itself, [buckets, heads], and nothing for
cross-attention, whose bias is zeros; ``interface.method_of`` reads them. Weights keep their names.
"""

from sextant.transformers.errors import ModelError
from sextant.transformers.reach import asks_interface


def biased(model):
    """The attention modules that compute a bias by distance."""
    return [module for module in model.modules() if hasattr(module, "compute_bias")
            and hasattr(module, "relative_attention_num_buckets")]


def swap(model):
    """Swaps the bias of all layers. Returns functions that undo it."""
    modules = biased(model)
    for module in modules:
        if not asks_interface(module):
            raise ModelError(
                f"{type(model).__name__}: expected layers that ask transformers' attention "
                f"interface, but {type(module).__name__} computes its own attention (T5 does so "
                "before transformers 5)")
    return [_swap(module) for module in modules]


def _swap(module):
    before = module.has_relative_attention_bias
    if before:
        module.compute_bias = lambda *_, **__: module.relative_attention_bias.weight
    else:
        # The layer would make zeros of heads x queries x keys.
        module.has_relative_attention_bias = True
        module.compute_bias = lambda *_, **named: next(module.parameters()).new_zeros(0)

    def undo():
        del module.compute_bias
        module.has_relative_attention_bias = before

    return undo
