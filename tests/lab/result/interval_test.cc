#include "sextant/lab/result/interval.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "sextant/base/error.h"

namespace sextant::lab {
namespace {

// The half width is t(2) / sqrt(3) for 1, 2 and 3, whose standard deviation is 1, and t(1) sqrt(2)
// / sqrt(2) for 0 and 2.
TEST(Interval95, IsStudents) {
  const MeanInterval three = interval95(std::vector<double>{1, 2, 3});
  EXPECT_DOUBLE_EQ(three.mean, 2);
  EXPECT_NEAR(three.half.value(), 4.303 / std::sqrt(3.0), 1e-12);
  EXPECT_NEAR(interval95(std::vector<double>{0, 2}).half.value(), 12.706, 1e-12);
  std::vector<double> many;
  for (int n = 0; n < 61; ++n) many.push_back(n % 2);
  // 31 zeros and 30 ones: the sum of squares is 61 * 31/61 * 30/61.
  const double deviation = std::sqrt(31.0 * 30 / 61 / 60);
  EXPECT_NEAR(interval95(many).half.value(), 2.000 * deviation / std::sqrt(61.0), 2e-4);
}

// Agresti and Min 2005: the mean is (b - c) / n; its error is computed from b, c and n with half an
// answer added to each of the four cells.
TEST(Difference95OfShares, IsPaired) {
  const MeanInterval same = difference95_of_shares("1100", "1100");
  EXPECT_EQ(same.mean, 0);
  EXPECT_NEAR(same.half.value(), 1.96 * std::sqrt(1.0 / 6 / 6), 1e-12) << "never certain";
  const MeanInterval apart = difference95_of_shares("1110", "1001");
  EXPECT_DOUBLE_EQ(apart.mean, 0.25);
  EXPECT_NEAR(apart.half.value(), 1.96 * std::sqrt((4.0 / 6 - 1.0 / 36) / 6), 1e-12);
  EXPECT_DOUBLE_EQ(difference95_of_shares("1001", "1110").mean, -0.25);
  EXPECT_THROW(difference95_of_shares("11", "1"), Error);
  EXPECT_THROW(difference95_of_shares("", ""), Error);
}

TEST(Interval95, NeedsTwoValues) {
  const MeanInterval one = interval95(std::vector<double>{3});
  EXPECT_EQ(one.mean, 3);
  EXPECT_EQ(one.half, std::nullopt);
  EXPECT_EQ(one.low(), 3);
  EXPECT_EQ(one.high(), 3);
  EXPECT_EQ(interval95({}).mean, 0);
}

}  // namespace
}  // namespace sextant::lab
