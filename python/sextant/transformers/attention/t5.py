"""The T5 family: its table goes to the kernel instead of a bias of heads x queries x keys.

A layer of T5, mT5, umT5 or Switch asks the attention interface with a position_bias that
``compute_bias`` makes. It returns the table itself here, [buckets, heads], and nothing for
cross-attention, whose bias is zeros; ``interface.method_of`` reads them.
"""

from sextant.transformers.errors import ModelError
from sextant.transformers.reach import asks_interface
from sextant.transformers.swap import before, replaces


def _asks(module):
    if not asks_interface(module):
        raise ModelError(f"{type(module).__name__}: expected layers that ask transformers' "
                         "attention interface, but they compute their own (T5 does so before "
                         "transformers 5)")
    return True


def _by(module):
    return "t5" if before(module, "has_relative_attention_bias") else "none"


# Without a bias the layer would make zeros of heads x queries x keys.
_HERE = dict(by=_by, when=_asks, has_relative_attention_bias=True)


@replaces("T5Attention.compute_bias", "t5", **_HERE)
@replaces("MT5Attention.compute_bias", "mt5", **_HERE)
@replaces("UMT5Attention.compute_bias", "umt5", **_HERE)
@replaces("SwitchTransformersAttention.compute_bias", "switch_transformers", **_HERE)
@replaces("LongT5Attention.compute_bias", "longt5", **_HERE)
@replaces("Pop2PianoAttention.compute_bias", "pop2piano", **_HERE)
@replaces("Pix2StructTextAttention.compute_bias", "pix2struct", **_HERE)
def _table(module, *_, **__):
    if not before(module, "has_relative_attention_bias"):
        return next(module.parameters()).new_zeros(0)
    # A copy: a layer under torch.utils.checkpoint must not return its parameter itself.
    return module.relative_attention_bias.weight.clone()
