#include "sextant/position/stretch/proportional.h"

#include <cmath>

#include "sextant/position/stretch/check.h"

namespace sextant {

Spectrum stretched(Spectrum spectrum, const Proportional& proportional) {
  check_factor("proportional", proportional.factor);
  if (!(proportional.part > 0 && proportional.part <= 1)) {
    fail("proportional: part: expected a number above 0 and at most 1, but got " +
         std::to_string(proportional.part));
  }
  const auto pairs = static_cast<double>(spectrum.pairs.size());
  const auto kept = static_cast<size_t>(std::floor(proportional.part * pairs));
  for (size_t f = 0; f < spectrum.pairs.size(); ++f) {
    Real& frequency = spectrum.pairs[f].frequency;
    frequency = f < kept ? frequency / Real(proportional.factor) : Real(0);
  }
  return spectrum;
}

}  // namespace sextant
