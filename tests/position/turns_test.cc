#include "sextant/position/turns.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <random>

namespace sextant {
namespace {

Turns random_turns(std::mt19937_64& random) { return {random(), random()}; }

int64_t random_position(std::mt19937_64& random) {
  return static_cast<int64_t>(random() >> 32) - (int64_t{1} << 31);
}

TEST(Turns, PhaseIsAHomomorphismBitForBit) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 10000; ++i) {
    const Turns frequency = random_turns(random);
    const int64_t m = random_position(random), n = random_position(random);
    EXPECT_EQ(frequency * m - frequency * n, frequency * (m - n));
    EXPECT_EQ(frequency * m + frequency * n, frequency * (m + n));
    EXPECT_EQ(Turns{} - frequency * m, frequency * -m);
  }
}

TEST(Turns, ProductIsARepeatedSum) {
  const Turns frequency{0xfedcba9876543210, 0x8123456789abcdef};
  Turns sum;
  for (int64_t n = 0; n < 100; ++n) {
    EXPECT_EQ(frequency * n, sum);
    sum = sum + frequency;
  }
}

TEST(Turns, QuartersOfATurnAreExact) {
  const Turns quarter{uint64_t{1} << 62, 0};
  const CosSin kTruth[] = {{1, 0}, {0, 1}, {-1, 0}, {0, -1}};
  for (int64_t n = -8; n < 8; ++n) {
    const CosSin value = cos_sin(quarter * n);
    EXPECT_EQ(value.cos, kTruth[n & 3].cos) << n;
    EXPECT_EQ(value.sin, kTruth[n & 3].sin) << n;
  }
}

TEST(Turns, CosAndSinAgreeWithLibm) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 100000; ++i) {
    const Turns angle{random(), 0};
    const long double radians =
        2 * std::numbers::pi_v<long double> * 0x1p-64L * static_cast<int64_t>(angle.high);
    const CosSin value = cos_sin(angle);
    EXPECT_NEAR(value.cos, static_cast<double>(std::cos(radians)), 0x1p-51);
    EXPECT_NEAR(value.sin, static_cast<double>(std::sin(radians)), 0x1p-51);
  }
}

// Angles down to the last of the 128 bits, beside each zero of cos and of sin.
TEST(Turns, NearZerosTheRelativeErrorStaysSmall) {
  const Turns quarter{uint64_t{1} << 62, 0};
  for (int bit = 0; bit < 112; ++bit) {
    Turns small;
    (bit < 64 ? small.low : small.high) = uint64_t{0x8765} << (bit < 64 ? bit : bit - 64);
    if (bit > 48 && bit < 64) continue;  // its bits would straddle both words
    const double x = 2 * std::numbers::pi * std::ldexp(0x8765, bit - 128);
    const double truth = std::sin(x);
    for (const bool negative : {false, true}) {
      const Turns angle = negative ? Turns{} - small : small;
      const double sign = negative ? -1 : 1;
      const double kBound = truth * 0x1p-50;
      EXPECT_NEAR(cos_sin(angle).sin, sign * truth, kBound) << bit;
      EXPECT_NEAR(cos_sin(quarter + angle).cos, -sign * truth, kBound) << bit;
      EXPECT_NEAR(cos_sin(quarter * 2 + angle).sin, -sign * truth, kBound) << bit;
      EXPECT_NEAR(cos_sin(quarter * 3 + angle).cos, sign * truth, kBound) << bit;
    }
  }
}

TEST(Turns, CosAndSinLieOnTheUnitCircle) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 100000; ++i) {
    const CosSin value = cos_sin(random_turns(random));
    EXPECT_NEAR(value.cos * value.cos + value.sin * value.sin, 1, 0x1p-50);
  }
}

}  // namespace
}  // namespace sextant
