// sextant::hypot beside a sum of squares in long double, which has the range and 64 bits.
#include "sextant/base/hypot.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace sextant {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kMost = std::numeric_limits<double>::max();
constexpr double kLeast = std::numeric_limits<double>::denorm_min();

double exact(double x, double y) {
  const long double a = x, b = y;
  return static_cast<double>(std::sqrt(a * a + b * b));
}

// The distance in units of the last place, of doubles of one sign.
double ulps(double a, double b) { return std::abs(a - b) / (std::nextafter(b, kInfinity) - b); }

// Draws of both signs whose exponents are `low` to `high`, and differ by at most 60.
void expect_right(int low, int high) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> significand(1, 2);
  std::uniform_int_distribution<int> exponent(low, high), apart(0, 60);
  for (int n = 0; n < 100000; ++n) {
    const int first = exponent(random);
    const double x = std::ldexp(significand(random), first);
    const double y = -std::ldexp(significand(random), std::max(first - apart(random), low));
    ASSERT_LE(ulps(hypot(x, y), exact(x, y)), 1) << x << " and " << y;
    ASSERT_EQ(hypot(-y, x), hypot(x, y)) << x << " and " << y;
  }
}

// Products of float32 queries and keys have exponents of -298 to 256, and more in long rows.
TEST(Hypot, IsRightForProductsOfFloat32) { expect_right(-298, 300); }

// Squares of these have no normal double.
TEST(Hypot, IsRightWhereSquaresOverflowOrUnderflow) {
  expect_right(500, 1022);
  expect_right(-1022, -500);
  EXPECT_EQ(hypot(3e300, 4e300), 5e300);
  EXPECT_EQ(hypot(3 * kLeast, 4 * kLeast), 5 * kLeast);
}

TEST(Hypot, AtTheEndsOfTheRange) {
  EXPECT_EQ(hypot(0.0, -0.0), 0);
  EXPECT_FALSE(std::signbit(hypot(-0.0, -0.0)));
  EXPECT_EQ(hypot(-kLeast, 0), kLeast);
  EXPECT_EQ(hypot(kMost, kLeast), kMost);
  EXPECT_EQ(hypot(kMost, kMost), kInfinity);
  EXPECT_EQ(hypot(-kInfinity, 1), kInfinity);
  EXPECT_EQ(hypot(kNan, -kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(hypot(kNan, 1)));
  EXPECT_TRUE(std::isnan(hypot(0, kNan)));
}

}  // namespace
}  // namespace sextant
