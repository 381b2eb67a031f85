// GGUF files of other programs than llama.cpp, which it does not run as their programs do.
#pragma once

#include "sextant/rope_config/gguf_keys.h"

namespace sextant {

// Throws an Error that names the program if the file has an architecture or keys of its own, or
// lacks a base that llama.cpp's converter always writes. base: given beside the file, or 0.
void refuse_other_programs(GgufKeys& keys, double base);

}  // namespace sextant
