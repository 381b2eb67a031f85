#include "sextant/position/sandwich.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "sextant/base/error.h"

namespace sextant {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(Sandwich, IsEvenAndHasItsMaximumAtZero) {
  const std::vector<int64_t> distances = {-7, 7, 0};
  for (const int64_t first : {0, 1}) {
    const std::vector<double> curve = sandwich_curve(distances, 16, first);
    EXPECT_EQ(curve[0], curve[1]);
    EXPECT_EQ(curve[2], 8);
    EXPECT_LT(curve[0], 8);
  }
}

TEST(Sandwich, CountingFromOneDropsTheFastestCosine) {
  const std::vector<int64_t> distances = {5};
  const double from_0 = sandwich_curve(distances, 4, 0)[0];
  const double from_1 = sandwich_curve(distances, 4, 1)[0];
  EXPECT_NEAR(from_0, std::cos(5.0) + std::cos(0.05), 1e-15);
  EXPECT_NEAR(from_1, std::cos(0.05) + std::cos(0.0005), 1e-15);
}

TEST(Sandwich, CompressionRatioIsADivisor) {
  EXPECT_THAT(sandwich_slopes(4),
              ElementsAre(DoubleEq(0.5), DoubleEq(0.25), DoubleEq(4.0 / 24), DoubleEq(0.125)));
}

TEST(Sandwich, TheRatioDividesEverySlope) {
  EXPECT_THAT(sandwich_slopes(2, 4), ElementsAre(DoubleEq(0.5), DoubleEq(0.25)));
  EXPECT_EQ(sandwich_slopes(6, kSandwichRatio), sandwich_slopes(6));
}

TEST(Sandwich, WhatDoesNotFitIsRefused) {
  EXPECT_THAT([] { sandwich_curve({}, 3, 0); },
              ThrowsMessage<Error>(HasSubstr("sandwich: width: expected an even number")));
  EXPECT_THAT([] { sandwich_curve({}, 4, -1); },
              ThrowsMessage<Error>(HasSubstr("sandwich: first: expected at least 0")));
  EXPECT_THAT([] { sandwich_slopes(0); },
              ThrowsMessage<Error>(HasSubstr("sandwich: heads: expected at least 1")));
  for (const double ratio : {0.0, -8.0, std::nan("")})
    EXPECT_THAT([&] { sandwich_slopes(4, ratio); },
                ThrowsMessage<Error>(HasSubstr("sandwich: ratio: expected a finite number above")));
}

}  // namespace
}  // namespace sextant
