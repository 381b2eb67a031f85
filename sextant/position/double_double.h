// Real: an unevaluated sum of two doubles, about 106 bits, for the few numbers per model that must
// be right to the last bit of a phase: a speed known to 53 bits only is 2e-7 radians off at
// position 2^31.
//
// Sums, products and quotients: Dekker 1971, Knuth TAOCP 2, 4.2.2; Hida, Li and Bailey 2001 (QD);
// each is within 2^-102 of its result. They need round to nearest and no contraction of a*b+c (the
// build passes -ffp-contract=off). exp, log and pow are computed in 128-bit fixed point: between
// two roundings to Real there is nothing to add up.
#pragma once

namespace sextant {

struct Real {
  double high = 0;
  double low = 0;

  constexpr Real() = default;
  constexpr Real(double value) : high(value) {}  // NOLINT(google-explicit-constructor)
  constexpr Real(double h, double l) : high(h), low(l) {}
  explicit constexpr operator double() const { return high + low; }
};

Real operator+(Real a, Real b);
Real operator-(Real a, Real b);
Real operator-(Real a);
Real operator*(Real a, Real b);
Real operator/(Real a, Real b);

// Within 2^-105 of the result, where that and its low part are normal doubles; beyond the range of
// double infinity or 0.
Real exp(Real x);
// Within 2^-105 |log x| + 2^-115. Throws Error unless x is finite and above 0.
Real log(Real x);
// Within 2^-105 (1 + |y log x|) of the result. Throws Error as log does, or if y is not finite.
Real pow(Real x, Real y);

}  // namespace sextant
