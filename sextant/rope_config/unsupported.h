// Features of a setting that a dialect may have no word for. Each throws Error that names it in the
// words of Hugging Face, where people look for it.
#pragma once

#include <string>

#include "sextant/rope_config/rope_config.h"

namespace sextant {

// A factor of queries that grows with their position.
void refuse_query_scale(const RopeScaling& scaling, const std::string& dialect);

// Positions that are taken within chunks.
void refuse_dual_chunks(const RopeConfig& setting, const std::string& dialect);

// Channels that do not turn, where only the model's own file says how many do.
void refuse_plain_channels(const RopeConfig& setting, const std::string& dialect);

}  // namespace sextant
