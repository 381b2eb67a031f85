// Features of a configuration that a format may lack. Each function throws an Error that names the
// feature by its field in Hugging Face, which is where users look it up.
#pragma once

#include <string>

#include "sextant/rope_config/rope_config.h"

namespace sextant {

// A factor of queries that grows with their position.
void refuse_query_scale(const RopeScaling& scaling, const std::string& dialect);

// Positions within chunks.
void refuse_dual_chunks(const RopeConfig& config, const std::string& dialect);

// Unrotated channels, if only the model's own file gives their number.
void refuse_plain_channels(const RopeConfig& config, const std::string& dialect);

}  // namespace sextant
