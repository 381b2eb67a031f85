#include "sextant/chart/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sextant/base/error.h"
#include "sextant/chart/text.h"

namespace sextant::chart {
namespace {

double forwards(Scale scale, double value) {
  if (scale == Scale::kLinear) return value;
  return scale == Scale::kLog10 ? std::log10(value) : std::log2(value);
}

double backwards(Scale scale, double value) {
  if (scale == Scale::kLinear) return value;
  return scale == Scale::kLog10 ? std::pow(10.0, value) : std::exp2(value);
}

// Below these lengths, absolute and relative, steps between ticks would be lost in rounding.
constexpr double kTiny = 1e-300, kNarrow = 1e-12;

bool too_narrow(double low, double high) {
  return !(high - low > std::max(kTiny, kNarrow * std::max(std::abs(low), std::abs(high))));
}

// 1, 2 or 5 times a power of ten, such that about `wanted` steps cover `length`.
double nice_step(double length, int wanted) {
  const double rough = length / wanted;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  const double lead = rough / power;
  return (lead < 1.5 ? 1 : lead < 3.5 ? 2 : lead < 7.5 ? 5 : 10) * power;
}

std::string tick_label(double value, double step) {
  const double places = -std::floor(std::log10(step) + 1e-9);
  if (step >= 1e6 || (std::abs(value) < 1e-3 && step < 1e-4)) {
    const double digits = value == 0 ? 1 : std::log10(std::abs(value) / step) + 2;
    return pretty(value, std::clamp(static_cast<int>(digits), 1, 15));
  }
  return pretty_fixed(value, std::clamp(static_cast<int>(places), 0, 15));
}

std::vector<Tick> linear_ticks(Range range, int wanted) {
  const double length = range.high - range.low;
  const double step = nice_step(length, wanted);
  std::vector<Tick> out;
  const double slack = 1e-9 * length;
  for (double n = std::ceil((range.low - slack) / step); n * step <= range.high + slack; ++n)
    out.push_back({n * step, tick_label(n * step, step)});
  return out;
}

// Ticks at every n-th power of the base; where there are few decades, also at 2 and 5 times the
// powers of ten.
std::vector<Tick> log_ticks(Scale scale, Range range, int wanted) {
  const double low = forwards(scale, range.low), high = forwards(scale, range.high);
  constexpr double kSlack = 1e-9;
  const double stride = std::max(1.0, std::ceil((high - low) / wanted));
  const bool halfway = scale == Scale::kLog10 && high - low < wanted / 3.0;
  std::vector<Tick> out;
  const auto add = [&](double value) {
    const double place = forwards(scale, value);
    if (place < low - kSlack || place > high + kSlack) return;
    out.push_back({value, pretty(value, value >= 1 && value < 1e7 ? 7 : 3)});
  };
  for (double n = std::floor(low / stride) * stride; n <= high + kSlack; n += stride) {
    add(backwards(scale, n));
    if (!halfway) continue;
    add(2 * backwards(scale, n));
    add(5 * backwards(scale, n));
  }
  return out;
}

}  // namespace

void Extent::add(double value) {
  if (!std::isfinite(value)) return;
  low_ = std::min(low_, value);
  high_ = std::max(high_, value);
}

Range shown_range(const Axis& axis, const Extent& extent, double padding, std::string_view what) {
  const bool log = axis.scale != Scale::kLinear;
  const auto check = [&](double value) {
    if (!std::isfinite(value) || (log && value <= 0))
      fail(fmt::format("{}: expected {}, but got {}", what,
                       log ? "values above 0 on a logarithmic axis" : "finite limits", value));
  };
  Range seen = log ? Range{1, 10} : Range{0, 1};
  if (!extent.empty()) {
    seen = {extent.low(), extent.high()};
    check(seen.low);
  }
  double low = forwards(axis.scale, seen.low), high = forwards(axis.scale, seen.high);
  if (too_narrow(low, high)) {
    const double room = log || std::abs(low) < kTiny ? 1 : 0.1 * std::abs(low);
    low -= room;
    high += room;
  } else {
    const double room = padding * (high - low);
    low -= room;
    high += room;
  }
  Range range = {backwards(axis.scale, low), backwards(axis.scale, high)};
  if (axis.low) check(range.low = *axis.low);
  if (axis.high) check(range.high = *axis.high);
  if (too_narrow(range.low, range.high) || !std::isfinite(range.high - range.low))
    fail(fmt::format("{}: expected a range with room for ticks, but got {} to {}", what, range.low,
                     range.high));
  return range;
}

double fraction(Scale scale, Range range, double value) {
  const double low = forwards(scale, range.low), high = forwards(scale, range.high);
  return (forwards(scale, value) - low) / (high - low);
}

std::vector<Tick> ticks(Scale scale, Range range, int wanted) {
  wanted = std::max(wanted, 1);
  if (scale == Scale::kLinear) return linear_ticks(range, wanted);
  std::vector<Tick> out = log_ticks(scale, range, wanted);
  // If a logarithmic axis spans less than its base, plain round numbers are more useful.
  if (out.size() < 3) out = linear_ticks(range, wanted);
  return out;
}

std::string axis_title(const Axis& axis) {
  if (axis.unit.empty()) return axis.label;
  return axis.label.empty() ? axis.unit : axis.label + " (" + axis.unit + ")";
}

}  // namespace sextant::chart
