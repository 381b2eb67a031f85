// LongRoPE: each pair has its own divisor, found by search.
//
// Ding et al. 2024 (arXiv 2402.13753): theta'_f = theta_f / lambda_f, and queries and keys are
// multiplied by sqrt(1 + ln s / ln L). Models provide two lists (Hugging Face's rope_type
// "longrope", formerly "su"): short_factor for sequences up to L and long_factor for longer ones,
// with the same gain for both. The paper also leaves the first few tokens unchanged; released code
// does not.
#pragma once

#include <cstdint>
#include <vector>

#include "sextant/base/export.h"
#include "sextant/position/spectrum.h"

namespace sextant {

struct LongRope {
  std::vector<double> factors;  // lambda, one for each pair; above 0
  double gain = 1;

  friend bool operator==(const LongRope&, const LongRope&) = default;
};

// sqrt(1 + ln s / ln L); 1 for s <= 1. Throws Error if the length is below 2.
SEXTANT_API double longrope_gain(double factor, int64_t original_length);

// The divisors for sequences of length `times` L, interpolated linearly from 1 at L to `factors` at
// s L (microsoft/LongRoPE's "dynamic"): 1 + (lambda_f - 1) (times - 1) / (s - 1). Throws Error
// unless the factor s is above 1.
SEXTANT_API std::vector<double> grown_longrope_factors(const std::vector<double>& factors,
                                                       double factor, double times);

// Throws Error unless there is a divisor above 0 for each pair and the gain is above 0.
SEXTANT_API Spectrum stretched(Spectrum spectrum, const LongRope& longrope);

}  // namespace sextant
