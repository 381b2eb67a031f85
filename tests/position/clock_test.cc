// Expected values are from golden/relative/clock_binary, computed from the formula.
#include "sextant/position/clock.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <vector>

#include "sextant/base/error.h"
#include "sextant/position/sinusoid.h"

namespace sextant {
namespace {

using ::testing::ElementsAre;
using ::testing::Pointwise;

MATCHER_P(IsNear, tolerance, "") {
  return std::abs(std::get<0>(arg) - std::get<1>(arg)) <= tolerance;
}

TEST(Clock, TellsTheTime) {
  EXPECT_THAT(
      clock_rows(kClockPeriods, std::vector<int64_t>{1}),
      Pointwise(IsNear(1e-15), {0.10452846326765347, 0.9945218953682733, 0.0017453283658983088,
                                0.9999984769132877, 0.00014544410382007366, 0.9999999894230063}));
  EXPECT_THAT(
      clock_rows(kClockPeriods, std::vector<int64_t>{100000}),
      Pointwise(IsNear(1e-12), {-0.8660254037840546, -0.5000000000006652, -0.9848077530122089,
                                0.17364817766692522, 0.9182161068802746, -0.39607976603915535}));
}

TEST(Clock, QuartersAreExactAndTheFaceRepeats) {
  EXPECT_THAT(clock_rows(kClockPeriods, std::vector<int64_t>{43200 * 5 + 3600 * 3}),
              ElementsAre(0, 1, 0, 1, 1, 0));
  EXPECT_THAT(clock_rows(kClockPeriods, std::vector<int64_t>{-15}),
              Pointwise(IsNear(0.0), clock_rows(kClockPeriods, std::vector<int64_t>{43185})));
  EXPECT_THAT(clock_rows(std::vector<int64_t>{1}, std::vector<int64_t>{12345}), ElementsAre(0, 1));
}

TEST(Clock, AlienHandsKeepOneRatio) {
  const std::vector<int64_t> positions{2, 100000};
  EXPECT_THAT(alien_clock_rows(3600, 4, positions),
              Pointwise(IsNear(1e-15),
                        {0.9092974268256816, -0.4161468365471424, 0.0005555555269775954,
                         0.9999998456790163, 1.5432098765432038e-07, 0.999999999999988,
                         4.2866941015089165e-11, 1.0, 0.03574879797201651, -0.9993608074382127,
                         0.4764003988790092, -0.879228445825043, 0.007715972817334309,
                         0.9999702314386575, 2.143347050752817e-06, 0.999999999997703}));
}

TEST(Clock, AlienClockWithAWidthIsTheSinusoid) {
  const std::vector<int64_t> positions{0, 1, 77, 100000};
  EXPECT_THAT(
      alien_clock_rows(std::pow(3600, 2.0 / 8), 4, positions),
      Pointwise(IsNear(1e-9), Sinusoid({.width = 8, .max_timescale = 3600}).rows(positions)));
}

// Without the division by the width in the exponent, hands beyond the first hardly move: sin(200 /
// 3600^2) is 1.54e-5.
TEST(Clock, AlienHandsBeyondTheFirstStandStill) {
  constexpr int64_t kHands = 64;  // 3600^126 is no double
  std::vector<int64_t> positions;
  for (int64_t k = 0; k <= 200; ++k) positions.push_back(k);
  const std::vector<double> rows = alien_clock_rows(kAlienRatio, kHands, positions);
  for (size_t k = 0; k < positions.size(); ++k) {
    const double* const row = rows.data() + k * 2 * kHands;
    EXPECT_NEAR(row[0], std::sin(static_cast<double>(k)), 1e-14);
    for (size_t j = 1; j < kHands; ++j) {
      EXPECT_LT(std::abs(row[2 * j]), 1.6e-5);
      EXPECT_NEAR(row[2 * j + 1], 1, 1.2e-10);
    }
  }
}

TEST(Clock, RefusesImpossibleOptions) {
  const std::vector<int64_t> positions{1};
  EXPECT_THROW(clock_rows(std::vector<int64_t>{60, 0}, positions), Error);
  EXPECT_THROW(clock_rows(std::vector<int64_t>{-60}, positions), Error);
  EXPECT_THROW(alien_clock_rows(0.5, 4, positions), Error);
  EXPECT_THROW(alien_clock_rows(std::numeric_limits<double>::infinity(), 4, positions), Error);
  EXPECT_THROW(alien_clock_rows(3600, 0, positions), Error);
}

}  // namespace
}  // namespace sextant
