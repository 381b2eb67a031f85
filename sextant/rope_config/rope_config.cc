#include "sextant/rope_config/rope_config.h"

#include <algorithm>

namespace sextant {
namespace {

bool is_for_serving(const RopeConfig& config) {
  return config.serving_length > 0 && config.max_length == config.serving_length;
}

}  // namespace

std::string order_of(Pairing pairing) {
  return pairing == Pairing::kInterleaved ? "interleaved" : "half-split";
}

Spectrum spectrum_of(const RopeConfig& config, int64_t length) {
  return stretched(rotary({.dim = config.rotary_dim, .base = config.base}),
                   stretch_of(config.scaling, length));
}

bool rotate_alike(const RopeConfig& a, const RopeConfig& b) {
  const RopeScaling &x = a.scaling, &y = b.scaling;
  return a.rotates == b.rotates && a.head_dim == b.head_dim && a.rotary_dim == b.rotary_dim &&
         a.base == b.base && x.stretch == y.stretch && same_axes(x, y);
}

std::vector<RopeConfig> distinct_rotations(const std::vector<RopeConfig>& configs) {
  std::vector<RopeConfig> distinct;
  for (const RopeConfig& config : configs) {
    const auto alike = [&](const RopeConfig& other) { return rotate_alike(config, other); };
    if (config.rotates && std::ranges::none_of(distinct, alike)) distinct.push_back(config);
  }
  return distinct;
}

int64_t trained_length(const RopeConfig& config) {
  if (config.scaling.original_length > 0) return config.scaling.original_length;
  return is_for_serving(config) ? 0 : config.max_length;
}

int64_t declared_length(const RopeConfig& config) {
  const auto* fixed = std::get_if<Stretch>(&config.scaling.stretch);
  const bool unnamed = fixed != nullptr && (std::holds_alternative<std::monostate>(*fixed) ||
                                            std::holds_alternative<Linear>(*fixed));
  return unnamed && is_for_serving(config) ? trained_length(config) : config.max_length;
}

}  // namespace sextant
