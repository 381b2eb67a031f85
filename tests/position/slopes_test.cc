#include "sextant/position/slopes.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "sextant/base/error.h"

namespace sextant {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::Pointwise;

TEST(AlibiSlopes, PowersOfTwoAreAGeometricSequence) {
  EXPECT_THAT(alibi_slopes(1), ElementsAre(0x1p-8));
  EXPECT_THAT(alibi_slopes(4), ElementsAre(0x1p-2, 0x1p-4, 0x1p-6, 0x1p-8));
  EXPECT_EQ(alibi_slopes(128).back(), 0x1p-8);
}

// From golden/rotary/alibi_slopes: the authors' code and, with another maximal bias, MPT's.
TEST(AlibiSlopes, OtherHeadCountsInterleaveTheNextPower) {
  EXPECT_THAT(alibi_slopes(3), ElementsAre(0.0625, 0.00390625, 0.25));
  EXPECT_THAT(alibi_slopes(12),
              Pointwise(DoubleEq(), {0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125,
                                     0.00390625, 0.7071067811865476, 0.35355339059327384,
                                     0.17677669529663692, 0.08838834764831849}));
  EXPECT_THAT(alibi_slopes(6, 16),
              ElementsAre(0.0625, 0.00390625, 0.000244140625, 1.52587890625e-05, 0.25, 0.015625));
}

TEST(AlibiSlopes, NoTwoHeadsShareASlope) {
  for (int64_t heads = 1; heads <= 300; ++heads) {
    std::vector<double> slopes = alibi_slopes(heads);
    ASSERT_EQ(slopes.size(), static_cast<size_t>(heads));
    std::sort(slopes.begin(), slopes.end());
    EXPECT_EQ(std::adjacent_find(slopes.begin(), slopes.end()), slopes.end()) << heads;
    EXPECT_EQ(slopes.front(), 0x1p-8) << heads;
    EXPECT_LT(slopes.back(), 1) << heads;
  }
}

TEST(AlibiSlopes, RefusesImpossibleOptions) {
  EXPECT_THROW(alibi_slopes(0), Error);
  EXPECT_THROW(alibi_slopes(-3), Error);
  EXPECT_THROW(alibi_slopes(8, -1), Error);
  EXPECT_THROW(alibi_slopes(8, std::numeric_limits<double>::infinity()), Error);
  EXPECT_THROW(alibi_slopes(8, std::numeric_limits<double>::quiet_NaN()), Error);
}

TEST(AlibiSlopes, InterpolationKeepsTheLargestBiasOfTraining) {
  EXPECT_EQ(interpolated_slope(1024, 1000), 1);
  EXPECT_EQ(interpolated_slope(1024, 4096), 0.25);
  EXPECT_THROW(interpolated_slope(0, 5), Error);
}

}  // namespace
}  // namespace sextant
