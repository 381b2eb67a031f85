// NTK by parts: pairs that turned many times within the training length are kept, pairs that never
// completed a turn are interpolated, and those between get a share of both.
//
// Peng et al. 2023 (YaRN, arXiv 2309.00071, equations 17 to 20), with r_f = L theta_f / (2 pi) the
// turns of pair f within L = original_length:
//
//   theta'_f = (1 - gamma) theta_f / s + gamma theta_f,   gamma = clip((r_f - slow) / (fast -
//   slow), 0, 1)
//
// slow = 1, fast = 32 in the paper. Llama 3 (Hugging Face's rope_type "llama3") is this very
// formula with slow = low_freq_factor and fast = high_freq_factor, 1 and 4.
//
// Code that says YaRN does not compute this: see yarn.h. And the first code of this name
// ("PartNTK", jquesnelle/yarn) blends three ladders by constants that were tuned for Llama:
// PartNtk.
#pragma once

#include <cstdint>

#include "sextant/position/spectrum.h"

namespace sextant {

struct ByParts {
  double factor = 1;            // s
  int64_t original_length = 0;  // L
  double slow = 1, fast = 32;   // turns within L; equal: a step

  friend bool operator==(const ByParts&, const ByParts&) = default;
};

struct PartNtk {
  double factor = 1;            // s
  int64_t original_length = 0;  // L
  double base = 10000;          // of the spectrum

  friend bool operator==(const PartNtk&, const PartNtk&) = default;
};

// Throws Error too if the length is below 1, or not 0 < slow <= fast.
Spectrum stretched(Spectrum spectrum, const ByParts& parts);
// Throws Error too if the length is below 1, or the base is not above 1.
Spectrum stretched(Spectrum spectrum, const PartNtk& parts);

}  // namespace sextant
