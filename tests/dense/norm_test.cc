#include "sextant/dense/norm.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/dense/draws.h"

namespace sextant::dense {
namespace {

using FloatVector = std::vector<float>;

// The norm and its derivatives in float64, by definition.
struct Expected {
  std::vector<double> y, d_x, d_gain;
};

Expected expected(const Norm& norm, const FloatVector& x, const FloatVector& gain,
                  const FloatVector& d_y) {
  const auto width = static_cast<size_t>(norm.width), rows = static_cast<size_t>(norm.rows);
  const auto count = static_cast<double>(width);
  Expected result{std::vector<double>(x.size()), std::vector<double>(x.size()),
                  std::vector<double>(width)};
  for (size_t row = 0; row < rows; ++row) {
    const float* const from = x.data() + row * width;
    const float* const dy = d_y.data() + row * width;
    double mean = 0, variance = 0, mean_g = 0, mean_gz = 0;
    for (size_t n = 0; norm.centered && n < width; ++n) mean += from[n] / count;
    for (size_t n = 0; n < width; ++n) variance += (from[n] - mean) * (from[n] - mean) / count;
    const double inverse = 1 / std::sqrt(variance + norm.epsilon);
    for (size_t n = 0; n < width; ++n) {
      const double z = (from[n] - mean) * inverse, g = double{dy[n]} * double{gain[n]};
      result.y[row * width + n] = z * gain[n];
      result.d_gain[n] += dy[n] * z;
      mean_g += norm.centered ? g / count : 0;
      mean_gz += g * z / count;
    }
    for (size_t n = 0; n < width; ++n) {
      const double z = (from[n] - mean) * inverse, g = double{dy[n]} * double{gain[n]};
      result.d_x[row * width + n] = (g - mean_g - z * mean_gz) * inverse;
    }
  }
  return result;
}

void expect_near(const FloatVector& values, const std::vector<double>& expected, double bound) {
  ASSERT_EQ(values.size(), expected.size());
  for (size_t n = 0; n < values.size(); ++n) ASSERT_NEAR(values[n], expected[n], bound) << n;
}

struct Result {
  FloatVector y, mean, inverse, d_x, d_gain;
};

Result run(const Norm& norm, const FloatVector& x, const FloatVector& gain, const FloatVector& d_y,
           const Executor& executor) {
  const auto rows = static_cast<size_t>(norm.rows);
  Result r{FloatVector(x.size(), NAN), FloatVector(rows), FloatVector(rows),
           FloatVector(x.size(), NAN), FloatVector(gain.size(), NAN)};
  float* const mean = norm.centered ? r.mean.data() : nullptr;
  normalize(norm, x.data(), gain.data(), r.y.data(), mean, r.inverse.data(), executor);
  differentiate_norm(norm, {x.data(), gain.data(), mean, r.inverse.data()}, d_y.data(), nullptr,
                     r.d_x.data(), r.d_gain.data(), executor);
  return r;
}

TEST(Norm, AndItsDerivativesAreThoseOfTheFormula) {
  for (const bool centered : {true, false}) {
    for (const int64_t width : {1, 3, 8, 17, 64, 130}) {
      const Norm norm = {.rows = 70, .width = width, .epsilon = 1e-5, .centered = centered};
      FloatVector x = draws(norm.rows * width, 1);
      for (float& number : x) number = 3 * number + 2;
      const FloatVector gain = draws(width, 2), d_y = draws(norm.rows * width, 3);
      const Result r = run(norm, x, gain, d_y, serial_executor());
      const Expected e = expected(norm, x, gain, d_y);
      SCOPED_TRACE(testing::Message() << "width " << width << ", centered " << centered);
      expect_near(r.y, e.y, 2e-5);
      // With one column the deviation is of the size of rounding errors, and derivatives have no
      // bound.
      if (width == 1 && centered) continue;
      expect_near(r.d_gain, e.d_gain, 1e-4);
      // Small deviations give large derivatives, so the bound is relative to the largest.
      double largest = 0;
      for (const double number : e.d_x) largest = std::max(largest, std::abs(number));
      expect_near(r.d_x, e.d_x, 2e-5 * largest);
    }
  }
}

TEST(Norm, HasTheSameBitsForAnyNumberOfThreads) {
  const Norm norm = {.rows = 300, .width = 40, .epsilon = 1e-5};
  const FloatVector x = draws(12000, 1), gain = draws(40, 2), d_y = draws(12000, 3);
  const Result one = run(norm, x, gain, d_y, serial_executor());
  for (const int threads : {2, 3}) {
    const Result many = run(norm, x, gain, d_y, *make_thread_pool(threads));
    EXPECT_EQ(one.y, many.y);
    EXPECT_EQ(one.d_x, many.d_x);
    EXPECT_EQ(one.d_gain, many.d_gain);
  }
}

TEST(Norm, AddsWhatElseFlowsBack) {
  const Norm norm = {.rows = 3, .width = 21, .epsilon = 1e-5};
  const FloatVector x = draws(63, 1), gain = draws(21, 2), d_y = draws(63, 3), base = draws(63, 4);
  const Result alone = run(norm, x, gain, d_y, serial_executor());
  FloatVector d_x(63, NAN), d_gain(21, NAN);
  differentiate_norm(norm, {x.data(), gain.data(), alone.mean.data(), alone.inverse.data()},
                     d_y.data(), base.data(), d_x.data(), d_gain.data(), serial_executor());
  for (size_t n = 0; n < d_x.size(); ++n) EXPECT_NEAR(d_x[n], alone.d_x[n] + base[n], 1e-6) << n;
  EXPECT_EQ(d_gain, alone.d_gain);
}

}  // namespace
}  // namespace sextant::dense
