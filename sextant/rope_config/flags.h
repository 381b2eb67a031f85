// Rotary configurations as flags of engines' command lines.
//
//   llama.cpp  --rope-scaling none|linear|yarn, --rope-scale N, --rope-freq-base N,
//              --rope-freq-scale N, --yarn-orig-ctx N, --yarn-ext-factor N, --yarn-attn-factor N,
//              --yarn-beta-slow N, --yarn-beta-fast N, -c N, -np N, -kvu
//   vLLM       --hf-overrides JSON, --hf-overrides.key.key VALUE, --max-model-len N;
//              --rope-scaling JSON and --rope-theta N of versions below 0.11.1
#pragma once

#include <string>
#include <vector>

#include "sextant/base/export.h"
#include "sextant/rope_config/rope_config.h"

namespace sextant {

// Whether text may be a command line: one of its words begins with - and a letter or another -, or
// is a variable of llama.cpp's.
SEXTANT_API bool looks_like_flags(const std::string& text);

// Reads a whole command line. Flags that are not about rotary positions are skipped with their
// values and named in a warning. Flags lack the head size and mostly the base; overrides give them.
// Throws an Error that names the flag.
SEXTANT_API std::vector<RopeConfig> read_flags(const std::string& text, const Overrides& overrides);
std::vector<RopeConfig> read_flags(const std::vector<std::string>& words,
                                   const Overrides& overrides);

// Both throw Error if the engine has no flag for a configuration. Parts that flags cannot express
// are added to `warnings`. vLLM takes several groups of layers; `place` is their path in the
// config.json.
SEXTANT_API std::string write_llama_cpp(const RopeConfig& config,
                                        std::vector<std::string>& warnings);
SEXTANT_API std::string write_vllm(const std::vector<RopeConfig>& groups, const std::string& place,
                                   std::vector<std::string>& warnings);

}  // namespace sextant
