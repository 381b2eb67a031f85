"""Layers that ask the attention interface with terms that have no exact form here. They keep the
attention that they have, beside layers that are served, which ``accelerate`` warns of.
"""

import copy

from sextant.transformers.interface import NAME
from sextant.transformers.swap import replaces


# Its numbers for each query and key are a bias by distance and 1 where a mask shows a key.
@replaces("Phi4MultimodalAudioAttention.config", "phi4_multimodal", makes=True)
def _own(module):
    config = copy.copy(module.config)
    if config._attn_implementation == NAME:  # by from_pretrained
        config._attn_implementation_internal = "eager"
    return config
