// Configurations of the published configurations by name.
#pragma once

#include <string>

#include "sextant/base/error.h"
#include "sextant/rope_config/read_config.h"
#include "tests/rope_config/published.h"

namespace sextant::testing {

inline std::string config(const std::string& name) {
  for (const Published& one : published_configs())
    if (one.name == name) return one.config;
  throw Error("no configuration " + name);
}

inline RopeConfig rope(const std::string& name, size_t n = 0) {
  return read_rope_config_bytes(config(name), {}).configs.at(n);
}

inline double frequency(const Spectrum& spectrum, size_t f) {
  return static_cast<double>(spectrum.pairs.at(f).frequency);
}

}  // namespace sextant::testing
