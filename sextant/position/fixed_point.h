// 128-bit fixed-point arithmetic, used by Real's functions and by Turns. Private to position/.
//
// A value is an integer; the number of its fraction bits is known from context. All operations wrap
// modulo 2^128, which is right for angles and harmless for differences of close values.
#pragma once

#include <cmath>
#include <cstdint>

#include "sextant/position/double_double.h"

namespace sextant {

__extension__ typedef unsigned __int128 Uint128;
__extension__ typedef __int128 Int128;

inline constexpr Uint128 uint128(uint64_t high, uint64_t low) { return Uint128{high} << 64 | low; }

// The upper half of the 256-bit product, too small by at most 2.
inline Uint128 high_product(Uint128 a, Uint128 b) {
  const Uint128 a_high = a >> 64, a_low = static_cast<uint64_t>(a);
  const Uint128 b_high = b >> 64, b_low = static_cast<uint64_t>(b);
  const Uint128 middle = (a_high * b_low >> 64) + (a_low * b_high >> 64);
  const Uint128 carries =
      Uint128{static_cast<uint64_t>(a_high * b_low)} + static_cast<uint64_t>(a_low * b_high);
  return a_high * b_high + middle + (carries >> 64);
}

// x in units of 2^-fraction_bits, rounded towards zero, modulo 2^128. x is finite.
inline Uint128 fixed_point(double x, int fraction_bits) {
  int exponent = 0;
  const double mantissa = std::frexp(std::fabs(x), &exponent);
  const auto bits = static_cast<uint64_t>(std::ldexp(mantissa, 53));
  const int shift = exponent - 53 + fraction_bits;
  Uint128 magnitude = 0;
  if (shift >= 0 && shift < 128) magnitude = Uint128{bits} << shift;
  if (shift < 0 && shift > -64) magnitude = bits >> -shift;
  return x < 0 ? -magnitude : magnitude;
}

// The value of a signed integer below 2^126 in magnitude, in units of 2^-fraction_bits.
inline Real real(Int128 value, int fraction_bits) {
  const auto high = static_cast<double>(value);
  const auto low = static_cast<double>(value - static_cast<Int128>(high));
  return {std::ldexp(high, -fraction_bits), std::ldexp(low, -fraction_bits)};
}

}  // namespace sextant
