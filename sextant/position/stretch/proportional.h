// p-RoPE: only the fastest pairs rotate; the others carry content alone.
//
// Barbero et al. 2024 ("Round and round we go", arXiv 2410.06205); Hugging Face's rope_type
// "proportional", Gemma 4's global layers with p = 0.25. The first floor(p n) of the n pairs of the
// full spectrum keep their frequencies, divided by `factor`, and the others have frequency 0.
// Partial rotary with the same share is different: its spectrum has fewer pairs, over fewer
// channels.
#pragma once

#include "sextant/base/export.h"
#include "sextant/position/spectrum.h"

namespace sextant {

struct Proportional {
  double part = 1;    // p, above 0 and at most 1
  double factor = 1;  // s

  friend bool operator==(const Proportional&, const Proportional&) = default;
};

// Also throws Error unless 0 < part <= 1.
SEXTANT_API Spectrum stretched(Spectrum spectrum, const Proportional& proportional);

}  // namespace sextant
