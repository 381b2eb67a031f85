// Real: an unevaluated sum of two doubles, about 106 bits, for the few values per model that must
// be right to the last bit of a phase: a frequency with 53 bits only gives an error of 2e-7 radians
// at position 2^31.
//
// Sums, products and quotients follow Dekker 1971, Knuth TAOCP 2, 4.2.2, and Hida, Li and Bailey
// 2001 (QD); each is within 2^-102 of its result. They need round-to-nearest and no contraction of
// a*b+c (the build passes -ffp-contract=off). exp, log and pow are computed in 128-bit fixed point,
// so no rounding errors accumulate between two roundings to Real.
#pragma once

#include "sextant/base/export.h"

namespace sextant {

struct Real {
  double high = 0;
  double low = 0;

  constexpr Real() = default;
  constexpr Real(double value) : high(value) {}  // NOLINT(google-explicit-constructor)
  constexpr Real(double h, double l) : high(h), low(l) {}
  explicit constexpr operator double() const { return high + low; }
};

SEXTANT_API Real operator+(Real a, Real b);
SEXTANT_API Real operator-(Real a, Real b);
SEXTANT_API Real operator-(Real a);
SEXTANT_API Real operator*(Real a, Real b);
SEXTANT_API Real operator/(Real a, Real b);

// Within 2^-105 of the result, where the result and its low part are normal doubles; infinity or 0
// beyond the range of double.
SEXTANT_API Real exp(Real x);
// Error within 2^-105 |log x| + 2^-115. Throws Error unless x is finite and above 0.
SEXTANT_API Real log(Real x);
// Error within 2^-105 (1 + |y log x|) of the result. Throws Error as log does, or if y is not
// finite.
SEXTANT_API Real pow(Real x, Real y);

}  // namespace sextant
