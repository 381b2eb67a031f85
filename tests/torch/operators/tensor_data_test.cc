// The parts of an operand follow from its tags, so that a new one is not forgotten in them.
#include "sextant/torch/operators/tensor_data.h"

#include <ATen/ops/arange.h>
#include <gtest/gtest.h>

namespace sextant {
namespace {

struct OperandsWithDummy : OperandTensors {
  at::Tensor dummy = {};
};
static_assert(!lists_operands<OperandsWithDummy>());

constexpr auto kDummy =
    operand<Presence::kOptional, Gradient::kWanted, Elements::kComputed, Shared::kEveryAxis,
            Axis::kBatch, Axis::kHeads, Axis::kQueries, Axis::kKeys>(
        "dummy", [](auto& s) -> auto& { return s.dummy; });

TEST(TensorData, ANewOperandIsCutByItsTags) {
  OperandsWithDummy o = {{}, at::arange(24).view({1, 1, 4, 6})};
  at::Tensor& x = tensor_of(kDummy.of(o));
  narrow_to(kDummy, Axis::kQueries, 1, 2, x);
  narrow_to(kDummy, Axis::kKeys, 3, 1, x);
  narrow_to(kDummy, Axis::kDiagonals, 7, 1, x);  // it has none
  EXPECT_EQ(o.dummy.sizes(), (c10::IntArrayRef{1, 1, 2, 1}));
  EXPECT_EQ(o.dummy[0][0][0][0].item<int64_t>(), 9);
  narrow_to(kDummy, Axis::kKeys, 2, 1, x);  // one for all keys
  EXPECT_EQ(o.dummy.size(3), 1);
}

}  // namespace
}  // namespace sextant
