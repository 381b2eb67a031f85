#include "sextant/position/stretch/by_parts.h"

#include <algorithm>

#include "sextant/position/stretch/check.h"
#include "sextant/position/stretch/ramp.h"

namespace sextant {

Spectrum stretched(Spectrum spectrum, const ByParts& parts) {
  check_factor("by-parts", parts.factor);
  check_length("by-parts", "original_length", parts.original_length);
  check_above_0("by-parts", "slow", parts.slow);
  check_above_0("by-parts", "fast", parts.fast);
  if (parts.slow > parts.fast) {
    fail("by-parts: slow: expected at most fast, " + std::to_string(parts.fast) + ", but got " +
         std::to_string(parts.slow));
  }
  for (Spectrum::Pair& pair : spectrum.pairs) {
    const Real turns = turns_within(parts.original_length, pair.frequency);
    // Both ends are inclusive, so that slow = fast gives a step and no division by 0.
    Real kept = 0;
    if (at_least(turns, parts.fast)) {
      kept = 1;
    } else if (at_least(turns, parts.slow)) {
      kept = (turns - parts.slow) / (Real(parts.fast) - Real(parts.slow));
    }
    pair.frequency = partly_divided(pair.frequency, kept, parts.factor);
  }
  return spectrum;
}

Spectrum stretched(Spectrum spectrum, const PartNtk& parts) {
  check_factor("part-ntk", parts.factor);
  const auto ramp = [&](double fast, double slow) {
    return PairRamp::between({.pairs = spectrum.pairs.size(),
                              .base = parts.base,
                              .original_length = parts.original_length,
                              .fast = fast,
                              .slow = slow,
                              .truncate = true},
                             "part-ntk");
  };
  // Blends from interpolation to NTK where pairs complete about one turn within L, and from NTK to
  // plain RoPE between 2 and 16 turns.
  const PairRamp to_ntk = ramp(1.25, 0.75), to_plain = ramp(16, 2);
  const auto pairs = static_cast<double>(spectrum.pairs.size());
  double f = 0;
  for (Spectrum::Pair& pair : spectrum.pairs) {
    const Real linear = pair.frequency / Real(parts.factor);
    const Real ntk =
        pairs < 2 ? pair.frequency : pair.frequency * pow(parts.factor, Real(-f) / Real(pairs - 1));
    const Real one = 1, a = to_ntk.interpolated(f), b = to_plain.interpolated(f);
    pair.frequency = (linear * a + ntk * (one - a)) * b + pair.frequency * (one - b);
    ++f;
  }
  return spectrum;
}

}  // namespace sextant
