// NTK-aware scaling: slow pairs are interpolated, fast ones, which tell neighbours apart, hardly at
// all.
//
// bloc97 2023: RoPE with base' = base * s^(R/(R-2)), that is theta'_f = theta_f * s^(-2f/(R-2)).
// The fastest pair keeps its speed and the slowest is divided by s.
//
// Su 2023 (kexue.fm 9706; bojone/rerope, ntk_patch.py) starts from the number system that positions
// are written in, and lets the fastest digit take part: theta'_f = theta_f * exp(-a (f+1)^b), a =
// ln s / (R/2)^b. b = 1 is his "fixed" NTK, s^(-2(f+1)/R); b = 0.75 the "mixed" one of his code; b
// = 0 is interpolation.
//
// Both count pairs from the fastest one, and so want the ladder of one axis.
#pragma once

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

Spectrum stretched(Spectrum spectrum, const Ntk& ntk);
// Throws Error too unless the exponent is finite and at least 0.
Spectrum stretched(Spectrum spectrum, const NtkMixed& ntk);

}  // namespace sextant
