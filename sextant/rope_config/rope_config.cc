#include "sextant/rope_config/rope_config.h"

namespace sextant {

Spectrum spectrum_of(const RopeConfig& setting, int64_t length) {
  return stretched(rotary({.dim = setting.rotary_dim, .base = setting.base}),
                   stretch_of(setting.scaling, length));
}

int64_t trained_length(const RopeConfig& setting) {
  return setting.scaling.original_length > 0 ? setting.scaling.original_length : setting.max_length;
}

}  // namespace sextant
