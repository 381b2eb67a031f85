#include "sextant/lab/report/findings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "tests/lab/arm_results.h"

namespace sextant::lab {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

// A stretch of rope that has the loss `at_trained` at the training length and no change of its own.
ArmResult stretch_of_rope(uint64_t seed, double at_trained) {
  ArmResult result = reading(arm_result("pi", seed, 0), "rope");
  for (AtLength& at : result.lengths) at.sliding.value = at_trained;
  return result;
}

TEST(Findings, HaveTheMeansOfEachMethodOverItsSeeds) {
  const std::vector<ArmResult> results{arm_result("rope", 0, 1), arm_result("rope", 1, 2),
                                       pair_result("rope", 0, 1, 0.25)};
  const Findings findings = findings_of(results, settings_of_enough());
  ASSERT_THAT(findings.methods, SizeIs(1));
  const MethodResult& rope = findings.methods[0];
  EXPECT_DOUBLE_EQ(rope.losses_at(64).sliding.mean, 3);
  EXPECT_NEAR(rope.losses_at(64).sliding.half.value(), 12.706 * 0.5, 1e-9);
  EXPECT_DOUBLE_EQ(rope.loss_at.at(1).mean, 3.5);
  EXPECT_DOUBLE_EQ(rope.train_loss.at(1).mean, 2.5);
  EXPECT_DOUBLE_EQ(rope.change.mean, 1.5);
  EXPECT_EQ(rope.verdict, Verdict::kBreaks);
  EXPECT_EQ(rope.accuracy_at(32, 30).value().mean, 0.25);
  EXPECT_EQ(rope.accuracy_at(32, 30).value().half, std::nullopt) << "of one seed";
  EXPECT_EQ(rope.accuracy_at(32, 31), std::nullopt);
  EXPECT_TRUE(findings.has_intervals);
  EXPECT_EQ(findings.fewest_seeds, 2);
}

TEST(Findings, CountWhatAStretchCostsItsBaseAtTheTrainingLength) {
  const std::vector<ArmResult> results{arm_result("rope", 0, 2), stretch_of_rope(0, 1.9),
                                       stretch_of_rope(1, 9)};
  const Findings findings = findings_of(results, settings_of_enough());
  const MethodResult &rope = findings.methods.at(0), &pi = findings.methods.at(1);
  EXPECT_TRUE(rope.is_base);
  EXPECT_FALSE(pi.is_base);
  EXPECT_EQ(pi.base, "rope");
  EXPECT_DOUBLE_EQ(pi.change.mean, 0.4) << "1.9 - 1.5; rope has no seed 1";
  EXPECT_EQ(pi.verdict, Verdict::kBreaks);
}

TEST(Findings, RankCandidatesByLossOfThoseThatHoldAndRetrieve) {
  const std::vector<ArmResult> results{
      arm_result("rope", 0, 2),    pair_result("rope", 0, 1, 0.1), arm_result("alibi", 0, -0.1),
      arm_result("t5", 0, 0.02),   pair_result("t5", 0, 1, 0.7),   pair_result("alibi", 0, 1, 0.2),
      arm_result("shaw", 0, 0.01), pair_result("shaw", 0, 1, 0.6), stretch_of_rope(0, 1.5)};
  const auto labels = [](const std::vector<Candidate>& candidates) {
    std::vector<std::string> all;
    for (const Candidate& candidate : candidates) all.push_back(candidate.label);
    return all;
  };
  const Findings findings = findings_of(results, settings_of_enough());
  ASSERT_THAT(findings.rankings, SizeIs(2));
  const Ranking& trained = findings.rankings[0];
  EXPECT_FALSE(trained.base.has_value());
  EXPECT_THAT(labels(trained.all), ElementsAre("alibi", "shaw", "t5", "rope"));
  EXPECT_THAT(labels(trained.holding), ElementsAre("alibi", "shaw", "t5"));
  EXPECT_THAT(labels(trained.retrieving), ElementsAre("shaw", "t5"));
  EXPECT_EQ(findings.rankings[1].base.value().label, "rope");
  EXPECT_THAT(labels(findings.rankings[1].all), ElementsAre("pi"));
  EXPECT_THAT(findings_of(results, settings_of_results()).rankings, IsEmpty());
}

TEST(Findings, KeepDivergedArmsApart) {
  ArmResult diverged = arm_result("rope", 0, 1);
  diverged.diverged = true;
  diverged.lengths.clear();
  const std::vector<ArmResult> results{diverged};
  const Findings findings = findings_of(results, settings_of_enough());
  EXPECT_THAT(findings.results, SizeIs(1));
  EXPECT_EQ(findings.methods.at(0).diverged, 1);
  EXPECT_EQ(findings.methods.at(0).verdict, Verdict::kDiverged);
  EXPECT_THAT(findings.methods.at(0).losses, IsEmpty());
}

TEST(Findings, MeasureTheSpeedOfTrainingsOnText) {
  std::vector<ArmResult> results{arm_result("rope", 0, 1), pair_result("rope", 0, 1, 1)};
  EXPECT_EQ(findings_of(results, settings_of_enough()).bytes_per_second, 0) << "times are unknown";
  for (ArmResult& result : results) result.train_seconds = 100;
  EXPECT_NEAR(findings_of(results, settings_of_enough()).bytes_per_second, kEnoughBytes / 100.0, 3);
}

}  // namespace
}  // namespace sextant::lab
