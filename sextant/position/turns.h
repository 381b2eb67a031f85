// Angles as exact fractions of a full turn.
//
// A rotary phase is position * frequency, and only its fraction of a turn matters. In 128-bit fixed
// point (value / 2^128 of a turn) the product wraps exactly as the angle does, so phases are
// integers: phase(m) - phase(n) = phase(m - n) bit for bit, positions may be negative, and no
// position below 2^31 loses a bit that would show in a float32 cosine. A float32 product is wrong
// by 6e-2 at position 2^20 and meaningless at 2^24.
#pragma once

#include <cstdint>

#include "sextant/base/export.h"

namespace sextant {

struct Turns {
  uint64_t high = 0;  // units of 2^-64 turn
  uint64_t low = 0;   // units of 2^-128 turn

  friend bool operator==(Turns, Turns) = default;
};

// These operators wrap modulo one turn.
SEXTANT_API Turns operator+(Turns a, Turns b);
SEXTANT_API Turns operator-(Turns a, Turns b);
SEXTANT_API Turns operator*(Turns frequency, int64_t position);

struct CosSin {
  double cos = 1;
  double sin = 0;
};

// The relative error of both is below 2^-50, also near their zeros, so both round to float32 within
// 0.5001 ulp.
SEXTANT_API CosSin cos_sin(Turns angle);

}  // namespace sextant
