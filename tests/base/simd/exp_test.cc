// exp() of the softmax has the accuracy that exp-inl.h states, on every target.
#include "sextant/base/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/base/simd/exp_test.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each target
//
#include "sextant/attention/cpu/tile/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sextant {
namespace HWY_NAMESPACE {

// Applies exp() to sixteen floats.
void exp_of_lanes(const float* x, float* to) {
  using namespace cpu::HWY_NAMESPACE;
  store(cpu::HWY_NAMESPACE::exp(load(x)), to);
}

// The error from rounding the product x / ln 2, relative to |x|.
double error_of_product() { return HWY_NATIVE_FMA ? 0x1p-26 : 0x1p-23; }

}  // namespace HWY_NAMESPACE
}  // namespace sextant
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "tests/attention/every_target.h"

namespace sextant {
namespace {

HWY_EXPORT(exp_of_lanes);
HWY_EXPORT(error_of_product);

constexpr size_t kAtOnce = 16;
using Sixteen = std::array<float, kAtOnce>;

Sixteen exp_of(const Sixteen& x) {
  Sixteen y;
  HWY_DYNAMIC_DISPATCH(exp_of_lanes)(x.data(), y.data());
  return y;
}

float exp_of(float x) {
  Sixteen all;
  all.fill(x);
  return exp_of(all)[0];
}

TEST(Exp, IsAsNearAsStated) {
  static constexpr double kError = 2.5e-7, kStep = 1e-4, kLeast = -76.2461;
  on_every_target([] {
    const double of_product = HWY_DYNAMIC_DISPATCH(error_of_product)();
    Sixteen x;
    for (double first = 0; first > kLeast; first -= kStep * kAtOnce) {
      for (size_t n = 0; n < kAtOnce; ++n)
        x[n] = static_cast<float>(std::max(first - kStep * static_cast<double>(n), kLeast));
      const Sixteen y = exp_of(x);
      for (size_t n = 0; n < kAtOnce; ++n) {
        const double at = x[n], truth = std::exp(at);
        ASSERT_NEAR(y[n] / truth, 1, kError - at * of_product) << at;
      }
    }
  });
}

TEST(Exp, IsExactWhereWeightsRelyOnIt) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  on_every_target([] {
    EXPECT_EQ(exp_of(0.0F), 1);
    for (const float x : {-76.2463F, -88.0F, -1e4F, -1e30F, -kInfinity})
      EXPECT_EQ(exp_of(x), 0) << x;
    EXPECT_TRUE(std::isnan(exp_of(std::numeric_limits<float>::quiet_NaN())));
  });
}

// The same key may be in any lane, depending on the query.
TEST(Exp, DoesNotDependOnTheLane) {
  on_every_target([] {
    Sixteen x;
    for (size_t n = 0; n < kAtOnce; ++n) x[n] = -0.731F * static_cast<float>(n);
    const Sixteen y = exp_of(x);
    for (size_t n = 0; n < kAtOnce; ++n) EXPECT_EQ(y[n], exp_of(x[n])) << n;
  });
}

}  // namespace
}  // namespace sextant
#endif
