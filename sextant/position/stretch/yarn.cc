#include "sextant/position/stretch/yarn.h"

#include <cmath>
#include <utility>

#include "sextant/position/stretch/by_parts.h"
#include "sextant/position/stretch/check.h"
#include "sextant/position/stretch/ramp.h"

namespace sextant {

double yarn_temperature(double factor, double weight) {
  return factor <= 1 ? 1 : 0.1 * weight * std::log(factor) + 1;
}

double yarn_gain(const Yarn& yarn) {
  if (yarn.attention_factor) {
    check_above_0("yarn", "attention_factor", *yarn.attention_factor);
    return *yarn.attention_factor;
  }
  for (const auto& [field, value] :
       {std::pair{"mscale", yarn.mscale}, {"mscale_all_dim", yarn.mscale_all_dim}}) {
    if (value && !(*value >= 0 && std::isfinite(*value))) {
      fail("yarn: " + std::string(field) + ": expected a finite number of at least 0, but got " +
           std::to_string(*value));
    }
  }
  const double some = yarn.mscale.value_or(0), all = yarn.mscale_all_dim.value_or(0);
  if (some == 0 || all == 0) return yarn_temperature(yarn.factor);
  return yarn_temperature(yarn.factor, some) / yarn_temperature(yarn.factor, all);
}

double yarn_score_factor(const Yarn& yarn) {
  const double temperature = yarn_temperature(yarn.factor, yarn.mscale_all_dim.value_or(0));
  return temperature * temperature;
}

Spectrum stretched(Spectrum spectrum, const Yarn& yarn) {
  check_factor("yarn", yarn.factor);
  spectrum.gain *= yarn_gain(yarn);
  if (yarn.ramp == Yarn::Ramp::kTurns) {
    return stretched(std::move(spectrum), ByParts{.factor = yarn.factor,
                                                  .original_length = yarn.original_length,
                                                  .slow = yarn.beta_slow,
                                                  .fast = yarn.beta_fast});
  }
  const PairRamp ramp = PairRamp::between({.pairs = spectrum.pairs.size(),
                                           .base = yarn.base,
                                           .original_length = yarn.original_length,
                                           .fast = yarn.beta_fast,
                                           .slow = yarn.beta_slow,
                                           .truncate = yarn.truncate},
                                          "yarn");
  double f = 0;
  for (Spectrum::Pair& pair : spectrum.pairs) {
    const Real one = 1;
    pair.frequency = partly_divided(pair.frequency, one - ramp.interpolated(f), yarn.factor);
    ++f;
  }
  return spectrum;
}

}  // namespace sextant
