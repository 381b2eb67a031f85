// The parts of a GGUF file beside its base and channels. row: null if the architecture is not in
// the table. Both throw an Error that names the key.
#pragma once

#include <vector>

#include "sextant/rope_config/families/llama_cpp.h"
#include "sextant/rope_config/gguf_keys.h"
#include "sextant/rope_config/rope_config.h"

namespace sextant {

// {arch}.rope.scaling.* and the divisors in tensors. Writes the scaling into `config`, whose base
// and channels are known, and returns the scaling of windowed layers that rope.scaling.factor does
// not affect, which may have the divisors and the gain.
RopeScaling read_gguf_scaling(GgufKeys& keys, const LlamaCppArchitecture* row, RopeConfig& config);

// Groups of layers: those with a window, and those that do not rotate. `config` is that of layers
// without a window. `unscaled` is the scaling of windowed layers that the others' scaling does not
// affect.
std::vector<RopeConfig> gguf_layers(GgufKeys& keys, const LlamaCppArchitecture* row,
                                    RopeConfig config, const RopeScaling& unscaled,
                                    const Overrides& overrides);

}  // namespace sextant
