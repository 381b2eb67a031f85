// Maps values to places along an axis, and chooses its ticks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sextant/chart/chart.h"

namespace sextant::chart {

struct Range {
  double low = 0, high = 1;
};

// The smallest and the largest of the finite values added.
class Extent {
 public:
  void add(double value);
  bool empty() const { return low_ > high_; }
  double low() const { return low_; }
  double high() const { return high_; }

 private:
  double low_ = std::numeric_limits<double>::infinity();
  double high_ = -std::numeric_limits<double>::infinity();
};

// The range of an axis: the extent widened by `padding` of its length at each side (1 if empty), or
// the limits that the axis sets. `what` names the axis in errors: a logarithmic axis refuses values
// at or below zero, and low must be below high.
Range shown_range(const Axis& axis, const Extent& extent, double padding, std::string_view what);

// The place of a value on the axis: 0 at the low end, 1 at the high end, outside [0, 1] if it lies
// outside the range.
double fraction(Scale scale, Range range, double value);

struct Tick {
  double value = 0;
  std::string label;
};

// Ticks at round values inside the range: about `wanted` of them, never more than twice as many.
std::vector<Tick> ticks(Scale scale, Range range, int wanted);

// "loss (nats per byte)"
std::string axis_title(const Axis& axis);

}  // namespace sextant::chart
