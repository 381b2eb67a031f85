#include "sextant/dense/product.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "sextant/base/error.h"
#include "tests/dense/draws.h"

namespace sextant::dense {
namespace {

struct Sizes {
  int64_t rows, depth, columns;
};

// Sizes around tiles of 6 rows, groups of 96 rows, panels of 8 to 64 columns, and blocks of 128,
// 256 and 512. In the last cases all sizes are at least 64, which AMX multiplies where available.
constexpr Sizes kSizes[] = {{1, 1, 1},      {5, 3, 7},       {6, 64, 16},    {7, 65, 17},
                            {12, 256, 32},  {96, 257, 33},   {97, 128, 384}, {200, 513, 31},
                            {13, 300, 513}, {193, 40, 1025}, {0, 8, 8},      {8, 0, 8},
                            {64, 64, 64},   {65, 95, 80},    {97, 257, 513}, {130, 550, 101}};

// Random operands of these sizes.
struct Operands {
  explicit Operands(const Sizes& s)
      : a(draws(s.rows * s.depth, 1)),
        b(draws(s.depth * s.columns, 2)),
        base(draws(s.rows * s.columns, 3)),
        left{a.data(), s.rows, s.depth, s.depth},
        right{b.data(), s.depth, s.columns, s.columns} {}

  std::vector<float> a, b, base;
  Matrix left, right;
};

float at(const Matrix& m, int64_t row, int64_t column) {
  return m.data[row * m.row_stride + column * m.column_stride];
}

// Each product and each sum rounds once, in any order.
void expect_product(const Matrix& a, const Matrix& b, const float* base,
                    const std::vector<float>& c) {
  const double roundings = static_cast<double>(a.columns + 2) * 0x1p-24;
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t j = 0; j < b.columns; ++j) {
      double sum = base ? base[i * b.columns + j] : 0, size = std::abs(sum);
      for (int64_t k = 0; k < a.columns; ++k) {
        const double term = double{at(a, i, k)} * double{at(b, k, j)};
        sum += term;
        size += std::abs(term);
      }
      ASSERT_NEAR(c[static_cast<size_t>(i * b.columns + j)], sum, size * roundings)
          << "row " << i << ", column " << j << " of " << a.rows << " x " << a.columns << " x "
          << b.columns;
    }
  }
}

TEST(Product, IsTheSumOfProducts) {
  for (const Sizes& s : kSizes) {
    const Operands operands(s);
    const auto& [a, b, base, left, right] = operands;
    const Matrix turned = Matrix{b.data(), s.columns, s.depth, s.depth}.transposed();
    std::vector<float> c(base.size(), NAN);
    multiply(left, right, {}, c.data(), serial_executor());
    expect_product(left, right, {}, c);
    multiply(left, turned, {.base = base.data()}, c.data(), serial_executor());
    expect_product(left, turned, base.data(), c);
    const Matrix columns = Matrix{a.data(), s.depth, s.rows, s.rows}.transposed();
    multiply(columns, right, {.base = base.data()}, c.data(), serial_executor());
    expect_product(columns, right, base.data(), c);
    c = base;  // in place
    multiply(left, right, {.base = c.data()}, c.data(), serial_executor());
    expect_product(left, right, base.data(), c);
  }
}

// AMX would lose bits of values below 2^-100 and turn infinities into NaN, so their rows, or all,
// are computed without it.
TEST(Product, IsExactForTheSmallestAndTheGreatestNumbers) {
  Operands operands({200, 300, 70});
  const auto& [a, b, base, left, right] = operands;
  std::vector<float> c(base.size(), NAN);
  const auto product = [&] { multiply(left, right, {}, c.data(), serial_executor()); };
  const auto shrink = [](std::vector<float>& x, size_t first, size_t step, size_t count) {
    for (size_t n = 0; n < count; ++n) x[first + n * step] *= 0x1p-120F;
  };
  shrink(operands.a, 100 * 300, 1, 300);  // one row
  product();
  expect_product(left, right, nullptr, c);
  shrink(operands.b, 7, 70, 300);  // one column
  operands.a[100 * 300] = 1;
  product();
  expect_product(left, right, nullptr, c);
  operands.a[5 * 300 + 3] = INFINITY;
  product();
  for (size_t j = 0; j < 70; ++j)
    EXPECT_EQ(c[5 * 70 + j], std::copysign(INFINITY, b[3 * 70 + j])) << j;
}

