// Builds GGUF files from the metadata of an architecture and reads them as configurations.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sextant/files/gguf.h"
#include "sextant/rope_config/gguf.h"
#include "sextant/rope_config/read_config.h"

namespace sextant::testing {

using Metadata = std::map<std::string, GgufValue>;
using Tensors = std::map<std::string, std::vector<float>>;

// A file of this architecture with 128 channels per head; keys are without the architecture's
// prefix.
inline ReadRopeConfig read_gguf(const std::string& arch, const Metadata& keys,
                                const Tensors& tensors = {}) {
  Metadata all = {{"general.architecture", arch},
                  {arch + ".attention.key_length", uint64_t{128}},
                  {arch + ".context_length", uint64_t{131072}},
                  {arch + ".rope.freq_base", 1e6}};
  for (const auto& [key, value] : keys) all[arch + "." + key] = value;
  return read_rope_config_bytes(gguf_bytes(all, tensors), {});
}

// original: the original length, or 0 for none.
inline Metadata scaling(const std::string& type, double factor, uint64_t original = 0) {
  Metadata keys = {{"rope.scaling.type", type}, {"rope.scaling.factor", factor}};
  if (original > 0) keys["rope.scaling.original_context_length"] = original;
  return keys;
}

inline Metadata with(Metadata keys, const Metadata& more) {
  for (const auto& [key, value] : more) keys[key] = value;
  return keys;
}

// The frequency of a pair in radians per position, for a sequence of this length.
inline double frequency(const RopeConfig& rope, size_t pair, int64_t length = 1) {
  return static_cast<double>(spectrum_of(rope, length).pairs.at(pair).frequency);
}

}  // namespace sextant::testing
