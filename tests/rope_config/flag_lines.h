// Reads command lines of engines as configurations.
#pragma once

#include <string>

#include "sextant/rope_config/read_config.h"

namespace sextant::testing {

// Command lines contain no size of heads, and mostly no base.
inline RopeConfig read(const std::string& line,
                       const Overrides& overrides = {.base = 1e6, .head_dim = 128}) {
  return read_rope_config_bytes(line, overrides).configs.at(0);
}

}  // namespace sextant::testing
