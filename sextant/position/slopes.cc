#include "sextant/position/slopes.h"

#include <bit>
#include <cmath>
#include <string>

#include "sextant/base/error.h"

namespace sextant {

std::vector<double> alibi_slopes(int64_t heads, double max_bias) {
  if (heads < 1) {
    fail("alibi: heads: expected at least 1, but got " + std::to_string(heads));
  }
  if (!(max_bias >= 0 && std::isfinite(max_bias))) {
    fail("alibi: max_bias: expected a finite number of at least 0, but got " +
         std::to_string(max_bias));
  }
  const auto power = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(heads)));
  std::vector<double> slopes;
  slopes.reserve(static_cast<size_t>(heads));
  for (int64_t h = 0; h < heads; ++h) {
    // The exponent in units of max_bias / (2 power): first the even numerators, then the odd ones
    // between.
    const int64_t numerator = h < power ? 2 * (h + 1) : 2 * (h - power) + 1;
    slopes.push_back(
        std::exp2(-max_bias * (static_cast<double>(numerator) / static_cast<double>(2 * power))));
  }
  return slopes;
}

double interpolated_slope(int64_t train_length, int64_t length) {
  if (train_length < 1 || length < 1) {
    fail("alibi: interpolation: expected lengths of at least 1, but got " +
         std::to_string(train_length) + " and " + std::to_string(length));
  }
  return length <= train_length ? 1
                                : static_cast<double>(train_length) / static_cast<double>(length);
}

}  // namespace sextant
