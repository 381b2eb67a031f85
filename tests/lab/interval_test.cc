#include "sextant/lab/interval.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "sextant/error.h"

namespace sextant::lab {
namespace {

// Half widths for 1, 2 and 3, whose deviation is 1: t(2) / sqrt(3); and for 0 and 2: t(1) sqrt(2) / sqrt(2).
TEST(Interval95, IsStudents) {
  const Interval three = interval95(std::vector<double>{1, 2, 3});
  EXPECT_DOUBLE_EQ(three.mean, 2);
  EXPECT_NEAR(three.half, 4.303 / std::sqrt(3.0), 1e-12);
  EXPECT_NEAR(interval95(std::vector<double>{0, 2}).half, 12.706, 1e-12);
  std::vector<double> many;
  for (int n = 0; n < 61; ++n) many.push_back(n % 2);
  // 31 zeros and 30 ones: squares of 61 * 31/61 * 30/61.
  const double deviation = std::sqrt(31.0 * 30 / 61 / 60);
  EXPECT_NEAR(interval95(many).half, 2.000 * deviation / std::sqrt(61.0), 2e-4);
  EXPECT_THROW(interval95(std::vector<double>{1}), Error);
}

TEST(Spread, HasAnIntervalFromTwoOn) {
  const Spread one = spread(std::vector<double>{3});
  EXPECT_EQ(one.mean, 3);
  EXPECT_EQ(one.half, std::nullopt);
  const Spread three = spread(std::vector<double>{1, 2, 3});
  EXPECT_DOUBLE_EQ(three.mean, 2);
  EXPECT_NEAR(three.half.value_or(0), 4.303 / std::sqrt(3.0), 1e-12);
}

}  // namespace
}  // namespace sextant::lab
