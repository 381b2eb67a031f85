#include "sextant/dense/cross_entropy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/dense/draws.h"

namespace sextant::dense {
namespace {

using FloatVector = std::vector<float>;

struct Result {
  FloatVector loss, lse, d_logits;
};

Result run(const FloatVector& logits, const std::vector<int64_t>& targets,
           const FloatVector& d_loss, const Executor& executor) {
  const auto rows = static_cast<int64_t>(targets.size());
  const Answers answers = {logits.data(), targets.data(), rows,
                           static_cast<int64_t>(logits.size()) / rows};
  Result r{FloatVector(targets.size(), NAN), FloatVector(targets.size(), NAN),
           FloatVector(logits.size(), NAN)};
  cross_entropy(answers, r.loss.data(), r.lse.data(), executor);
  differentiate_cross_entropy(answers, r.lse.data(), d_loss.data(), r.d_logits.data(), executor);
  return r;
}

TEST(CrossEntropy, AndItsDerivativeAreThoseOfTheFormula) {
  for (const int64_t columns : {1, 2, 15, 16, 17, 256, 40000}) {
    const int64_t rows = 5;
    FloatVector logits = draws(rows * columns, 1);
    for (float& logit : logits) logit = 20 * logit;
    const FloatVector d_loss = draws(rows, 2);
    const std::vector<int64_t> targets = {0, columns - 1, columns / 2, columns / 3, 0};
    const Result r = run(logits, targets, d_loss, serial_executor());
    for (size_t row = 0; row < targets.size(); ++row) {
      const float* const x = logits.data() + static_cast<int64_t>(row) * columns;
      const auto target = static_cast<size_t>(targets[row]);
      double sum = 0;
      for (int64_t n = 0; n < columns; ++n) sum += std::exp(double{x[n]});
      const double lse = std::log(sum), loss = lse - double{x[target]};
      SCOPED_TRACE(testing::Message() << columns << " columns, row " << row);
      EXPECT_NEAR(r.loss[row], loss, 3e-7 * (1 + loss));
      EXPECT_NEAR(r.lse[row], lse, 3e-7 * (1 + std::abs(lse)));
      // An lse of about 20 has an error of up to 1e-6, which is the relative error of each p.
      for (int64_t n = 0; n < columns; ++n) {
        const double p = std::exp(double{x[n]} - lse);
        ASSERT_NEAR(r.d_logits[row * static_cast<size_t>(columns) + static_cast<size_t>(n)],
                    d_loss[row] * (p - (n == targets[row])),
                    5e-6 * p + (n == targets[row] ? 0x1p-24 : 1e-30))
            << n;
      }
    }
  }
}

// A confident, correct prediction: the difference of two values around 100 would have an error of
// 1e-5.
TEST(CrossEntropy, KeepsSmallLosses) {
  const Result r = run({100, 90, 85}, {0}, {1}, serial_executor());
  EXPECT_NEAR(r.loss[0], std::log1p(std::exp(-10.0) + std::exp(-15.0)), 1e-7);
}

TEST(CrossEntropy, OfLogitsThatAreNoNumbers) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const Result r =
      run({1, NAN, 2, 1, -kInfinity, 2, 1, -kInfinity, 2}, {0, 0, 1}, {1, 1, 1}, serial_executor());
  EXPECT_TRUE(std::isnan(r.loss[0]));
  EXPECT_NEAR(r.loss[1], std::log1p(std::exp(1.0)), 1e-6);
  EXPECT_EQ(r.d_logits[4], 0);
  EXPECT_EQ(r.loss[2], kInfinity);
}

TEST(CrossEntropy, HasTheSameBitsForAnyNumberOfThreads) {
  const FloatVector logits = draws(300 * 700, 1), d_loss = draws(300, 2);
  std::vector<int64_t> targets(300);
  for (size_t n = 0; n < targets.size(); ++n) targets[n] = static_cast<int64_t>(2 * n);
  const Result one = run(logits, targets, d_loss, serial_executor());
  const Result many = run(logits, targets, d_loss, *make_thread_pool(3));
  EXPECT_EQ(one.loss, many.loss);
  EXPECT_EQ(one.d_logits, many.d_logits);
}

}  // namespace
}  // namespace sextant::dense
