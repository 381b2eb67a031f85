// The scaling in a GGUF file: {arch}.rope.scaling.* and the divisors in tensors.
#pragma once

#include "sextant/rope_config/families/llama_cpp.h"
#include "sextant/rope_config/gguf_keys.h"
#include "sextant/rope_config/rope_config.h"

namespace sextant {

// Writes the scaling into `config`, whose base and channels are known, and returns the scaling of
// windowed layers that rope.scaling.factor does not affect, which may have the divisors and the
// gain. row: null if the architecture is not in the table. Throws an Error that names the key.
RopeScaling read_gguf_scaling(GgufKeys& keys, const LlamaCppArchitecture* row, RopeConfig& config);

}  // namespace sextant
