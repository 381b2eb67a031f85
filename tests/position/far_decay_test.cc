#include "sextant/position/far_decay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <random>
#include <vector>

#include "sextant/base/error.h"

namespace sextant {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

Rotation rope(int64_t dim, double base = 10000) {
  return rotation(rotary({.dim = dim, .base = base}));
}

// The formula of the paper with std::polar, for frequencies and distances at which doubles are
// exact enough.
double mean_by_definition(int64_t dim, double base, int64_t distance) {
  std::complex<double> sum = 0;
  double total = 0;
  for (int64_t f = 0; f < dim / 2; ++f) {
    const double theta = std::pow(base, -2.0 * static_cast<double>(f) / static_cast<double>(dim));
    sum += std::polar(1.0, static_cast<double>(distance) * theta);
    total += std::abs(sum);
  }
  return total / static_cast<double>(dim / 2);
}

TEST(FarDecay, TheBoundIsThePapersMeanOfPartialSums) {
  const Rotation rotation = rope(128);
  for (const int64_t distance : {0, 1, 2, 50, 255, 1000}) {
    EXPECT_NEAR(mean_partial_sum(rotation, distance), mean_by_definition(128, 10000, distance),
                1e-10)
        << distance;
  }
  EXPECT_EQ(mean_partial_sum(rotation, 0), (64 + 1) / 2.0);
}

TEST(FarDecay, BothAreEvenInTheDistance) {
  const Rotation rotation = rope(16, 100);
  for (const int64_t distance : {1, 7, 300}) {
    EXPECT_EQ(mean_partial_sum(rotation, distance), mean_partial_sum(rotation, -distance));
    EXPECT_EQ(score_of_equal_vectors(rotation, distance),
              score_of_equal_vectors(rotation, -distance));
  }
}

// Section 3.4.3: for any h, |sum h_i e^{i d theta_i}| is at most max |h_{i+1} - h_i| times the sum
// of |S_j|.
TEST(FarDecay, NoScoreIsAboveTheBound) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal;
  const int64_t pairs = 16;
  const Rotation rotation = rope(2 * pairs);
  for (int draw = 0; draw < 50; ++draw) {
    std::vector<std::complex<double>> h;
    for (int64_t i = 0; i < pairs; ++i) h.emplace_back(normal(random), normal(random));
    double largest = std::abs(h.back());  // h_n = 0
    for (size_t i = 0; i + 1 < h.size(); ++i)
      largest = std::max(largest, std::abs(h[i + 1] - h[i]));
    for (const int64_t distance : {0, 1, 10, 100, 1000}) {
      std::complex<double> score = 0;
      for (size_t i = 0; i < h.size(); ++i) {
        const CosSin angle = cos_sin(rotation.pairs[i].frequency * distance);
        score += h[i] * std::complex<double>(angle.cos, angle.sin);
      }
      EXPECT_LE(std::abs(score),
                largest * static_cast<double>(pairs) * mean_partial_sum(rotation, distance) + 1e-12)
          << distance;
    }
  }
}

TEST(FarDecay, EqualVectorsStayBelowTheBoundWhichNeverFallsBelowOne) {
  const Rotation rotation = rope(64);
  for (int64_t distance = 0; distance < 512; ++distance) {
    const double bound = mean_partial_sum(rotation, distance);
    EXPECT_LE(std::abs(score_of_equal_vectors(rotation, distance)), bound) << distance;
    EXPECT_GE(bound, 1) << distance;
  }
}

TEST(FarDecay, TheBoundFalls) {
  const Rotation rotation = rope(128);
  EXPECT_LT(mean_partial_sum(rotation, 50), mean_partial_sum(rotation, 0) / 2);
  EXPECT_LT(mean_partial_sum(rotation, 250), mean_partial_sum(rotation, 50));
}

TEST(FarDecay, TakesAtLeastOnePair) {
  EXPECT_THAT([] { mean_partial_sum({}, 1); },
              ThrowsMessage<Error>(HasSubstr("far decay: pairs: expected at least 1, but got 0")));
  EXPECT_THAT([] { score_of_equal_vectors({}, 1); },
              ThrowsMessage<Error>(HasSubstr("far decay: pairs: expected at least 1")));
}

}  // namespace
}  // namespace sextant
