#include "sextant/torch/operators/plan_cache.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "sextant/torch/layout.h"
#include "tests/torch/dense.h"
#include "tests/torch/equation.h"

namespace sextant::testing {
namespace {

std::shared_ptr<const TensorPlan> plan_of(PlanCache& cache, const TensorOperands& o) {
  return cache.plan(o.frames, o.sweeps, o);
}

TEST(PlanCache, EqualLayoutsShareAPlanWhateverTheirData) {
  PlanCache cache(2);
  const TensorOperands o = every_term();
  TensorOperands other = every_term();
  other.q = other.q + 1;
  other.frames = other.frames.clone();
  EXPECT_EQ(plan_of(cache, o), plan_of(cache, other));
}

TEST(PlanCache, EveryDifferenceOfTheLayoutMakesAnotherPlan) {
  PlanCache cache(16);
  const auto first = plan_of(cache, every_term());
  const auto differs = [&](auto change) {
    TensorOperands o = every_term();
    change(o);
    EXPECT_NE(plan_of(cache, o), first);
  };
  differs([](TensorOperands& o) { o.frames[0][3] += 1; });
  differs([](TensorOperands& o) { o.farthest += 1; });
  differs([](TensorOperands& o) { o.sweeps[0].key_ranges[0][0][1] -= 1; });
  differs([](TensorOperands& o) { o.sweeps[0].rotation.gain = 2; });
  differs([](TensorOperands& o) { o.sweeps[0].rotation.pairs[0].speed = turns(0.7); });
  differs([](TensorOperands& o) { o.sweeps[0].key_rotary_positions[0][0][0] += 1; });
  differs([](TensorOperands& o) { o.sweeps[1].query_offset = {}; });
  differs([](TensorOperands& o) { o.sweeps.pop_back(); });
  differs([](TensorOperands& o) { o.bias.row_at = at::arange(8, at::TensorOptions(at::kInt)); });
  EXPECT_EQ(plan_of(cache, every_term()), first);
}

// A plan owns its index tensors: a later change of the caller's does not reach it.
TEST(PlanCache, AChangeInPlaceIsNoticed) {
  PlanCache cache(4);
  TensorOperands o = every_term();
  o.sweeps[0].key_ranges = o.sweeps[0].key_ranges.clone();
  const auto before = plan_of(cache, o);
  o.sweeps[0].key_ranges[0][0][1] -= 1;
  EXPECT_NE(plan_of(cache, o), before);
}

TEST(PlanCache, KeepsTheLastOnes) {
  PlanCache cache(1);
  TensorOperands other = every_term();
  other.farthest += 1;
  const std::weak_ptr<const TensorPlan> first = plan_of(cache, every_term());
  EXPECT_FALSE(first.expired());
  plan_of(cache, other);
  EXPECT_TRUE(first.expired());
}

TEST(PlanCache, SharedPlansGiveTheSameBits) {
  TensorOperands o = every_term();
  const auto [out, lse] = attend(o);
  o.plans = std::make_shared<PlanCache>(2);
  for (int layer = 0; layer < 2; ++layer) {
    const auto [planned_out, planned_lse] = attend(o);
    EXPECT_TRUE(at::equal(out, planned_out));
    EXPECT_TRUE(at::equal(lse, planned_lse));
  }
}

}  // namespace
}  // namespace sextant::testing
