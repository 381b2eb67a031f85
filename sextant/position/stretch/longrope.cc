#include "sextant/position/stretch/longrope.h"

#include <cmath>

#include "sextant/position/stretch/check.h"

namespace sextant {

double longrope_gain(double factor, int64_t original_length) {
  if (original_length < 2) {
    fail("longrope: original_length: expected at least 2, but got " +
         std::to_string(original_length));
  }
  if (factor <= 1) return 1;
  return std::sqrt(1 + std::log(factor) / std::log(static_cast<double>(original_length)));
}

std::vector<double> grown_longrope_factors(const std::vector<double>& factors, double factor,
                                           double times) {
  if (!(factor > 1 && std::isfinite(factor))) {
    fail("longrope: factor: expected a finite number above 1, but got " + std::to_string(factor));
  }
  const double grown = (times - 1) / (factor - 1);
  std::vector<double> result;
  result.reserve(factors.size());
  for (const double lambda : factors) result.push_back(1 + (lambda - 1) * grown);
  return result;
}

Spectrum stretched(Spectrum spectrum, const LongRope& longrope) {
  if (longrope.factors.size() != spectrum.pairs.size()) {
    fail("longrope: factors: expected one for each of " + std::to_string(spectrum.pairs.size()) +
         " pairs, but got " + std::to_string(longrope.factors.size()));
  }
  check_above_0("longrope", "gain", longrope.gain);
  spectrum.gain *= longrope.gain;
  for (size_t f = 0; f < spectrum.pairs.size(); ++f) {
    check_above_0("longrope", "factors", longrope.factors[f]);
    spectrum.pairs[f].frequency = spectrum.pairs[f].frequency / Real(longrope.factors[f]);
  }
  return spectrum;
}

}  // namespace sextant
