// Position interpolation: the same range of angles, over a sequence that is `factor` times as long.
//
// Chen et al. 2023 (arXiv 2306.15595) and kaiokendev 2023: theta'_f = theta_f / s. Hugging Face's
// rope_type "linear". Some implementations divide positions instead of frequencies, which is the
// same up to rounding.
#pragma once

#include "sextant/base/export.h"
#include "sextant/position/spectrum.h"

namespace sextant {

struct Linear {
  double factor = 1;  // s, at least 1

  friend bool operator==(const Linear&, const Linear&) = default;
};

// Throws Error if the factor is not a finite number of at least 1; so do all other stretches.
SEXTANT_API Spectrum stretched(Spectrum spectrum, const Linear& linear);

}  // namespace sextant
