#include "sextant/rope_config/rope_config.h"

#include <algorithm>

namespace sextant {

std::string order_of(Pairing pairing) {
  return pairing == Pairing::kInterleaved ? "interleaved" : "half-split";
}

Spectrum spectrum_of(const RopeConfig& setting, int64_t length) {
  return stretched(rotary({.dim = setting.rotary_dim, .base = setting.base}),
                   stretch_of(setting.scaling, length));
}

bool rotate_alike(const RopeConfig& a, const RopeConfig& b) {
  const RopeScaling &x = a.scaling, &y = b.scaling;
  return a.rotates == b.rotates && a.head_dim == b.head_dim && a.rotary_dim == b.rotary_dim &&
         a.base == b.base && x.stretch == y.stretch && x.sections == y.sections &&
         x.interleaved_sections == y.interleaved_sections;
}

std::vector<RopeConfig> distinct_rotations(const std::vector<RopeConfig>& settings) {
  std::vector<RopeConfig> distinct;
  for (const RopeConfig& setting : settings) {
    const auto alike = [&](const RopeConfig& other) { return rotate_alike(setting, other); };
    if (setting.rotates && std::ranges::none_of(distinct, alike)) distinct.push_back(setting);
  }
  return distinct;
}

int64_t trained_length(const RopeConfig& setting) {
  return setting.scaling.original_length > 0 ? setting.scaling.original_length : setting.max_length;
}

}  // namespace sextant
