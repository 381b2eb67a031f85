#include "sextant/position/stretch/linear.h"

#include "sextant/position/stretch/check.h"

namespace sextant {

Spectrum stretched(Spectrum spectrum, const Linear& linear) {
  check_factor("linear", linear.factor);
  for (Spectrum::Pair& pair : spectrum.pairs) pair.frequency = pair.frequency / Real(linear.factor);
  return spectrum;
}

}  // namespace sextant
