// Rotary configurations in the metadata of GGUF files, {arch}.rope.*, as llama.cpp reads them.
//
// The divisors of Llama 3 and LongRoPE are tensors there: rope_freqs.weight,
// rope_factors_short.weight and rope_factors_long.weight. Tensors and all numbers of the metadata
// are float32.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sextant/base/export.h"
#include "sextant/files/gguf.h"
#include "sextant/rope_config/rope_config.h"

namespace sextant {

// Throws an Error that names the key, or the program whose file it is if llama.cpp would read it
// with another meaning.
SEXTANT_API std::vector<RopeConfig> read_gguf_config(const Gguf& gguf, const Overrides& overrides);

// llama.cpp's architecture for a model_type of Hugging Face, whose windows reach to both sides or
// only back; "llama" for an empty one. Throws Error if it is not known.
SEXTANT_API std::string gguf_architecture(const std::string& model_type, bool both_sides = false);

// Sizes of the model that rotary positions do not determine; 0: not known.
struct GgufModelSizes {
  int64_t layers = 0, width = 0, heads = 0, dense_layers = 0;
};

// Metadata and vectors for all groups of layers. All rotating layers must be alike, or be of two
// kinds, with and without a window. Throws Error if llama.cpp has no key for a value. `warnings`
// lists numbers that float32 rounds, other orders of pairs in llama.cpp, and keys that it ignores.
struct GgufConfig {
  std::map<std::string, GgufValue> metadata;
  std::map<std::string, std::vector<float>> vectors;
};
SEXTANT_API GgufConfig write_gguf_config(const std::vector<RopeConfig>& groups,
                                         const std::string& architecture,
                                         const GgufModelSizes& sizes,
                                         std::vector<std::string>& warnings);

// Throws an Error that names the first difference unless the same layers of both rotate by the same
// frequencies, within float32, with the same gain and scale of scores.
SEXTANT_API void check_same_layers(const std::vector<RopeConfig>& groups,
                                   const std::vector<RopeConfig>& read,
                                   const std::string& architecture);

}  // namespace sextant
