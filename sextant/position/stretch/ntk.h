// NTK-aware scaling: slow pairs are interpolated; fast pairs, which distinguish neighbours, hardly
// change.
//
// bloc97 2023: RoPE with base' = base * s^(R/(R-2)), that is theta'_f = theta_f * s^(-2f/(R-2)).
// The fastest pair keeps its frequency and the slowest is divided by s.
//
// Su 2023 (kexue.fm 9706; bojone/rerope, ntk_patch.py) interprets positions as digits of a number
// system and scales the fastest digit too: theta'_f = theta_f * exp(-a (f+1)^b), a = ln s /
// (R/2)^b. b = 1 is his "fixed" NTK, s^(-2(f+1)/R); b = 0.75 the "mixed" one of his code; b = 0 is
// interpolation.
//
// Both count pairs from the fastest one, so they apply to the spectrum of a single axis.
#pragma once

#include "sextant/base/export.h"
#include "sextant/position/spectrum.h"

namespace sextant {

struct Ntk {
  double factor = 1;  // s

  friend bool operator==(const Ntk&, const Ntk&) = default;
};

struct NtkMixed {
  double factor = 1;       // s
  double exponent = 0.75;  // b, at least 0

  friend bool operator==(const NtkMixed&, const NtkMixed&) = default;
};

SEXTANT_API Spectrum stretched(Spectrum spectrum, const Ntk& ntk);
// Also throws Error unless the exponent is finite and at least 0.
SEXTANT_API Spectrum stretched(Spectrum spectrum, const NtkMixed& ntk);

}  // namespace sextant
