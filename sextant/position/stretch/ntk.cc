#include "sextant/position/stretch/ntk.h"

#include "sextant/position/stretch/check.h"

namespace sextant {

Spectrum stretched(Spectrum spectrum, const Ntk& ntk) {
  check_factor("ntk", ntk.factor);
  const auto pairs = static_cast<double>(spectrum.pairs.size());
  if (pairs < 2) return spectrum;  // the only pair is the fastest one
  double f = 0;
  for (Spectrum::Pair& pair : spectrum.pairs) {
    pair.frequency = pair.frequency * pow(ntk.factor, Real(-f) / Real(pairs - 1));
    ++f;
  }
  return spectrum;
}

Spectrum stretched(Spectrum spectrum, const NtkMixed& ntk) {
  check_factor("ntk-mixed", ntk.factor);
  if (!(ntk.exponent >= 0 && std::isfinite(ntk.exponent))) {
    fail("ntk-mixed: exponent: expected a finite number of at least 0, but got " +
         std::to_string(ntk.exponent));
  }
  const auto pairs = static_cast<double>(spectrum.pairs.size());
  double f = 0;
  for (Spectrum::Pair& pair : spectrum.pairs) {
    ++f;
    // a (f+1)^b = ln s * ((f+1) / n)^b
    pair.frequency = pair.frequency * pow(ntk.factor, -pow(Real(f) / Real(pairs), ntk.exponent));
  }
  return spectrum;
}

}  // namespace sextant
