// An operand that is not said to be something does not compile: these checks are of types, and a
// build in which one is wrong fails.
#include "sextant/attention/operand_list.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "sextant/attention/host_score.h"

namespace sextant {
namespace {

// Whether operand<kTags...>() compiles.
template <auto... kTags>
constexpr bool kCompiles = requires {
  operand<kTags...>(
      "dummy", [](auto& s) -> auto& { return s; });
};

constexpr auto kPresence = Presence::kOptional;
constexpr auto kGradient = Gradient::kWanted;
constexpr auto kElements = Elements::kComputed;
constexpr auto kShared = Shared::kHeads;
static_assert(kCompiles<kPresence, kGradient, kElements, kShared, Axis::kHeads, Axis::kRows>);
static_assert(!kCompiles<kGradient, kElements, kShared, Axis::kHeads, Axis::kRows>);
static_assert(!kCompiles<kPresence, kElements, kShared, Axis::kHeads, Axis::kRows>);
static_assert(!kCompiles<kPresence, kGradient, kShared, Axis::kHeads, Axis::kRows>);
static_assert(!kCompiles<kPresence, kGradient, kElements, Axis::kHeads, Axis::kRows>);
static_assert(!kCompiles<kPresence, kGradient, kElements, kShared>);

// A member that the list lacks.
struct OperandsWithDummy : Operands<float> {
  View<const float> dummy = {};
};
struct GradWithDummy : HostGrad<float> {
  HostView<float> dummy = {};
};
constexpr size_t kScalars = 2 * sizeof(Int8Pages<float>) + sizeof(Dropout) + 2 * sizeof(double);
static_assert(lists_operands<Operands<float>>(kScalars));
static_assert(!lists_operands<OperandsWithDummy>(kScalars));
static_assert(lists_operands<HostGrad<float>, true>());
static_assert(!lists_operands<GradWithDummy, true>());

TEST(OperandList, HasTheOrderOfGradients) {
  std::vector<std::string> names;
  each_differentiable([&](auto operand) { names.emplace_back(operand.name); });
  EXPECT_EQ(names, (std::vector<std::string>{"q", "k", "v", "q_imag", "weight", "bias", "on_query",
                                             "on_key", "on_value", "axis_bias", "axis_on_query",
                                             "table_query", "sink", "query_sink", "query_bias",
                                             "key_bias"}));
}

TEST(OperandList, AnEntryIsTheMemberOfEachStruct) {
  Operands<float> operands;
  ScoreGrad<float> grad;
  each_operand([&](auto operand) {
    if (std::string_view(operand.name) != "query_bias") return;
    EXPECT_EQ(static_cast<const void*>(&operand.of(operands)), &operands.query_bias);
    if constexpr (operand.has_gradient()) {
      EXPECT_EQ(static_cast<const void*>(&operand.of(grad)), &grad.query_bias);
    }
    EXPECT_EQ(operand.dim(Axis::kQueries), 2);
    EXPECT_EQ(operand.dim(Axis::kKeys), -1);
    EXPECT_TRUE(operand.may_share(Axis::kBatch));
    EXPECT_FALSE(operand.may_share(Axis::kQueries));
  });
}

}  // namespace
}  // namespace sextant
