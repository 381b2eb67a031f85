// The 16-bit floating-point types of model weights and activations, for storage only: everything is
// computed in float32 or better. Widening is exact. Narrowing rounds once, to nearest, ties to
// even; values too large for float16 (65520 and more) become infinite, and NaN stays NaN.
//
//   bfloat16   sign, 8 bits of exponent, 7 of fraction: the upper half of a float32
//   float16    sign, 5 bits of exponent, 10 of fraction: IEEE 754 binary16
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

namespace sextant {

struct Bfloat16 {
  uint16_t bits = 0;
};
struct Float16 {
  uint16_t bits = 0;
};

template <class Number>
inline constexpr bool kIsNarrow =
    std::is_same_v<Number, Bfloat16> || std::is_same_v<Number, Float16>;

inline float to_float(float x) { return x; }
inline double to_float(double x) { return x; }
inline float to_float(Bfloat16 x) { return std::bit_cast<float>(uint32_t{x.bits} << 16); }
inline float to_float(Float16 x) {
  constexpr uint32_t kBias = (127 - 15) << 23, kLeastNormal = 1 << 23, kInfinity = 31 << 23;
  const uint32_t magnitude = (x.bits & 0x7fffU) << 13;
  const uint32_t sign = (x.bits & 0x8000U) << 16;
  if (magnitude < kLeastNormal) {
    const float subnormal = static_cast<float>(x.bits & 0x7fffU) * 0x1p-24F;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(subnormal) | sign);
  }
  const uint32_t wide = magnitude >= kInfinity ? magnitude | 0x7f800000U : magnitude + kBias;
  return std::bit_cast<float>(wide | sign);
}

// x in float32, rounded to odd: an inexact result has its last bit set. A second rounding, to 16
// bits, then gives the same result as a single rounding of x.
inline float rounded_to_odd(double x) {
  const auto nearest = static_cast<float>(x);
  const auto bits = std::bit_cast<uint32_t>(nearest);
  const double got = nearest;
  if (got == x || x != x || (bits & 1U) != 0) return nearest;
  // Compares magnitudes, because bits count away from zero; an x that rounded to -0 needs this too.
  return std::bit_cast<float>(std::abs(got) > std::abs(x) ? bits - 1 : bits + 1);
}

template <class Number>
Number narrowed(float x);
template <>
inline float narrowed<float>(float x) {
  return x;
}
template <>
inline Bfloat16 narrowed<Bfloat16>(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  const uint32_t rounded = bits + 0x7fffU + ((bits >> 16) & 1U);
  return {static_cast<uint16_t>((x != x ? bits | 0x400000U : rounded) >> 16)};
}
template <>
inline Float16 narrowed<Float16>(float x) {
  constexpr uint32_t kBias = (127 - 15) << 23;
  constexpr uint32_t kLeastNormal = 0x38800000, kTooLarge = 0x477ff000, kInfinity = 0x7f800000;
  const auto bits = std::bit_cast<uint32_t>(x);
  const uint32_t magnitude = bits & 0x7fffffffU;
  uint32_t narrow = 0;
  if (magnitude > kInfinity) {
    narrow = 0x7e00U | (magnitude >> 13 & 0x3ffU);
  } else if (magnitude >= kTooLarge) {
    narrow = 0x7c00U;
  } else if (magnitude >= kLeastNormal) {
    narrow = (magnitude - kBias + 0xfffU + ((magnitude >> 13) & 1U)) >> 13;
  } else {
    // Subnormal: adding 0.5, whose last bit is worth 2^-24, rounds to a multiple of 2^-24.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
    narrow = std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(0.5F);
  }
  return {static_cast<uint16_t>(narrow | (bits >> 16 & 0x8000U))};
}

}  // namespace sextant
