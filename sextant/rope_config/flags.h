// Rotary settings as flags of engines' command lines.
//
//   llama.cpp  --rope-scaling none|linear|yarn, --rope-scale N, --rope-freq-base N,
//   --rope-freq-scale N,
//              --yarn-orig-ctx N, --yarn-ext-factor N, --yarn-attn-factor N, --yarn-beta-slow N,
//              --yarn-beta-fast N, -c N
//   vLLM       --hf-overrides JSON, --hf-overrides.key.key VALUE, --max-model-len N;
//              --rope-scaling JSON and --rope-theta N of versions below 0.11.1
#pragma once

#include <string>
#include <vector>

#include "sextant/rope_config/rope_config.h"

namespace sextant {

// Whether a text may be a command line: one of its words starts with - and a letter or another -.
bool looks_like_flags(const std::string& text);

// A whole command line: flags that are not about rotary positions are passed over with their
// values, and named in a warning. Flags say neither the size of heads nor, mostly, the base:
// overrides do. Throws Error that names the flag.
std::vector<RopeConfig> read_flags(const std::string& text, const Overrides& overrides);

// Throw Error where the engine has no flag for a setting. `warnings` gets those parts of it that
// flags cannot say. vLLM takes several groups of layers; `place` is where in the config.json they
// are.
std::string write_llama_cpp(const RopeConfig& setting, std::vector<std::string>& warnings);
std::string write_vllm(const std::vector<RopeConfig>& groups, const std::string& place,
                       std::vector<std::string>& warnings);

}  // namespace sextant
