#include "sextant/dense/adamw.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/dense/draws.h"

namespace sextant::dense {
namespace {

// The formula of the paper, in float64.
struct Slow {
  std::vector<double> weight, moment1, moment2;

  void advance(const AdamW& a, const std::vector<float>& gradient) {
    const auto step = static_cast<double>(a.step);
    for (size_t n = 0; n < weight.size(); ++n) {
      const double g = gradient[n] * a.gradient_scale;
      moment1[n] = a.beta1 * moment1[n] + (1 - a.beta1) * g;
      moment2[n] = a.beta2 * moment2[n] + (1 - a.beta2) * g * g;
      const double m = moment1[n] / (1 - std::pow(a.beta1, step));
      const double v = moment2[n] / (1 - std::pow(a.beta2, step));
      weight[n] -= a.rate * a.decay * weight[n] + a.rate * m / (std::sqrt(v) + a.epsilon);
    }
  }
};

TEST(AdamW, TakesTheStepsOfTheFormula) {
  const int64_t count = 16384 + 21;
  std::vector<float> weight = draws(count, 1), first(weight.size()), second(weight.size());
  Slow slow{std::vector<double>(weight.begin(), weight.end()), std::vector<double>(weight.size()),
            std::vector<double>(weight.size())};
  AdamW adamw{.rate = 0.01, .beta1 = 0.9, .beta2 = 0.98, .decay = 0.1, .gradient_scale = 0.7};
  for (adamw.step = 1; adamw.step <= 20; ++adamw.step) {
    const std::vector<float> gradient = draws(count, static_cast<uint32_t>(100 + adamw.step));
    advance(adamw, {weight.data(), first.data(), second.data(), gradient.data(), count},
            serial_executor());
    slow.advance(adamw, gradient);
  }
  // 20 steps of a few roundings each, for weights up to about 4.
  for (size_t n = 0; n < weight.size(); ++n) {
    ASSERT_NEAR(weight[n], slow.weight[n], 20 * 4 * 4 * 0x1p-24) << n;
    ASSERT_NEAR(first[n], slow.moment1[n], 1e-6) << n;
    ASSERT_NEAR(second[n], slow.moment2[n], 1e-6 * (1 + slow.moment2[n])) << n;
  }
}

TEST(AdamW, HasTheSameBitsForAnyNumberOfThreads) {
  const int64_t count = 100'000;
  const std::vector<float> gradient = draws(count, 2);
  const auto stepped = [&](const Executor& executor) {
    std::vector<float> weight = draws(count, 1), first = draws(count, 3), second(weight.size(), 1);
    advance({.rate = 0.01, .decay = 0.1, .step = 3},
            {weight.data(), first.data(), second.data(), gradient.data(), count}, executor);
    first.insert(first.end(), weight.begin(), weight.end());
    return first;
  };
  const auto threads = make_thread_pool(3);
  EXPECT_EQ(stepped(serial_executor()), stepped(*threads));
  EXPECT_EQ(sum_of_squares(gradient.data(), count, serial_executor()),
            sum_of_squares(gradient.data(), count, *threads));
}

TEST(SumOfSquares, IsExactInFloat64) {
  const std::vector<float> x = draws(40'003, 1);
  double sum = 0;
  for (const float number : x) sum += double{number} * double{number};
  EXPECT_NEAR(sum_of_squares(x.data(), 40'003, serial_executor()), sum, 1e-9 * sum);
  EXPECT_EQ(sum_of_squares(x.data(), 0, serial_executor()), 0);
}

}  // namespace
}  // namespace sextant::dense
