#include "sextant/lab/report/compare.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/lab/arm_results.h"

namespace sextant::lab {
namespace {

// The sample that a measure of one method is taken over, or its difference from that of another.
std::string sample_of(Measure measure, const std::vector<ArmResult>& results) {
  const Settings settings = settings_of_results();
  const std::vector<MethodResult> methods = by_method(results, settings);
  const MethodResult* const other = methods.size() > 1 ? &methods[1] : nullptr;
  return words(measured(measure, methods.at(0), other, settings).value());
}

ArmResult without_blocks(ArmResult result) {
  for (AtLength& at : result.lengths) at.sliding_blocks.clear();
  return result;
}

ArmResult with_answers(ArmResult result) {
  for (AtDistance& at : result.retrieval) at.right = "1101";
  return result;
}

TEST(Measured, NamesTheSampleOfALoss) {
  const ArmResult rope = arm_result("rope", 0, 1), t5 = arm_result("t5", 0, 0);
  EXPECT_EQ(sample_of(Measure::kLongest, {rope}), "over 4 blocks");
  EXPECT_EQ(sample_of(Measure::kLongest, {rope, t5}), "over 4 blocks");
  EXPECT_EQ(sample_of(Measure::kLongest, {without_blocks(rope)}), "over the test text");
  EXPECT_EQ(sample_of(Measure::kLongest, {rope, without_blocks(t5)}),
            "not paired: one result is of a version that kept no blocks");
}

TEST(Measured, NamesTheSampleOfRetrieval) {
  const ArmResult rope = pair_result("rope", 0, 1, 0.5), t5 = pair_result("t5", 0, 1, 0.5);
  EXPECT_EQ(sample_of(Measure::kFar, {with_answers(rope)}), "over 4 texts");
  EXPECT_EQ(sample_of(Measure::kFar, {with_answers(rope), with_answers(t5)}), "over 4 texts");
  EXPECT_EQ(sample_of(Measure::kFar, {rope}), "over the test texts");
  EXPECT_EQ(sample_of(Measure::kFar, {with_answers(rope), t5}),
            "not paired: one result is of a version that kept no answers");
}

TEST(Measured, IsOverSeedsIfThereAreSeveral) {
  EXPECT_EQ(sample_of(Measure::kLongest, {arm_result("rope", 0, 1), arm_result("rope", 1, 2)}),
            "over 2 seeds");
  EXPECT_EQ(
      sample_of(Measure::kFar, {pair_result("rope", 0, 1, 0.5), pair_result("rope", 1, 1, 0.25)}),
      "over 2 seeds");
}

}  // namespace
}  // namespace sextant::lab
