#include "sextant/torch/operators/tensor_plan.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "sextant/position/spectrum.h"
#include "sextant/torch/layout.h"
#include "sextant/torch/method.h"
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
  differs([](TensorOperands& o) { o.sweeps[0].rotation.pairs[0].frequency = turns(0.7); });
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
  other.sweeps[0].rotation.gain = 2;
  const std::weak_ptr<const TensorPlan> first = plan_of(cache, every_term());
  EXPECT_FALSE(first.expired());
  plan_of(cache, other);
  EXPECT_TRUE(first.expired());
}

// A query at the last of `keys` positions, rotated at the positions of frames.
TensorOperands step_of(int64_t keys) {
  const Layout layout = {.queries = 1, .keys = keys, .first_query = keys - 1};
  const auto rows = [](double last, at::IntArrayRef sizes) {
    return at::linspace(-1, last, c10::multiply_integers(sizes), at::kFloat).view(sizes);
  };
  TensorOperands o = plain_operands(rows(1, {1, 2, 1, 8}), rows(2, {1, 1, keys, 8}),
                                    rows(3, {1, 1, keys, 8}), layout);
  o.scale = 1;
  o.sweeps[0].rotation = rotation(rotary({.dim = 8}));
  return o;
}

TEST(PlanCache, AStepTakesTheMemoryOfAnEarlierOneAndHasTheBitsOfItsOwnPlan) {
  const auto cache = std::make_shared<PlanCache>(1);
  std::weak_ptr<const TensorPlan> first = plan_of(*cache, step_of(1));
  for (int64_t keys = 2; keys < 700; keys += 1 + keys / 7) {
    TensorOperands o = step_of(keys);
    const at::Tensor out = std::get<0>(attend(o));
    o.plans = cache;
    for (int layer = 0; layer < 2; ++layer)
      ASSERT_TRUE(at::equal(std::get<0>(attend(o)), out)) << keys;
  }
  EXPECT_FALSE(first.expired());
}

TEST(PlanCache, APlanInUseIsNotRenewed) {
  PlanCache cache(1);
  const std::shared_ptr<const TensorPlan> used = plan_of(cache, step_of(5));
  EXPECT_NE(plan_of(cache, step_of(6)), used);
  EXPECT_EQ(cache.planned(), 2);
}

TEST(PlanCache, RotaryPositionsOfFramesAreThoseOfTheSameNumbers) {
  const TensorOperands of_frames = step_of(40);
  TensorOperands given = of_frames;
  given.sweeps[0].query_rotary_positions = at::full({1, 1, 1}, 39, at::kLong);
  given.sweeps[0].key_rotary_positions = at::arange(40, at::kLong).view({1, 1, 40});
  EXPECT_TRUE(at::equal(std::get<0>(attend(given)), std::get<0>(attend(of_frames))));
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
