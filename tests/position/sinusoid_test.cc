// Rows marked "golden" are from golden/relative/sinusoidal_tables, which official implementations
// wrote.
#include "sextant/position/sinusoid.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "sextant/base/error.h"

namespace sextant {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Pointwise;

MATCHER_P(IsClose, tolerance, "") {
  return std::abs(std::get<0>(arg) - std::get<1>(arg)) <= tolerance;
}

using enum SinusoidLayout;

TEST(Sinusoid, GoldenRowsOfEachLayout) {
  const struct {
    SinusoidOptions options;
    int64_t position;
    std::vector<double> row;
  } kTruth[] = {
      {{.width = 6},
       7,
       {0.6569865987187891, 0.7539022543433047, 0.319224650606315, 0.9476790714399449,
        0.015080471170057421, 0.9998862832288926}},
      {{.width = 6, .layout = kConcatenated},
       7,
       {0.6569865987187891, 0.31922465060631494, 0.01508047117005742, 0.7539022543433046,
        0.9476790714399449, 0.9998862832288925}},
      {{.width = 6, .layout = kTensor2Tensor},
       7,
       {0.6569865987187891, 0.06994284733753273, 0.0006999999428333341, 0.7539022543433046,
        0.9975510002532796, 0.99999975500001}},
      {{.width = 5, .layout = kTensor2Tensor},
       7,
       {0.6569865987187891, 0.0006999999428333341, 0.7539022543433046, 0.99999975500001, 0}},
      {{.width = 5},
       7,
       {0.6569865987187891, 0.7539022543433047, 0.17492741915009652, 0.9845813313431687, 0}},
      {{.width = 2, .layout = kTensor2Tensor}, 7, {0.6569865987187891, 0.7539022543433046}},
      {{.width = 8, .layout = kTensor2Tensor, .max_timescale = 100, .min_timescale = 2},
       3,
       {-0.27941549819892586, 0.9983269100206813, 0.42782384223107545, 0.11971220728891936,
        0.960170286650366, -0.05782197444361838, 0.9038621355154999, 0.9928086358538663}},
  };
  for (const auto& [options, position, row] : kTruth) {
    EXPECT_THAT(Sinusoid(options).rows(position, 1), Pointwise(IsClose(1e-15), row));
  }
}

// Golden, computed with 60 digits.
TEST(Sinusoid, LargePositionsAreExact) {
  const Sinusoid sinusoid({.width = 8});
  EXPECT_THAT(
      sinusoid.rows(1000003, 1),
      Pointwise(IsClose(2e-16), {0.4786854087960669, -0.8779864915850029, -0.2611791811983369,
                                 -0.9652903373123375, -0.33403724926884926, -0.9425598740137948,
                                 0.8285629542750282, 0.559895910686118}));
  EXPECT_THAT(
      sinusoid.rows(512, 1),
      Pointwise(IsClose(2e-16), {0.07951849401287635, -0.996833390848202, 0.8043124923659124,
                                 0.5942065420576705, -0.9180704746692671, 0.39641720893592236,
                                 0.48992175838037155, 0.8717664083144548}));
}

TEST(Sinusoid, RunsOfPositionsAreTheirRows) {
  for (const SinusoidLayout layout : {kInterleaved, kConcatenated, kTensor2Tensor}) {
    const Sinusoid sinusoid({.width = 10, .layout = layout, .padding_position = 3});
    for (const int64_t step : {1, -1, 7}) {
      for (const int64_t first : {int64_t{-100}, int64_t{1} << 40}) {
        std::vector<int64_t> positions;
        for (int64_t n = 0; n < 200; ++n) positions.push_back(first + n * step);
        EXPECT_THAT(sinusoid.rows(first, 200, step),
                    Pointwise(IsClose(0x1p-51), sinusoid.rows(positions)));
      }
    }
  }
}

TEST(Sinusoid, PositionZeroIsSinZeroAndCosZero) {
  EXPECT_THAT(Sinusoid({.width = 4}).rows(0, 1), ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(Sinusoid({.width = 4, .layout = kConcatenated}).rows(0, 1), ElementsAre(0, 0, 1, 1));
}

TEST(Sinusoid, NegativePositionsMirrorTheSines) {
  const Sinusoid sinusoid({.width = 6, .layout = kConcatenated});
  const std::vector<double> ahead = sinusoid.rows(123457, 1), behind = sinusoid.rows(-123457, 1);
  for (size_t f = 0; f < 3; ++f) {
    EXPECT_EQ(behind[f], -ahead[f]);
    EXPECT_EQ(behind[f + 3], ahead[f + 3]);
  }
}

// p_i . p_j = sum_f cos(w_f (i - j)): a shift of both positions changes nothing.
TEST(Sinusoid, InnerProductsDependOnTheDistance) {
  for (const SinusoidLayout layout : {kInterleaved, kConcatenated, kTensor2Tensor}) {
    const Sinusoid sinusoid({.width = 32, .layout = layout});
    const auto product = [&](int64_t i, int64_t j) {
      const std::vector<double> a = sinusoid.rows(i, 1), b = sinusoid.rows(j, 1);
      return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
    };
    for (const int64_t distance : {0, 1, 100, 100000}) {
      const double near = product(distance, 0);
      EXPECT_NEAR(product(distance + 1000003, 1000003), near, 1e-14);
      EXPECT_NEAR(product(distance - (1 << 30), -(1 << 30)), near, 1e-14);
      EXPECT_NEAR(product(-distance, 0), near, 1e-14);
    }
  }
}

TEST(Sinusoid, OddWidthsEndInZeros) {
  EXPECT_THAT(Sinusoid({.width = 1}).rows(5, 3), Each(0));
  EXPECT_THAT(Sinusoid({.width = 1, .layout = kTensor2Tensor}).rows(5, 3), Each(0));
}

TEST(Sinusoid, FairseqPositionsSkipPadding) {
  const int64_t kTokens[] = {9, 9, 1, 7, 1};
  const std::vector<int64_t> positions = fairseq_positions(kTokens, 1);
  EXPECT_THAT(positions, ElementsAre(2, 3, 1, 4, 1));
  const SinusoidOptions options{.width = 4, .layout = kTensor2Tensor, .padding_position = 1};
  const std::vector<double> rows = Sinusoid(options).rows(positions);
  EXPECT_THAT(std::span(rows).subspan(8, 4), Each(0));
  const std::vector<double> plain =
      Sinusoid({.width = 4, .layout = kTensor2Tensor}).rows(positions[3], 1);
  EXPECT_THAT(std::span(rows).subspan(12, 4), Pointwise(IsClose(0.0), plain));
}

TEST(Sinusoid, LayoutsHaveNames) {
  EXPECT_EQ(sinusoid_layout("interleaved", "plot"), kInterleaved);
  EXPECT_EQ(sinusoid_layout("concatenated", "plot"), kConcatenated);
  EXPECT_EQ(sinusoid_layout("tensor2tensor", "plot"), kTensor2Tensor);
  EXPECT_THAT([] { sinusoid_layout("fairseq", "plot"); },
              testing::ThrowsMessage<Error>("plot: expected one of interleaved, concatenated, "
                                            "tensor2tensor, but got \"fairseq\""));
  EXPECT_EQ(text_sinusoid("concatenated", "plot").layout, kConcatenated);
  EXPECT_EQ(text_sinusoid("concatenated", "plot").first_position(3), 0);
  const TextSinusoid fairseq = text_sinusoid("fairseq", "plot");
  EXPECT_EQ(fairseq.layout, kTensor2Tensor);
  EXPECT_EQ(fairseq.first_position(), 2);
  EXPECT_EQ(fairseq.first_position(3), 4);
  EXPECT_THAT([] { text_sinusoid("", "plot"); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("tensor2tensor, fairseq, but got")));
}

TEST(Sinusoid, RefusesImpossibleOptions) {
  EXPECT_THROW(Sinusoid({.width = 0}), Error);
  EXPECT_THROW(Sinusoid({.width = 5, .layout = kConcatenated}), Error);
  EXPECT_THROW(Sinusoid({.width = 4, .max_timescale = 0}), Error);
  EXPECT_THROW(Sinusoid({.width = 4, .max_timescale = std::numeric_limits<double>::infinity()}),
               Error);
  EXPECT_THROW(Sinusoid({.width = 4, .min_timescale = 2}), Error);
  EXPECT_THROW(Sinusoid({.width = 4, .layout = kTensor2Tensor, .min_timescale = -1}), Error);
  EXPECT_THROW(Sinusoid({.width = 4}).rows(0, -1), Error);
  std::vector<double> row(3);
  EXPECT_THROW(Sinusoid({.width = 4}).write_row(0, row), Error);
  EXPECT_THROW(Sinusoid({.width = 4}).write_rows(0, 2, 1, row), Error);
}

}  // namespace
}  // namespace sextant
