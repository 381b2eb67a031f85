#include "sextant/position/axes.h"

#include <string>

#include "sextant/base/error.h"

namespace sextant {
namespace {

void check(const Spectrum& spectrum, std::span<const int64_t> sections) {
  int64_t sum = 0;
  for (const int64_t pairs : sections) {
    if (pairs < 1) fail("axes: sections: expected at least 1, but got " + std::to_string(pairs));
    sum += pairs;
  }
  const auto pairs = static_cast<int64_t>(spectrum.pairs.size());
  if (sum != pairs) {
    fail("axes: sections: expected a sum of " + std::to_string(pairs) + " pairs, but got " +
         std::to_string(sum));
  }
}

}  // namespace

Spectrum follow_axes(Spectrum spectrum, std::span<const int64_t> sections, AxisOrder order,
                     double base) {
  check(spectrum, sections);
  const size_t axes = sections.size();
  if (order == AxisOrder::kInterleaved) {
    for (size_t f = 0; f < spectrum.pairs.size(); ++f) {
      const size_t axis = f % axes;
      const bool within = f < axes * static_cast<size_t>(sections[axis]);
      spectrum.pairs[f].axis = within ? static_cast<int>(axis) : 0;
    }
    return spectrum;
  }
  size_t f = 0;
  for (size_t axis = 0; axis < axes; ++axis) {
    const auto pairs = static_cast<double>(sections[axis]);
    for (double i = 0; i < pairs; ++i, ++f) {
      spectrum.pairs[f].axis = static_cast<int>(axis);
      if (order == AxisOrder::kRestart)
        spectrum.pairs[f].frequency = pow(base, Real(-i) / Real(pairs));
    }
  }
  return spectrum;
}

}  // namespace sextant
