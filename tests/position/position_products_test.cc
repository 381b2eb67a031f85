#include "sextant/position/position_products.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "sextant/base/error.h"
#include "sextant/position/sinusoid.h"

namespace sextant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr PairsOfPositions kBoth[] = {PairsOfPositions::kPast, PairsOfPositions::kAll};

std::vector<double> noise(size_t size, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<double> out(size);
  for (double& value : out) value = normal(random);
  return out;
}

std::vector<double> sinusoids(int64_t count, int64_t width) {
  std::vector<int64_t> positions(static_cast<size_t>(count));
  std::iota(positions.begin(), positions.end(), 0);
  return Sinusoid({.width = width}).rows(positions);
}

// A matrix [count, count] from a function of row and column.
template <class Value>
std::vector<double> matrix_of(int64_t count, const Value& value) {
  std::vector<double> out;
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t j = 0; j < count; ++j) out.push_back(value(i, j));
  }
  return out;
}

TEST(PositionProducts, AreThoseOfTheFormula) {
  const std::vector<double> rows = {1, 2, 3, -1, 0, 5};  // three positions, width 2
  EXPECT_THAT(position_products(rows, 3), ElementsAre(5, 1, 10, 1, 10, -5, 10, -5, 25));
  // W_q maps to (x + y, x), W_k to (2 y, x - y).
  const std::vector<double> query = {1, 1, 1, 0}, key = {0, 1, 2, -1};
  // q = (3, 1), (2, 3), (5, 0); k = (4, -1), (-2, 4), (10, -5).
  EXPECT_THAT(position_products(rows, 3, {.query = query, .key = key}),
              ElementsAre(11, -2, 25, 5, 8, 5, 20, -10, 50));
}

TEST(PositionProducts, IdentitiesAsProjectionsChangeNothing) {
  const std::vector<double> rows = sinusoids(20, 8);
  std::vector<double> one(64);
  for (size_t n = 0; n < 8; ++n) one[9 * n] = 1;
  EXPECT_EQ(position_products(rows, 20, {.query = one, .key = one}), position_products(rows, 20));
}

TEST(PositionProducts, SizesThatDoNotFitAreRefused) {
  const std::vector<double> rows(12), three(3), eight(8);
  EXPECT_THAT([&] { position_products(rows, 5); },
              ThrowsMessage<Error>(HasSubstr("rows: expected a matrix of 5 rows")));
  EXPECT_THAT([&] { position_products({}, 1); },
              ThrowsMessage<Error>(HasSubstr("but got 0 numbers")));
  EXPECT_THAT([&] { position_products(rows, 3, {.query = three, .key = three}); },
              ThrowsMessage<Error>(HasSubstr("query: expected a matrix of 4 rows")));
  EXPECT_THAT([&] { position_products(rows, 3, {.query = eight, .key = rows}); },
              ThrowsMessage<Error>(HasSubstr("key: expected as many numbers as the query's 8")));
}

TEST(VarianceExplained, IsOneForAToeplitzMatrix) {
  const auto toeplitz = matrix_of(50, [](int64_t i, int64_t j) {
    return std::sin(static_cast<double>(i - j)) + 0.1 * static_cast<double>(i - j);
  });
  for (const auto pairs : kBoth) {
    EXPECT_NEAR(variance_explained_by_distance(toeplitz, 50, pairs), 1, 1e-14);
  }
}

TEST(VarianceExplained, IsTheDiagonalsOverThePairsForNoise) {
  const int64_t count = 200;
  for (const auto pairs : kBoth) {
    double sum = 0;
    for (const uint64_t seed : {1, 2, 3, 4}) {
      sum += variance_explained_by_distance(noise(40000, seed), count, pairs) / 4;
    }
    EXPECT_NEAR(sum, 2.0 / count, 0.003);
  }
}

TEST(VarianceExplained, IsZeroWhereDiagonalsHaveEqualMeans) {
  // Below the diagonal: 1 and -1 at distance 1, 0 at distance 2.
  const std::vector<double> matrix = {9, 9, 9, 1, 9, 9, 0, -1, 9};
  EXPECT_EQ(variance_explained_by_distance(matrix, 3, PairsOfPositions::kPast), 0);
}

TEST(VarianceExplained, IsTheShareOfASum) {
  // Distance and noise of equal variance: one half.
  const auto values = noise(90000, 7);
  const auto distance = noise(600, 8);
  const auto sum = matrix_of(300, [&](int64_t i, int64_t j) {
    return values[static_cast<size_t>(i * 300 + j)] + distance[static_cast<size_t>(i - j + 300)];
  });
  EXPECT_NEAR(variance_explained_by_distance(sum, 300, PairsOfPositions::kAll), 0.5, 0.05);
}

TEST(VarianceExplained, PastLooksBelowTheDiagonalOnly) {
  const auto matrix = matrix_of(30, [](int64_t i, int64_t j) {
    return j < i ? static_cast<double>(i - j) : 40 * std::sin(7.0 * static_cast<double>(i * j));
  });
  EXPECT_NEAR(variance_explained_by_distance(matrix, 30, PairsOfPositions::kPast), 1, 1e-14);
  EXPECT_LT(variance_explained_by_distance(matrix, 30, PairsOfPositions::kAll), 0.99);
}

TEST(VarianceExplained, MaskedValuesAreLeftOut) {
  const auto matrix = matrix_of(
      30, [](int64_t i, int64_t j) { return j > i ? std::nan("") : static_cast<double>(i - j); });
  EXPECT_NEAR(variance_explained_by_distance(matrix, 30, PairsOfPositions::kAll), 1, 1e-14);
}

TEST(VarianceExplained, IsNanWithoutVariance) {
  for (const auto pairs : kBoth) {
    EXPECT_TRUE(
        std::isnan(variance_explained_by_distance(std::vector<double>(100, 0.1), 10, pairs)));
  }
  EXPECT_TRUE(std::isnan(variance_explained_by_distance(std::vector<double>{3}, 1, kBoth[0])));
  EXPECT_THAT([] { variance_explained_by_distance(std::vector<double>(5), 2, kBoth[0]); },
              ThrowsMessage<Error>(HasSubstr("a square matrix of side 2, but got 5 numbers")));
}

// Vaswani et al. 2017: p_i . p_j is a sum of cosines of i - j. Yan et al. 2019: not so with random
// matrices between.
TEST(VarianceExplained, OfSinusoidsIsLostBehindRandomProjections) {
  const int64_t count = 128, width = 64;
  const std::vector<double> rows = sinusoids(count, width);
  EXPECT_NEAR(variance_explained_by_distance(position_products(rows, count), count, kBoth[0]), 1,
              1e-12);
  for (const uint64_t seed : {1, 2, 3, 4, 5}) {
    const auto query = noise(64 * 16, seed), key = noise(64 * 16, seed + 100);
    const double share = variance_explained_by_distance(
        position_products(rows, count, {.query = query, .key = key}), count, kBoth[0]);
    EXPECT_LT(share, 0.5) << seed;
  }
}

TEST(Standardised, ValuesHaveMeanZeroAndDeviationOne) {
  EXPECT_EQ(standardised({1, 3}), (std::vector<double>{-1, 1}));
  EXPECT_EQ(standardised({2, 2, 2}), (std::vector<double>{0, 0, 0})) << "they do not vary";
}

}  // namespace
}  // namespace sextant
