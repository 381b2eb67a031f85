// Groups of layers of a GGUF file: layers with a window, and layers that do not rotate.
#pragma once

#include <vector>

#include "sextant/rope_config/families/llama_cpp.h"
#include "sextant/rope_config/gguf_keys.h"
#include "sextant/rope_config/rope_config.h"

namespace sextant {

// `config` is that of layers without a window. `unscaled` is the scaling of windowed layers that
// the others' scaling does not affect. row: null if the architecture is not in the table. Throws an
// Error that names the key.
std::vector<RopeConfig> gguf_layers(GgufKeys& keys, const LlamaCppArchitecture* row,
                                    RopeConfig config, const RopeScaling& unscaled,
                                    const Overrides& overrides);

}  // namespace sextant
