#include "sextant/position/stretch/ramp.h"

#include <cmath>

#include "sextant/position/stretch/check.h"

namespace sextant {
namespace {

constexpr Real kTurn{0x1.921fb54442d18p+2, 0x1.1a62633145c07p-52};  // 2 pi

Real absolute(Real x) { return x.high < 0 ? -x : x; }

bool below(Real a, Real b) { return a.high < b.high || (a.high == b.high && a.low < b.low); }

Real floor(Real x) {
  const double whole = std::floor(x.high);
  return whole == x.high && x.low < 0 ? whole - 1 : whole;
}

Real ceil(Real x) { return -floor(-x); }

}  // namespace

Real turns_within(int64_t length, Real frequency) {
  return Real(static_cast<double>(length)) * absolute(frequency) / kTurn;
}

bool at_least(Real x, double least) { return !below(x, least); }

Real partly_divided(Real frequency, Real kept, double factor) {
  const Real one = 1;
  if (factor == 1 || (kept.high == 1 && kept.low == 0)) return frequency;
  if (kept.high == 0) return frequency / Real(factor);
  return frequency * kept + frequency / Real(factor) * (one - kept);
}

PairRamp PairRamp::between(const Options& options, const std::string& method) {
  check_length(method, "original_length", options.original_length);
  check_above_0(method, "beta_fast", options.fast);
  check_above_0(method, "beta_slow", options.slow);
  if (!(options.base > 1 && std::isfinite(options.base))) {
    fail(method + ": base: expected a finite number above 1, but got " +
         std::to_string(options.base));
  }
  const Real pairs = static_cast<double>(options.pairs);
  const auto pair = [&](double turns) {
    const Real length = static_cast<double>(options.original_length);
    return pairs * log(length / (kTurn * Real(turns))) / log(options.base);
  };
  PairRamp ramp{.low = pair(options.fast), .high = pair(options.slow)};
  if (options.truncate) {
    ramp.low = floor(ramp.low);
    ramp.high = ceil(ramp.high);
  }
  const Real last = 2 * static_cast<double>(options.pairs) - 1;
  if (below(ramp.low, 0)) ramp.low = 0;
  if (below(last, ramp.high)) ramp.high = last;
  if (!below(ramp.low, ramp.high) && !below(ramp.high, ramp.low)) ramp.high = ramp.high + 0.001;
  return ramp;
}

Real PairRamp::interpolated(double f) const {
  const Real at = (Real(f) - low) / (high - low);
  if (below(at, 0)) return 0;
  return below(at, 1) ? at : 1;
}

}  // namespace sextant
