#include "sextant/rope_config/rope_config.h"

#include <algorithm>

namespace sextant {
namespace {

bool is_for_serving(const RopeConfig& setting) {
  return setting.serving_length > 0 && setting.max_length == setting.serving_length;
}

}  // namespace

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
  if (setting.scaling.original_length > 0) return setting.scaling.original_length;
  return is_for_serving(setting) ? 0 : setting.max_length;
}

int64_t declared_length(const RopeConfig& setting) {
  const auto* fixed = std::get_if<Stretch>(&setting.scaling.stretch);
  const bool unnamed = fixed != nullptr && (std::holds_alternative<std::monostate>(*fixed) ||
                                            std::holds_alternative<Linear>(*fixed));
  return unnamed && is_for_serving(setting) ? trained_length(setting) : setting.max_length;
}

}  // namespace sextant
