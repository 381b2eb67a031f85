// Real: an unevaluated sum of two doubles, about 106 bits, for the few numbers per model that must be
// right to the last bit of a phase: a speed known to 53 bits only is 2e-7 radians off at position 2^31.
//
// Algorithms: Dekker 1971, Knuth TAOCP 2, 4.2.2; Hida, Li and Bailey 2001 (QD). They need round to
// nearest and no contraction of a*b+c (the build passes -ffp-contract=off).
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
Real operator*(Real a, Real b);
Real operator/(Real a, Real b);
Real exp(Real x);
Real log(Real x);  // x > 0
Real pow(Real x, Real y);  // x > 0

}  // namespace sextant
