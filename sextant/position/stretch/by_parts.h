// NTK by parts: pairs that complete many turns within the training length keep their frequency,
// pairs that never complete a turn are interpolated, and pairs between are blended.
//
// Peng et al. 2023 (YaRN, arXiv 2309.00071, equations 17 to 20), where r_f = L theta_f / (2 pi) is
// the number of turns of pair f within L = original_length:
//
//   theta'_f = (1 - gamma) theta_f / s + gamma theta_f
//   gamma = clip((r_f - slow) / (fast - slow), 0, 1)
//
// slow = 1, fast = 32 in the paper. Llama 3 (Hugging Face's rope_type "llama3") uses the same
// formula with slow = low_freq_factor and fast = high_freq_factor, 1 and 4.
//
// Code named YaRN does not compute this: see yarn.h. The first code named "PartNTK"
// (jquesnelle/yarn) is a third formula, which blends three spectra with constants that were tuned
// for Llama: PartNtk.
#pragma once

#include <cstdint>

#include "sextant/base/export.h"
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

// Also throws Error if the length is below 1, or not 0 < slow <= fast.
SEXTANT_API Spectrum stretched(Spectrum spectrum, const ByParts& parts);
// Also throws Error if the length is below 1, or the base is not above 1.
SEXTANT_API Spectrum stretched(Spectrum spectrum, const PartNtk& parts);

}  // namespace sextant
