// Writes a configuration in any of the formats.
#pragma once

#include <string>
#include <vector>

#include "sextant/base/export.h"
#include "sextant/rope_config/read_config.h"

namespace sextant {

// to: "hf5", "hf4", "gguf", "llama.cpp" or "vllm". Text ends with a line break; gguf is a file of
// metadata without weights. Throws Error if the format cannot express the configuration. Values
// that differ in the format or are inexact are named in `warnings`.
SEXTANT_API std::string write_rope_config(const ReadRopeConfig& read, const std::string& to,
                                          std::vector<std::string>& warnings);
SEXTANT_API std::string write_rope_config(const ReadRopeConfig& read, const std::string& to);

}  // namespace sextant
