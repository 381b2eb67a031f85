// Groups of layers of a GGUF file: those with a window, and those that do not rotate.
#pragma once

#include <vector>

#include "sextant/rope_config/families/llama_cpp.h"
#include "sextant/rope_config/gguf_keys.h"
#include "sextant/rope_config/rope_config.h"

namespace sextant {

// `setting` is that of layers without a window, and `unscaled` the scaling of those with one where
// the others' does not reach them. row: null where the architecture is not in the table. Throws
// Error that names the key.
std::vector<RopeConfig> gguf_layers(GgufKeys& keys, const LlamaCppArchitecture* row,
                                    const RopeConfig& setting, const RopeScaling& unscaled,
                                    const Overrides& overrides);

}  // namespace sextant
