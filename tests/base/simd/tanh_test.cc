// tanh() of softcap has the accuracy that tanh-inl.h states, on every target.
#include "sextant/base/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/base/simd/tanh_test.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each target
//
#include "sextant/attention/cpu/tile/lanes-inl.h"
#include "sextant/base/simd/tanh-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sextant {
namespace HWY_NAMESPACE {

// Applies tanh() to sixteen floats.
void tanh_of_lanes(const float* x, float* to) {
  using namespace cpu::HWY_NAMESPACE;
  for (int64_t n = 0; n < cpu::kLanes; n += kVectorLanes)
    hn::StoreU(sextant::HWY_NAMESPACE::tanh(F32(), load_part(x + n)), F32(), to + n);
}

}  // namespace HWY_NAMESPACE
}  // namespace sextant
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "tests/attention/every_target.h"

namespace sextant {
namespace {

HWY_EXPORT(tanh_of_lanes);

float tanh_of(float x) {
  std::array<float, 16> all, y;
  all.fill(x);
  HWY_DYNAMIC_DISPATCH(tanh_of_lanes)(all.data(), y.data());
  return y[0];
}

TEST(Tanh, IsAsNearAsStated) {
  on_every_target([] {
    for (double at = 1e-6; at < 20; at *= 1.0005) {
      const auto x = static_cast<float>(at);
      const double truth = std::tanh(static_cast<double>(x));
      ASSERT_NEAR(tanh_of(x) / truth, 1, 3e-7) << at;
      ASSERT_EQ(tanh_of(-x), -tanh_of(x)) << at;
    }
  });
}

TEST(Tanh, IsExactAtItsEnds) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  on_every_target([] {
    EXPECT_EQ(tanh_of(0.0F), 0);
    for (const float x : {20.0F, 1e10F, kInfinity}) {
      EXPECT_EQ(tanh_of(x), 1) << x;
      EXPECT_EQ(tanh_of(-x), -1) << x;
    }
    EXPECT_TRUE(std::isnan(tanh_of(std::numeric_limits<float>::quiet_NaN())));
  });
}

}  // namespace
}  // namespace sextant
#endif
