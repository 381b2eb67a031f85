// Builds configurations of Hugging Face from JSON values and reads them.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "sextant/rope_config/read_config.h"

namespace sextant::testing {

inline std::vector<RopeConfig> read(const nlohmann::json& config, const Overrides& overrides = {}) {
  return read_rope_config_bytes(config.dump(), overrides).configs;
}

inline nlohmann::json with(nlohmann::json config, const nlohmann::json& more) {
  config.update(more);
  return config;
}

// The frequency of a pair in radians per position, for a sequence of this length.
inline double frequency(const RopeConfig& rope, size_t pair, int64_t length = 1) {
  return static_cast<double>(spectrum_of(rope, length).pairs.at(pair).frequency);
}

}  // namespace sextant::testing
