// sqrt(x^2 + y^2) without intermediate overflow or underflow.
//
// std::hypot has a symbol version of glibc 2.35, so a library that calls it is refused by older
// systems. The error of the root is corrected after Borges 2019 ("An Improved Algorithm for
// hypot(a,b)"), and results are within 0.51 ulp, those below 2^-1022 within 1.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

namespace sextant {

inline double hypot(double x, double y) {
  const double high = std::max(std::abs(x), std::abs(y)), low = std::min(std::abs(x), std::abs(y));
  // As for std::hypot, an infinity counts even beside a NaN.
  if (std::isinf(x) || std::isinf(y)) return std::numeric_limits<double>::infinity();
  if (std::isnan(x) || std::isnan(y)) return x + y;
  if (low <= high * 0x1p-54) return high;
  // Powers of two, which are exact, keep the squares and their rounding errors in range.
  const double scale = high > 0x1p500 ? 0x1p-600 : high < 0x1p-400 ? 0x1p600 : 1;
  const double a = high * scale, b = low * scale, aa = a * a, bb = b * b;
  const double h = std::sqrt(aa + bb), hh = h * h;
  const double excess = std::fma(-b, b, hh - aa) + std::fma(h, h, -hh) - std::fma(a, a, -aa);
  return (h - excess / (2 * h)) / scale;
}

}  // namespace sextant
