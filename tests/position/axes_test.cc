#include "sextant/position/axes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "sextant/base/error.h"

namespace sextant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::vector<int> axes(const Spectrum& spectrum) {
  std::vector<int> result;
  for (const Spectrum::Pair& pair : spectrum.pairs) result.push_back(pair.axis);
  return result;
}

Spectrum followed(const std::vector<int64_t>& sections, AxisOrder order) {
  return follow_axes(rotary({.dim = 16}), sections, order, 10000);
}

TEST(Axes, AreBlocksOrInterleaved) {
  EXPECT_THAT(axes(followed({2, 3, 3}, AxisOrder::kBlocks)), ElementsAre(0, 0, 1, 1, 1, 2, 2, 2));
  EXPECT_THAT(axes(followed({4, 2, 2}, AxisOrder::kInterleaved)),
              ElementsAre(0, 1, 2, 0, 1, 2, 0, 0));
}

TEST(Axes, FrequenciesAreKeptUnlessTheyRestart) {
  const Spectrum plain = rotary({.dim = 16});
  const Spectrum blocks = followed({4, 4}, AxisOrder::kBlocks);
  const Spectrum restart = followed({4, 4}, AxisOrder::kRestart);
  for (size_t f = 0; f < 8; ++f) {
    EXPECT_EQ(blocks.pairs[f].frequency.high, plain.pairs[f].frequency.high);
    EXPECT_NEAR(restart.pairs[f].frequency.high, std::pow(10000, -static_cast<double>(f % 4) / 4),
                1e-15);
  }
}

// The axis of each pair, and the pair of the plain spectrum or i/n of which it has the frequency.
TEST(Axes, TakeTurnsOrTakeEverySecondFrequency) {
  const Spectrum plain = rotary({.dim = 16});
  const Spectrum turns = followed({4, 4}, AxisOrder::kRestartInterleaved);
  const Spectrum strided = followed({4, 4}, AxisOrder::kStrided);
  EXPECT_THAT(axes(turns), ElementsAre(0, 1, 0, 1, 0, 1, 0, 1));
  EXPECT_THAT(axes(strided), ElementsAre(0, 0, 0, 0, 1, 1, 1, 1));
  for (size_t f = 0; f < 8; ++f) {
    EXPECT_NEAR(turns.pairs[f].frequency.high, std::pow(10000, -static_cast<double>(f / 2) / 4),
                1e-15);
    EXPECT_EQ(strided.pairs[f].frequency.high, plain.pairs[2 * (f % 4) + f / 4].frequency.high);
  }
  EXPECT_THAT(axes(followed({2, 3, 3}, AxisOrder::kPlaneFirst)),
              ElementsAre(1, 2, 1, 2, 1, 2, 0, 0));
  for (const AxisOrder order : {AxisOrder::kRestartInterleaved, AxisOrder::kStrided}) {
    EXPECT_THAT(
        [&] {
          followed({5, 3}, order);
        },
        ThrowsMessage<Error>(HasSubstr("expected equal ones, but got 5 and 3")));
  }
  EXPECT_THAT(
      [] {
        followed({2, 4, 2}, AxisOrder::kPlaneFirst);
      },
      ThrowsMessage<Error>(HasSubstr("expected three, the last two equal")));
}

TEST(Axes, SectionsAreAllPairs) {
  EXPECT_THAT(
      [] {
        followed({4, 3}, AxisOrder::kBlocks);
      },
      ThrowsMessage<Error>(HasSubstr("axes: sections: expected a sum of 8 pairs")));
  EXPECT_THAT(
      [] {
        followed({8, 0}, AxisOrder::kBlocks);
      },
      ThrowsMessage<Error>(HasSubstr("axes: sections: expected at least 1")));
}

TEST(Spectra, TheOtherSenseHasTheOppositeFrequencies) {
  const Spectrum plain = rotary({.dim = 8}), other = clockwise(plain);
  for (size_t f = 0; f < 4; ++f)
    EXPECT_EQ(turns(other.pairs[f].frequency), Turns{} - turns(plain.pairs[f].frequency));
}

TEST(Spectra, XposFadesFastPairsMost) {
  const Spectrum xpos = with_xpos(rotary({.dim = 8}), 0.4, 512);
  EXPECT_NEAR(std::exp(512 * xpos.pairs[0].growth), 0.4 / 1.4, 1e-15);
  for (size_t f = 1; f < 4; ++f) EXPECT_GT(xpos.pairs[f].growth, xpos.pairs[f - 1].growth);
  EXPECT_LT(xpos.pairs[3].growth, 0);
  EXPECT_THAT([] { with_xpos(rotary({.dim = 8}), 0, 512); },
              ThrowsMessage<Error>(HasSubstr("xpos: gamma: expected a finite number above 0")));
}

TEST(Xpos, MayHaveOneGrowthForAllPairs) {
  const Spectrum plain = rotary({.dim = 8}), grown = with_uniform_growth(plain, 0.25);
  for (size_t f = 0; f < 4; ++f) {
    EXPECT_EQ(grown.pairs[f].growth, std::log(0.25));
    EXPECT_EQ(grown.pairs[f].frequency.high, plain.pairs[f].frequency.high);
  }
  EXPECT_EQ(with_uniform_growth(plain, 1).pairs[0].growth, 0);
  for (const double xi : {0.0, -0.5, 1.5, std::nan("")})
    EXPECT_THAT(
        [&] { with_uniform_growth(plain, xi); },
        ThrowsMessage<Error>(HasSubstr("xpos: xi: expected a number above 0 and at most 1")));
}

}  // namespace
}  // namespace sextant