// The sizes include whole and partial panels, and one or several blocks of the inner dimension.
TEST(Product, SquaresWhatIsPositiveAndTakesTheSlope) {
  for (const Sizes& s : kSizes) {
    const Operands operands(s);
    const auto& [a, b, base, left, right] = operands;
    const std::vector<float> at = draws(s.rows * s.columns, 4);
    std::vector<float> plain(at.size()), c(at.size(), NAN), squared(at.size(), NAN);
    multiply(left, right, {}, plain.data(), serial_executor());
    multiply(left, right, {.squared_relu = squared.data()}, c.data(), serial_executor());
    EXPECT_EQ(c, plain);
    multiply(left, right, {.slope_at = at.data()}, c.data(), serial_executor());
    for (size_t n = 0; n < c.size(); ++n) {
      ASSERT_EQ(squared[n], plain[n] > 0 ? plain[n] * plain[n] : 0) << n;
      ASSERT_EQ(c[n], at[n] > 0 ? 2 * at[n] * plain[n] : 0) << n;
    }
    // The base is added before the multiplication by the slope.
    multiply(left, right, {.base = base.data()}, plain.data(), serial_executor());
    multiply(left, right, {.base = base.data(), .slope_at = at.data()}, c.data(),
             serial_executor());
    for (size_t n = 0; n < c.size(); ++n)
      ASSERT_EQ(c[n], at[n] > 0 ? 2 * at[n] * plain[n] : 0) << n;
  }
}

TEST(Product, SquaresNanAndItsSlopeToNan) {
  const std::vector<float> a(21, NAN), one = {1};
  std::vector<float> c(21), squared(21);
  const Matrix left = {a.data(), 21, 1, 1}, right = {one.data(), 1, 1, 1};
  multiply(left, right, {.squared_relu = squared.data()}, c.data(), serial_executor());
  for (const float number : squared) EXPECT_TRUE(std::isnan(number));
  const std::vector<float> ones(21, 1);
  multiply({ones.data(), 21, 1, 1}, right, {.slope_at = a.data()}, c.data(), serial_executor());
  for (const float number : c) EXPECT_TRUE(std::isnan(number));
}

TEST(Product, ReadsRowsThatLieApart) {
  const std::vector<float> a = draws(30 * 50, 1), b = draws(20 * 40, 2);
  const Matrix left = {a.data() + 3, 30, 20, 50}, right = {b.data() + 5, 20, 30, 40};
  std::vector<float> c(30 * 30, NAN);
  multiply(left, right, {}, c.data(), serial_executor());
  expect_product(left, right, {}, c);
}

TEST(Product, HasTheSameBitsForAnyNumberOfThreads) {
  const std::vector<float> a = draws(300 * 270, 1), b = draws(270 * 530, 2);
  const Matrix left = {a.data(), 300, 270, 270}, right = {b.data(), 270, 530, 530};
  std::vector<float> one(300 * 530), many(300 * 530);
  multiply(left, right, {}, one.data(), serial_executor());
  for (const int threads : {2, 3, 5}) {
    multiply(left, right, {}, many.data(), *make_thread_pool(threads));
    EXPECT_EQ(one, many) << threads;
  }
  const Matrix columns = Matrix{a.data(), 270, 300, 300}.transposed();
  multiply(columns, right, {}, one.data(), serial_executor());
  for (const int threads : {2, 3, 5}) {
    multiply(columns, right, {}, many.data(), *make_thread_pool(threads));
    EXPECT_EQ(one, many) << threads;
  }
}

TEST(Product, RefusesWhatDoesNotFit) {
  const std::vector<float> a(12), b(12);
  std::vector<float> c(12);
  const Matrix left = {a.data(), 3, 4, 4}, right = {b.data(), 3, 4, 4};
  const auto multiplied = [&](const Matrix& x) {
    return [&, x] { multiply(x, right, {}, c.data(), serial_executor()); };
  };
  EXPECT_THAT(multiplied(left), testing::ThrowsMessage<Error>(testing::HasSubstr("multiply: a:")));
  EXPECT_THAT(multiplied({a.data(), 3, 3, 2, 2}),
              testing::ThrowsMessage<Error>(testing::HasSubstr("multiply: a:")));
}

}  // namespace
}  // namespace sextant::dense
