// Rotary settings in the metadata of GGUF files, {arch}.rope.*, as llama.cpp reads them.
//
// Llama 3's and LongRoPE's divisors are tensors there: rope_freqs.weight,
// rope_factors_short.weight and rope_factors_long.weight, in float32, as all numbers of the
// metadata are.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sextant/files/gguf.h"
#include "sextant/rope_config/rope_config.h"

namespace sextant {

// Throws Error that names the key. A base that is not there is asked for.
std::vector<RopeConfig> read_gguf_config(const Gguf& gguf, const Overrides& overrides);

// llama.cpp's name for a model_type of Hugging Face; without one, "llama". Throws Error if it is
// not known.
std::string gguf_architecture(const std::string& model_type);

// Sizes of the model besides its rotation; 0: not known.
struct GgufModelSizes {
  int64_t layers = 0, width = 0, heads = 0, dense_layers = 0;
};

// Metadata and vectors that say all groups of layers: those that rotate are alike, or one kind has
// a window and another not. Throws Error where llama.cpp has no key for it. Numbers are float32
// there: which ones that rounds is added to `warnings`, and where llama.cpp rotates pairs of
// another order or reads no key.
struct GgufConfig {
  std::map<std::string, GgufValue> metadata;
  std::map<std::string, std::vector<float>> vectors;
};
GgufConfig write_gguf_config(const std::vector<RopeConfig>& groups, const std::string& architecture,
                             const GgufModelSizes& sizes, std::vector<std::string>& warnings);

// Throws Error that names the first difference unless the same layers of both rotate by the same
// frequencies, within float32, with the same gain and scale of the scores.
void check_same_layers(const std::vector<RopeConfig>& groups, const std::vector<RopeConfig>& read,
                       const std::string& architecture);

}  // namespace sextant
