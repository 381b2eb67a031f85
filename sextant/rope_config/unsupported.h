// Features of a configuration that a format may lack. Each function throws an Error that names the
// feature by its field in Hugging Face, which is where users look it up.
#pragma once

#include <string>
#include <vector>

#include "sextant/rope_config/families/llama_cpp.h"
#include "sextant/rope_config/rope_config.h"

namespace sextant {

// A factor of queries that grows with their position.
void refuse_query_scale(const RopeScaling& scaling, const std::string& dialect);

// Positions within chunks.
void refuse_dual_chunks(const RopeConfig& config, const std::string& dialect);

// Unrotated channels, if only the model's own file gives their number.
void refuse_plain_channels(const RopeConfig& config, const std::string& dialect);

// Facts of a written GGUF file that llama.cpp's code decides: the order of pairs, YaRN's betas, and
// the meaning of its window. Differences from the model are named in `warnings`.
void warn_of_pairs(const RopeConfig& config, const LlamaCppArchitecture& row,
                   std::vector<std::string>& warnings);
void warn_of_betas(const RopeConfig& config, const LlamaCppArchitecture& row,
                   std::vector<std::string>& warnings);

// The window as llama.cpp's n_swa; 0: none, or no key for it. Throws Error if it reaches to other
// sides than the architecture's.
int64_t n_swa_of(const LlamaCppArchitecture& row, const std::vector<RopeConfig>& groups,
                 std::vector<std::string>& warnings);

}  // namespace sextant
