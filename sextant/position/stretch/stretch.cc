#include "sextant/position/stretch/stretch.h"

#include <cmath>
#include <utility>

#include "sextant/position/stretch/check.h"

namespace sextant {
namespace {

// ceil(log2(length / original)), at least 0, in integer arithmetic.
int doublings(int64_t length, int64_t original) {
  int n = 0;
  for (int64_t reach = original; reach < length; ++n) {
    if (reach > length / 2) return n + 1;  // 2 * reach might overflow
    reach *= 2;
  }
  return n;
}

}  // namespace

Spectrum stretched(Spectrum spectrum, const Stretch& stretch) {
  return std::visit(
      [&](const auto& kind) {
        if constexpr (std::is_same_v<std::decay_t<decltype(kind)>, std::monostate>) {
          return std::move(spectrum);
        } else {
          return stretched(std::move(spectrum), kind);
        }
      },
      stretch);
}

double dynamic_factor(const DynamicStretch& dynamic, int64_t length) {
  check_length("dynamic", "original_length", dynamic.original_length);
  check_length("dynamic", "length", length);
  check_factor("dynamic", dynamic.factor);
  if (length <= dynamic.original_length) return 1;
  const double times = static_cast<double>(length) / static_cast<double>(dynamic.original_length);
  switch (dynamic.growth) {
    case Growth::kRatio:
      return times;
    case Growth::kHuggingFace:
      return dynamic.factor * times - (dynamic.factor - 1);
    case Growth::kDoubling:
      return std::ldexp(1, doublings(length, dynamic.original_length) + 1) - 1;
    case Growth::kStep:
      return 2;
  }
  fail("dynamic: growth: expected one of those there are, but got " +
       std::to_string(static_cast<int>(dynamic.growth)));
}

Stretch stretch_by(const DynamicStretch& dynamic, double factor) {
  Stretch result = dynamic.stretch;
  if (auto* longrope = std::get_if<LongRope>(&result)) {
    if (dynamic.growth != Growth::kStep) {
      longrope->factors = grown_longrope_factors(longrope->factors, dynamic.factor, factor);
    } else if (factor == 1) {
      longrope->factors = dynamic.short_factors;
      longrope->gain = dynamic.short_gain.value_or(longrope->gain);
    }
    return result;
  }
  std::visit(
      [&](auto& kind) {
        if constexpr (requires { kind.factor; }) kind.factor = factor;
      },
      result);
  return result;
}

}  // namespace sextant
