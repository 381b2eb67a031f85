#include "sextant/lab/plan/same_arm.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "sextant/lab/plan/arms.h"

namespace sextant::lab {
namespace {

using nlohmann::json;

json identity(const ArmRequest& request, Task task = Task::kText) {
  const std::vector<Arm> arms = make_arms(std::vector{request}, 1, {});
  const Arm* arm = nullptr;
  for (const Arm& one : arms) {
    if (one.task == task && one.label == request.label) arm = &one;
  }
  const Arm* trained = nullptr;
  for (const Arm& one : arms) {
    if (one.name() == arm->weights_from) trained = &one;
  }
  return identity_of(*arm, trained);
}

std::string defaults(const std::string& method) {
  if (method == "shaw") return R"({"clip": 16, "values": true})";
  return method == "rope" ? R"({"base": 10000.0, "stretch": null, "pairing": "half-split"})" : "{}";
}

bool is(const std::string& arm, const std::string& wanted) {
  return is_wanted(identity(request_of(arm)), identity(request_of(wanted)), defaults);
}

TEST(SameArm, IsFoundByMethodAndOptions) {
  EXPECT_TRUE(is("shaw", "shaw"));
  EXPECT_TRUE(is("shaw:clip=2", "shaw:clip=2"));
  EXPECT_FALSE(is("shaw:clip=2", "shaw"));
  EXPECT_FALSE(is("shaw", "shaw:clip=2"));
  EXPECT_FALSE(is("shaw:clip=4", "shaw:clip=2"));
  EXPECT_FALSE(is("t5", "shaw"));
  EXPECT_TRUE(is("rope:base=1000000", "rope:base=1e6"));
}

TEST(SameArm, MayHaveADefaultSpelledOut) {
  EXPECT_TRUE(is("shaw:clip=16", "shaw"));
  EXPECT_TRUE(is("shaw:values=true:clip=2", "shaw:clip=2"));
  EXPECT_FALSE(is("shaw:values=false", "shaw"));
  EXPECT_TRUE(is("rope:base=1e4:pairing=half-split", "rope"));
  const json spelled = identity(request_of("shaw:clip=16"));
  EXPECT_FALSE(is_wanted(spelled, identity(request_of("shaw")), {})) << "defaults are unknown";
}

TEST(SameArm, HasAnyLabelAndSeedAndTheSameTask) {
  const ArmRequest far{.label = "far", .method = "rope", .options = R"({"base": 1e6})"};
  EXPECT_TRUE(is_wanted(identity(far), identity(request_of("rope:base=1e6")), defaults));
  const ArmRequest false_label{.label = "rope", .method = "alibi"};
  EXPECT_FALSE(is_wanted(identity(false_label), identity(request_of("rope")), defaults));
  EXPECT_NE(identity(request_of("learned")), identity(request_of("learned"), Task::kPairs))
      << "rows differ";
}

TEST(SameArm, IsAStretchHoweverItIsWritten) {
  EXPECT_TRUE(is("rope:weights=rope:stretch=linear*8", "pi"));
  EXPECT_FALSE(is("rope:weights=rope:stretch=linear*4", "pi"));
  EXPECT_FALSE(is("rope:stretch=linear*8", "pi")) << "it is trained with the stretch";
  EXPECT_FALSE(is("pi", "ntk"));
  EXPECT_TRUE(is("rerope:window=128", "rerope:window=L"));
}

TEST(SameArm, HasTheSameTuningAndMemory) {
  EXPECT_TRUE(is("pi:tune=40", "pi:tune=40"));
  EXPECT_FALSE(is("pi:tune=40", "pi"));
  EXPECT_FALSE(is("pi:tune=60", "pi:tune=40"));
  EXPECT_TRUE(is("rope:tune=40:weights=rope", "rope:weights=rope:tune=40"));
  EXPECT_FALSE(is("t5:memory=32", "t5"));
}

TEST(SameArm, HasWeightsOfTheSameArm) {
  const std::vector<ArmRequest> requests{
      {.label = "far", .method = "rope", .options = R"({"base": 1e6})"},
      {.label = "pi", .method = "pi", .options = R"({"base": 1e6, "weights": "far"})"}};
  const std::vector<Arm> arms = make_arms(requests, 1, {});
  EXPECT_FALSE(is_wanted(identity_of(arms[1], &arms[0]), identity(request_of("pi")), defaults));
}

}  // namespace
}  // namespace sextant::lab
