"""Causal masks of models that compute attention themselves before transformers 5: the mask of the
attention interface takes the place of their own of queries x keys.
"""

from transformers import masking_utils

from sextant.transformers.swap import replaces


def _makes_mask(module):
    return hasattr(type(module), "_update_causal_mask")


@replaces("BloomModel._update_causal_mask", "bloom", when=_makes_mask)
@replaces("FalconModel._update_causal_mask", "falcon", when=_makes_mask)
@replaces("T5Stack._update_causal_mask", "t5", when=_makes_mask)
@replaces("MT5Stack._update_causal_mask", "mt5", when=_makes_mask)
@replaces("UMT5Stack._update_causal_mask", "umt5", when=_makes_mask)
@replaces("SwitchTransformersStack._update_causal_mask", "switch_transformers", when=_makes_mask)
@replaces("LongT5Stack._update_causal_mask", "longt5", when=_makes_mask)
@replaces("Pop2PianoStack._update_causal_mask", "pop2piano", when=_makes_mask)
@replaces("Pix2StructTextModel._update_causal_mask", "pix2struct", when=_makes_mask)
def _mask(module, attention_mask, hidden_states, cache_position, past_key_values, *_):
    return masking_utils.create_causal_mask(module.config, hidden_states, attention_mask,
                                            cache_position, past_key_values)
