// Means over seeds and how far to trust them.
#pragma once

#include <optional>
#include <span>

namespace sextant::lab {

// A mean and half the width of its 95 % interval.
struct Interval {
  double mean = 0, half = 0;
};

// Student's t over values, two at least. Throws Error for fewer.
Interval interval95(std::span<const double> values);

// Over seeds. half: as above; absent for one seed.
struct Spread {
  double mean = 0;
  std::optional<double> half = {};
};
Spread spread(std::span<const double> values);

// Half a 95 % interval is so many standard errors where there are many samples.
inline constexpr double kNormal95 = 1.960;

}  // namespace sextant::lab
