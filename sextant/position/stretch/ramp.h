// Ramps between "interpolated" and "kept", by turns within the training length or by the pair's
// index.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "sextant/position/double_double.h"

namespace sextant {

// How often a pair of this speed turns within `length` positions.
Real turns_within(int64_t length, Real speed);

bool at_least(Real x, double least);

// speed * kept + speed / factor * (1 - kept): exactly the speed if all is kept or the factor is 1,
// exactly the quotient if nothing is kept.
Real partly_divided(Real speed, Real kept, double factor);

// The ramp of released YaRN models, linear in the index f of the pair, fastest first:
//
//   pair(r) = R ln(L / (2 pi r)) / (2 ln base)   the index, not whole, of the pair that turns r
//   times within L low = max(floor pair(fast), 0),   high = min(ceil pair(slow), R - 1)
//
// 0 up to pair `low`, 1 from pair `high` on. R - 1 looks like a slip for R/2 - 1, but is what
// models were trained with. truncate = false leaves out floor and ceil (gpt-oss). Where low = high,
// high is 0.001 more.
struct PairRamp {
  struct Options {
    size_t pairs = 0;  // R/2
    double base = 0;
    int64_t original_length = 0;  // L
    double fast = 32, slow = 1;   // turns within L
    bool truncate = true;
  };

  Real low = 0, high = 1;

  // Throws Error, as `method`, if a number is out of range. fast below slow gives low above high,
  // and then the reverse of what was meant, as in every engine.
  static PairRamp between(const Options& options, const std::string& method);

  // How much of pair f is interpolated, 0 to 1.
  Real interpolated(double f) const;
};

}  // namespace sextant
