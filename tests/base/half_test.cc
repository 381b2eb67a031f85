// 16-bit floats: their values, rounding to them, and the kernels' conversion from them.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "sextant/attention/attend.h"
#include "sextant/base/packed.h"
#include "tests/attention/every_target.h"

namespace sextant {
namespace {

constexpr int kPatterns = 1 << 16;

template <class Number>
Number at(int bits) {
  return {static_cast<uint16_t>(bits)};
}

// The value by definition: sign, exponent, fraction.
double defined(int bits, int fraction_bits, int bias) {
  const int exponent_bits = 15 - fraction_bits, exponents = (1 << exponent_bits) - 1;
  const double sign = bits >> 15 ? -1 : 1;
  const int exponent = bits >> fraction_bits & exponents;
  const int fraction = bits & ((1 << fraction_bits) - 1);
  if (exponent == exponents)
    return fraction != 0 ? std::nan("") : sign * std::numeric_limits<double>::infinity();
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - fraction_bits);
  return sign * std::ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
}

template <class Number>
double defined(int bits) {
  return std::is_same_v<Number, Float16> ? defined(bits, 10, 15) : defined(bits, 7, 127);
}

template <class Number>
class Narrow : public testing::Test {};
using HalfTypes = testing::Types<Bfloat16, Float16>;
TYPED_TEST_SUITE(Narrow, HalfTypes);

TYPED_TEST(Narrow, NumbersAreWhatTheirBitsSayAndComeBack) {
  for (int bits = 0; bits < kPatterns; ++bits) {
    const auto x = static_cast<double>(to_float(at<TypeParam>(bits)));
    const double expected = defined<TypeParam>(bits);
    const int back = narrowed<TypeParam>(static_cast<float>(x)).bits;
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(x)) << bits;
      EXPECT_TRUE(std::isnan(to_float(at<TypeParam>(back)))) << bits;
    } else {
      EXPECT_EQ(x, expected) << bits;
      EXPECT_EQ(back, bits);
    }
  }
}

// A value between two neighbours is rounded to the nearer one, and to the even one from the middle;
// float64 is rounded in one step.
TYPED_TEST(Narrow, RoundsToTheNearestAndTiesToEven) {
  constexpr int kInfinity = std::is_same_v<TypeParam, Float16> ? 0x7c00 : 0x7f80;
  for (int bits = 0; bits < kInfinity; ++bits) {
    const double low = defined<TypeParam>(bits);
    // Rounding treats infinity as the next value in the sequence.
    const double high = bits + 1 < kInfinity ? defined<TypeParam>(bits + 1)
                                             : 2 * low - defined<TypeParam>(bits - 1);
    const double middle = (low + high) / 2;
    const int even = bits % 2 == 0 ? bits : bits + 1;
    for (const int sign : {1, -1}) {
      const int sign_bits = sign < 0 ? 0x8000 : 0;
      const auto rounded = [&](double x) {
        return narrowed<TypeParam>(rounded_to_odd(sign * x)).bits - sign_bits;
      };
      EXPECT_EQ(rounded(middle), even) << middle;
      EXPECT_EQ(rounded(std::nextafter(middle, low)), bits) << middle;
      EXPECT_EQ(rounded(std::nextafter(middle, high)), bits + 1) << middle;
      const auto above =
          std::nextafter(static_cast<float>(middle), std::numeric_limits<float>::infinity());
      EXPECT_EQ(narrowed<TypeParam>(static_cast<float>(sign) * above).bits - sign_bits, bits + 1);
    }
  }
}

// Values below the range of float32, negative ones included.
TYPED_TEST(Narrow, WhatIsTinyBecomesZeroOfItsSign) {
  for (const double tiny : {5e-324, 1e-60, 7e-46}) {
    EXPECT_EQ(narrowed<TypeParam>(rounded_to_odd(tiny)).bits, 0) << tiny;
    EXPECT_EQ(narrowed<TypeParam>(rounded_to_odd(-tiny)).bits, 0x8000) << tiny;
  }
}

// Each query sees one key, so its output is that key's value, on every target and in every format
// of out.
TYPED_TEST(Narrow, NumbersPassThroughTheBackends) {
  constexpr int64_t kColumns = 64, kRows = kPatterns / kColumns;
  std::vector<TypeParam> values;
  for (int bits = 0; bits < kPatterns; ++bits) values.push_back(at<TypeParam>(bits));
  const std::vector<float> zeros(kRows);
  std::vector<TypeParam> out(kPatterns);
  std::vector<float> lse(kRows);
  std::vector<KeyRange> key_ranges;
  for (int64_t i = 0; i < kRows; ++i) key_ranges.push_back({i, i + 1});
  const Score<float> score = {{.q = packed(zeros.data(), 1, 1, kRows, 1),
                               .k = packed(zeros.data(), 1, 1, kRows, 1),
                               .v = packed(std::as_const(values).data(), 1, 1, kRows, kColumns)},
                              {.frames = {{.queries = kRows, .keys = kRows}},
                               .sweeps = {{.key_ranges = key_ranges.data()}}}};
  const auto expect_values = [&](const Backend& backend) {
    attend<float>(score,
                  {packed(out.data(), 1, 1, kRows, kColumns), packed(lse.data(), 1, 1, kRows, 1)},
                  backend, serial_executor());
    for (int bits = 0; bits < kPatterns; ++bits) {
      const float got = to_float(out[static_cast<size_t>(bits)]),
                  expected = to_float(at<TypeParam>(bits));
      ASSERT_TRUE(got == expected || (std::isnan(got) && std::isnan(expected)))
          << bits << ": expected " << expected << ", but got " << got;
    }
  };
  expect_values(reference_backend());
  on_every_target([&] { expect_values(cpu_backend()); });
}

}  // namespace
}  // namespace sextant
