#include "sextant/position/axes.h"

#include <string>
#include <vector>

#include "sextant/base/error.h"

namespace sextant {
namespace {

void check(const Spectrum& spectrum, std::span<const int64_t> sections, AxisOrder order) {
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
  const bool equal = order == AxisOrder::kRestartInterleaved || order == AxisOrder::kStrided;
  for (const int64_t pairs_of_axis : sections) {
    if (equal && pairs_of_axis != sections[0])
      fail("axes: sections: expected equal ones, but got " + std::to_string(sections[0]) + " and " +
           std::to_string(pairs_of_axis));
  }
  if (order == AxisOrder::kPlaneFirst && (sections.size() != 3 || sections[1] != sections[2]))
    fail("axes: sections: expected three, the last two equal");
}

}  // namespace

Spectrum follow_axes(Spectrum spectrum, std::span<const int64_t> sections, AxisOrder order,
                     double base) {
  check(spectrum, sections, order);
  const size_t axes = sections.size();
  if (order == AxisOrder::kInterleaved) {
    for (size_t f = 0; f < spectrum.pairs.size(); ++f) {
      const size_t axis = f % axes;
      const bool within = f < axes * static_cast<size_t>(sections[axis]);
      spectrum.pairs[f].axis = within ? static_cast<int>(axis) : 0;
    }
    return spectrum;
  }
  if (order == AxisOrder::kPlaneFirst) {
    const size_t plane = spectrum.pairs.size() - static_cast<size_t>(sections[0]);
    for (size_t f = 0; f < spectrum.pairs.size(); ++f)
      spectrum.pairs[f].axis = f < plane ? static_cast<int>(1 + f % 2) : 0;
    return spectrum;
  }
  const std::vector<Spectrum::Pair> plain = spectrum.pairs;
  size_t f = 0;
  for (size_t axis = 0; axis < axes; ++axis) {
    const auto pairs = static_cast<double>(sections[axis]);
    for (size_t i = 0; i < static_cast<size_t>(sections[axis]); ++i, ++f) {
      const bool turns = order == AxisOrder::kRestartInterleaved;
      Spectrum::Pair& pair = spectrum.pairs[turns ? axes * i + axis : f];
      pair.axis = static_cast<int>(axis);
      if (order == AxisOrder::kStrided) pair.frequency = plain[axes * i + axis].frequency;
      if (order == AxisOrder::kRestart || turns)
        pair.frequency = pow(base, Real(-static_cast<double>(i)) / Real(pairs));
    }
  }
  return spectrum;
}

}  // namespace sextant
