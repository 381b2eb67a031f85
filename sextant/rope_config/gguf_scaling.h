// The scaling that a GGUF file says: {arch}.rope.scaling.* and the divisors in tensors.
#pragma once

#include "sextant/rope_config/families/llama_cpp.h"
#include "sextant/rope_config/gguf_keys.h"
#include "sextant/rope_config/rope_config.h"

namespace sextant {

// Writes it into `setting`, whose base and channels are known, and gives that of layers with a
// window which rope.scaling.factor does not reach: the divisors and the gain may. row: null where
// the architecture is not in the table. Throws Error that names the key.
RopeScaling read_gguf_scaling(GgufKeys& keys, const LlamaCppArchitecture* row, RopeConfig& setting);

}  // namespace sextant
