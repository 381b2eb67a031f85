// p-RoPE: only the fastest pairs turn, and the others carry content alone.
//
// Barbero et al. 2024 ("Round and round we go", arXiv 2410.06205); Hugging Face's rope_type
// "proportional", Gemma 4's global layers with p = 0.25. Of the n pairs of the full ladder the
// first floor(p n) keep their speeds, which `factor` divides, and the rest stand still. Partial
// rotary with the same share is another thing: it has a shorter ladder over fewer channels.
#pragma once

#include "sextant/position/spectrum.h"

namespace sextant {

struct Proportional {
  double part = 1;    // p, above 0 and at most 1
  double factor = 1;  // s

  friend bool operator==(const Proportional&, const Proportional&) = default;
};

// Throws Error too unless 0 < part <= 1.
Spectrum stretched(Spectrum spectrum, const Proportional& proportional);

}  // namespace sextant
