// The target in use is the one that Highway's own library chooses.
#include "sextant/base/simd/target.h"

#include <gtest/gtest.h>

#include "sextant/base/simd/targets.h"
#include "tests/attention/every_target.h"

namespace sextant {
namespace {

TEST(SimdTarget, IsTheBestThatHighwayFinds) {
  const int64_t supported = hwy::SupportedTargets() & HWY_TARGETS;
  EXPECT_EQ(simd_targets(), supported);
  EXPECT_EQ(simd_target(), hwy::TargetName(supported & -supported));
}

TEST(SimdTarget, IsTheOneThatATestSets) {
  int count = 0;
  on_every_target([&] { count += simd_target().empty() ? 0 : 1; });
  EXPECT_EQ(count, __builtin_popcountll(static_cast<uint64_t>(simd_targets())));
}

TEST(SimdTarget, HasAPlaceInTables) {
  size_t before = 0;  // the reserved one
  on_every_target([&] {
    EXPECT_GT(simd_target_index(), before);
    before = simd_target_index();
  });
}

}  // namespace
}  // namespace sextant
