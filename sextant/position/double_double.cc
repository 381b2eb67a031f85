#include "sextant/position/double_double.h"

#include <cmath>
#include <initializer_list>
#include <limits>
#include <string>

#include "sextant/base/error.h"
#include "sextant/position/fixed_point.h"

namespace sextant {
namespace {

constexpr Uint128 kLn2 = uint128(0xb17217f7d1cf79ab, 0xc9e3b39803f2f6af);  // in units of 2^-128

// a + b exactly.
Real two_sum(double a, double b) {
  const double sum = a + b;
  const double b_part = sum - a;
  return {sum, (a - (sum - b_part)) + (b - b_part)};
}

// The same, for |a| >= |b|.
Real fast_two_sum(double a, double b) {
  const double sum = a + b;
  return {sum, b - (sum - a)};
}

// a * b exactly.
Real two_product(double a, double b) {
  const double product = a * b;
  return {product, std::fma(a, b, -product)};
}

// e^r for |r| < 1/2, with r in units of 2^-128 and the result in units of 2^-126: 28 terms of the
// Taylor series, whose remainder is below 2^-130 for |r| <= ln(2)/2.
Uint128 exp_reduced(Int128 r) {
  constexpr Uint128 kOne = Uint128{1} << 126;
  const Uint128 magnitude = r < 0 ? -static_cast<Uint128>(r) : static_cast<Uint128>(r);
  Uint128 sum = kOne;
  for (unsigned n = 28; n > 0; --n) {
    const Uint128 term = high_product(magnitude, sum) / n;
    sum = r < 0 ? kOne - term : kOne + term;
  }
  return sum;
}

// e to the exact sum of `terms`.
Real exp_of_sum(std::initializer_list<double> terms) {
  double x = 0;
  for (double term : terms) x += term;
  if (std::isnan(x)) return x;
  if (x > 710) return std::numeric_limits<double>::infinity();
  if (x < -746) return 0;
  // Only the fractions of x and of k ln 2 are needed, because their difference is small.
  const auto k = static_cast<int>(std::nearbyint(x / 0.6931471805599453));
  Uint128 r = -(static_cast<Uint128>(static_cast<Int128>(k)) * kLn2);
  for (double term : terms) r += fixed_point(term, 128);
  const Real e = real(static_cast<Int128>(exp_reduced(static_cast<Int128>(r))), 126);
  return {std::ldexp(e.high, k), std::ldexp(e.low, k)};
}

}  // namespace

Real operator+(Real a, Real b) {
  const Real high = two_sum(a.high, b.high);
  const Real low = two_sum(a.low, b.low);
  const Real sum = fast_two_sum(high.high, high.low + low.high);
  return fast_two_sum(sum.high, sum.low + low.low);
}

Real operator-(Real a) { return {-a.high, -a.low}; }

Real operator-(Real a, Real b) { return a + -b; }

Real operator*(Real a, Real b) {
  const Real product = two_product(a.high, b.high);
  return fast_two_sum(product.high, product.low + (a.high * b.low + a.low * b.high));
}

Real operator/(Real a, Real b) {
  const double first = a.high / b.high;
  Real rest = a - b * first;
  const double second = rest.high / b.high;
  rest = rest - b * second;
  return fast_two_sum(first, second) + rest.high / b.high;
}

Real exp(Real x) { return exp_of_sum({x.high, x.low}); }

// log x = k ln 2 + y + log(m e^-y) for x = 2^k m, where y is log m rounded to double. The last
// logarithm is then log(1 + t) with |t| < 2^-51, and two terms of its series are enough.
Real log(Real x) {
  if (!(x.high > 0 && std::isfinite(x.high))) {
    fail("log: x: expected a finite number above 0, but got " + std::to_string(x.high));
  }
  int k = 0;
  if (std::frexp(x.high, &k) < 0.7071) --k;
  const double m_high = std::ldexp(x.high, -k), m_low = std::ldexp(x.low, -k);
  const double y = std::log(m_high);

  const Uint128 m = fixed_point(m_high, 126) + fixed_point(m_low, 126);
  const Uint128 e = exp_reduced(static_cast<Int128>(fixed_point(-y, 128)));
  const auto t = static_cast<Int128>(high_product(m, e) - (Uint128{1} << 124));
  const double t_value = std::ldexp(static_cast<double>(t), -124);

  constexpr int kBits = 116;  // |log x| < 2^10
  const auto ln2 = static_cast<Int128>(kLn2 >> (128 - kBits));
  const auto small =
      static_cast<Int128>(fixed_point(y, kBits) - fixed_point(t_value * t_value / 2, kBits));
  return real(k * ln2 + small + (t >> (124 - kBits)), kBits);
}

Real pow(Real x, Real y) {
  if (!std::isfinite(y.high)) {
    fail("pow: y: expected a finite number, but got " + std::to_string(y.high));
  }
  const Real l = log(x);
  const Real a = two_product(y.high, l.high);
  const Real b = two_product(y.high, l.low);
  const Real c = two_product(y.low, l.high);
  return exp_of_sum({a.high, a.low, b.high, b.low, c.high, c.low, y.low * l.low});
}

}  // namespace sextant
