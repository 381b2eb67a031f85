// Ramps between "interpolated" and "kept", by turns within the training length or by the pair's
// index.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "sextant/position/double_double.h"

namespace sextant {

// The number of turns of a pair of this frequency within `length` positions.
Real turns_within(int64_t length, Real frequency);

bool at_least(Real x, double least);

// frequency * kept + frequency / factor * (1 - kept): exactly the frequency if kept or factor is 1,
// exactly the quotient if kept is 0.
Real partly_divided(Real frequency, Real kept, double factor);

// The ramp of released YaRN models, linear in the index f of the pair, fastest first:
//
//   pair(r) = R ln(L / (2 pi r)) / (2 ln base)   the fractional index of the pair that completes
//                                                r turns within L
//   low = max(floor pair(fast), 0),   high = min(ceil pair(slow), R - 1)
//
// The ramp is 0 up to pair `low` and 1 from pair `high` on. R - 1 looks like a slip for R/2 - 1,
// but models were trained with it. truncate = false omits floor and ceil (gpt-oss). Where low =
// high, 0.001 is added to high.
struct PairRamp {
  struct Options {
    size_t pairs = 0;  // R/2
    double base = 0;
    int64_t original_length = 0;  // L
    double fast = 32, slow = 1;   // turns within L
    bool truncate = true;
  };

  Real low = 0, high = 1;

  // Throws Error, in the name of `method`, if an option is out of range. If fast is below slow, low
  // is above high and the ramp is reversed, as in every engine.
  static PairRamp between(const Options& options, const std::string& method);

  // The share of pair f that is interpolated, 0 to 1.
  Real interpolated(double f) const;
};

}  // namespace sextant
