#include "sextant/chart/axis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

namespace sextant::chart {
namespace {

using testing::ElementsAre;

std::vector<std::string> labels(Scale scale, Range range, int wanted) {
  std::vector<std::string> out;
  for (const Tick& tick : ticks(scale, range, wanted)) out.push_back(tick.label);
  return out;
}

TEST(Ticks, StandAtRoundValues) {
  EXPECT_THAT(labels(Scale::kLinear, {0, 10}, 5), ElementsAre("0", "2", "4", "6", "8", "10"));
  EXPECT_THAT(labels(Scale::kLinear, {-0.1, 0.1}, 4),
              ElementsAre("−0.10", "−0.05", "0.00", "0.05", "0.10"));
  EXPECT_THAT(labels(Scale::kLinear, {1.38, 1.61}, 5),
              ElementsAre("1.40", "1.45", "1.50", "1.55", "1.60"));
  EXPECT_THAT(labels(Scale::kLinear, {0, 3e4}, 3),
              ElementsAre("0", "10\u2009000", "20\u2009000", "30\u2009000"));
  EXPECT_THAT(labels(Scale::kLinear, {0, 4e7}, 4),
              ElementsAre("0", "1×10⁷", "2×10⁷", "3×10⁷", "4×10⁷"));
  EXPECT_THAT(labels(Scale::kLinear, {0, 1e-5}, 2), ElementsAre("0", "5×10⁻⁶", "1×10⁻⁵"));
}

TEST(Ticks, OfLengthsArePowersOfTwo) {
  EXPECT_THAT(labels(Scale::kLog2, {128, 1024}, 6), ElementsAre("128", "256", "512", "1024"));
  EXPECT_THAT(labels(Scale::kLog2, {1, 65536}, 4),
              ElementsAre("1", "16", "256", "4096", "65\u2009536"));
}

TEST(Ticks, OfDecadesArePowersOfTenAndFewOnesAreFilled) {
  EXPECT_THAT(
      labels(Scale::kLog10, {1, 1e6}, 6),
      ElementsAre("1", "10", "100", "1000", "10\u2009000", "100\u2009000", "1\u2009000\u2009000"));
  EXPECT_THAT(labels(Scale::kLog10, {0.1, 10}, 8),
              ElementsAre("0.1", "0.2", "0.5", "1", "2", "5", "10"));
  EXPECT_GE(ticks(Scale::kLog10, {3, 4}, 5).size(), 3U);  // the range is smaller than the base
}

RC_GTEST_PROP(Ticks, LieInsideRiseAndAreNotTooMany, ()) {
  const auto scale = *rc::gen::element(Scale::kLinear, Scale::kLog2, Scale::kLog10);
  const double low = std::exp(*rc::gen::inRange(-40, 40) / 2.0);
  const double high = low * (1 + std::exp(*rc::gen::inRange(-20, 20) / 2.0));
  const int wanted = *rc::gen::inRange(1, 20);
  const std::vector<Tick> found = ticks(scale, {low, high}, wanted);
  RC_ASSERT(found.size() <= static_cast<size_t>(2 * wanted + 3));
  for (size_t i = 0; i < found.size(); ++i) {
    RC_ASSERT(found[i].value >= low * (1 - 1e-6) && found[i].value <= high * (1 + 1e-6));
    if (i > 0) RC_ASSERT(found[i].value > found[i - 1].value);
    if (i > 0) RC_ASSERT(found[i].label != found[i - 1].label);
  }
}

TEST(Range, RunsFromZeroToOneOnEachScale) {
  for (const Scale scale : {Scale::kLinear, Scale::kLog2, Scale::kLog10}) {
    EXPECT_DOUBLE_EQ(fraction(scale, {2, 32}, 2), 0);
    EXPECT_DOUBLE_EQ(fraction(scale, {2, 32}, 32), 1);
  }
  EXPECT_DOUBLE_EQ(fraction(Scale::kLog2, {2, 32}, 8), 0.5);
}

TEST(Range, OfOneValueHasThatValueInside) {
  for (const double value : {0.0, 7.0, -3e12, 1e-200}) {
    Extent extent;
    extent.add(value);
    const Range range = shown_range({}, extent, 0.05, "test");
    EXPECT_LT(range.low, value);
    EXPECT_GT(range.high, value);
  }
}

}  // namespace
}  // namespace sextant::chart
