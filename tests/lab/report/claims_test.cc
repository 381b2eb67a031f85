#include "sextant/lab/report/claims.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "sextant/lab/report/findings.h"
#include "tests/lab/arm_results.h"

namespace sextant::lab {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Settings small() {
  Settings settings;
  settings.training = {.length = 32};
  settings.test = {.lengths = {32, 64}};
  return settings;
}

ArmResult result(const std::string& label, uint64_t seed, double change, double error = 0.01,
                 double at_length = 1.5) {
  ArmResult result;
  result.arm = arm_of_label(label, seed, Task::kText);
  result.lengths = {
      {.length = 32, .sliding = {at_length, error}},
      {.length = 64, .sliding = {at_length + change, error}, .sliding_change = {change, error}}};
  return result;
}

std::vector<CheckedClaim> checked(const std::vector<ArmResult>& results, const Settings& settings) {
  return findings_of(results, settings).claims;
}

std::vector<std::string> found(const std::vector<ArmResult>& results) {
  std::vector<std::string> lines;
  for (const CheckedClaim& claim : checked(results, small())) {
    lines.push_back(std::string(name(claim.outcome)) + ": " + claim.claim.text);
  }
  return lines;
}

TEST(Claims, HoldFailOrStayUndecided) {
  EXPECT_THAT(found({result("rope", 0, 1.0)}),
              ElementsAre("holds: RoPE breaks past the training length"));
  EXPECT_THAT(found({result("rope", 0, 0.2)}),
              ElementsAre("fails: RoPE breaks past the training length"));
  EXPECT_THAT(found({result("rope", 0, 0.26)}),
              ElementsAre("undecided: RoPE breaks past the training length"));
  EXPECT_THAT(found({result("alibi", 0, 0.05)}),
              ElementsAre("holds: ALiBi holds past the training length",
                          "fails: ALiBi gets better with longer texts"));
}

// Arms of a seed share initial weights, batches and test text, so the seed's effect on both is not
// evidence for a difference.
TEST(Claims, CompareTwoMethodsSeedBySeed) {
  std::vector<ArmResult> results;
  for (const uint64_t seed : {0, 1, 2}) {
    const double of_seed = 0.3 * static_cast<double>(seed);
    const double wobble = 0.001 * static_cast<double>(seed);
    results.push_back(result("alibi", seed, 0, 0.5, 1.5 + of_seed));
    results.push_back(result("sandwich", seed, 0, 0.5, 1.4 + of_seed + wobble));
  }
  EXPECT_THAT(found(results),
              testing::Contains("holds: Sandwich is no worse than ALiBi on the longest texts"));
}

// Some blocks are harder than others for both methods; this common part is not part of the error of
// their difference.
ArmResult on_blocks(const std::string& label, const std::vector<double>& blocks) {
  ArmResult made = result(label, 0, 0, 0.5);
  for (AtLength& at : made.lengths) at.sliding_blocks = blocks;
  return made;
}

TEST(Claims, CompareTwoMethodsOfOneSeedBlockByBlock) {
  const std::vector<double> hard_and_easy{1.0, 2.0, 1.5, 3.0};
  const std::vector<double> a_little_better{0.99, 1.98, 1.49, 2.98};
  const std::vector<double> now_and_then_better{0.9, 2.2, 1.4, 3.0};
  const auto sandwich = [&](const std::vector<double>& blocks) {
    const std::vector<ArmResult> both{on_blocks("alibi", hard_and_easy),
                                      on_blocks("sandwich", blocks)};
    const std::vector<CheckedClaim> all = checked(both, small());
    const auto found = std::ranges::find_if(all, [](const CheckedClaim& claim) {
      return claim.claim.text ==
             std::string("Sandwich is no worse than ALiBi on the longest texts");
    });
    return found == all.end() ? CheckedClaim{} : *found;
  };
  EXPECT_EQ(sandwich(a_little_better).outcome, Outcome::kHolds);
  EXPECT_THAT(words(sandwich(a_little_better)).measure, HasSubstr("minus that of alibi"));
  EXPECT_EQ(words(sandwich(a_little_better)).value, "-0.015 ± 0.009");
  EXPECT_EQ(words(sandwich(a_little_better)).over, "over 4 blocks");
  EXPECT_EQ(words(sandwich(a_little_better)).bound, "below 0");
  EXPECT_EQ(sandwich(now_and_then_better).outcome, Outcome::kUndecided);
}

TEST(Claims, SayWhereAnOldResultKeptNoBlocks) {
  const std::vector<ArmResult> both{result("alibi", 0, 0), on_blocks("sandwich", {1, 2, 3, 4})};
  const std::string text = claims_text(checked(both, small()));
  EXPECT_THAT(text, HasSubstr("minus that of alibi: +0.000 ± 0.980 (not paired: one result is "
                              "of a version that kept no blocks), said to be below 0"));
}

TEST(Claims, CompareRetrievalTextByText) {
  Settings settings = settings_of_results();
  settings.training.bytes = kEnoughBytes;
  ArmResult few = pair_result("rope", 0, 1, 0.5), more = pair_result("t5", 0, 1, 0.6);
  // Both have the same 50 right; the second has 10 of the other 50 right as well.
  for (AtDistance& at : few.retrieval) at.right = std::string(50, '1') + std::string(50, '0');
  for (AtDistance& at : more.retrieval) at.right = std::string(60, '1') + std::string(40, '0');
  const std::vector<ArmResult> both{few, more};
  const std::vector<CheckedClaim> all = checked(both, settings);
  ASSERT_EQ(all.size(), 2);
  EXPECT_EQ(all[1].claim.text, std::string("T5's bias finds more than RoPE far back"));
  EXPECT_EQ(all[1].outcome, Outcome::kHolds);
  EXPECT_EQ(words(all[1]).over, "over 100 texts");
}

TEST(Claims, NeedBothMethodsAndNoDivergedOne) {
  ArmResult diverged = result("rope", 0, 0);
  diverged.diverged = true;
  diverged.lengths.clear();
  EXPECT_THAT(found({diverged, result("xpos", 0, 0.2)}), IsEmpty());
  EXPECT_THAT(found({result("rope:base=1e6", 0, 1)}), IsEmpty());
}

TEST(Claims, AskRetrievalApartFromText) {
  Settings settings = settings_of_results();
  settings.training.bytes = kEnoughBytes;
  const std::vector<ArmResult> results{pair_result("alibi", 0, 1, 0.3),
                                       pair_result("t5", 0, 1, 0.9),
                                       pair_result("rope", 0, 1, 0.48)};
  std::vector<std::string> lines;
  for (const CheckedClaim& claim : checked(results, settings)) {
    lines.push_back(std::string(name(claim.outcome)) + ": " + claim.claim.text);
  }
  EXPECT_THAT(lines, ElementsAre("holds: ALiBi does not find what lies far back",
                                 "undecided: RoPE does not find what lies far back",
                                 "holds: T5's bias finds more than RoPE far back"));
}

TEST(Claims, WantTrainingsThatLearnedSomething) {
  Settings settings = small();
  settings.training.bytes = kEnoughBytes - 1;
  const std::vector<ArmResult> results{result("rope", 0, 0)};
  EXPECT_THAT(checked(results, settings), IsEmpty());
}

// An arm with weights of another, as a survey makes it.
ArmResult of_arm(const std::string& arm, const std::string& label, double change,
                 double at_length = 1.5) {
  ArmResult made = result("rope", 0, change, 0.01, at_length);
  for (const Arm& one : make_arms(std::vector{arm}, 1, settings_of_results())) {
    if (one.task == Task::kText && one.label == arm) made.arm = one;
  }
  made.arm.label = label;
  return made;
}

TEST(Claims, FindArmsByMethodAndOptions) {
  EXPECT_THAT(found({of_arm("tener", "t", 0, 2.0), of_arm("tener:scaled=true", "u", 0, 1.7)}),
              testing::IsSupersetOf({"fails: TENER is better without scaled scores",
                                     "holds: TENER is better with scaled scores"}));
  const std::vector<ArmResult> misnamed{of_arm("alibi", "rope", 1.0)};
  EXPECT_THAT(found(misnamed), testing::Each(HasSubstr("ALiBi"))) << "whatever its label";
  const CheckedClaim first = checked(misnamed, small()).at(0);
  EXPECT_EQ(words(first).measure, "change of the sliding loss of rope")
      << "the label in the tables";
}

TEST(Claims, FindAnArmWithADefaultSpelledOut) {
  const std::vector<ArmResult> results{of_arm("shaw:clip=16", "shaw:clip=16", 0, 1.50),
                                       of_arm("shaw:clip=2", "shaw:clip=2", 0, 1.60)};
  const auto lines = [&](const OptionDefaults& defaults) {
    std::vector<std::string> lines;
    for (const CheckedClaim& one : findings_of(results, small(), {.defaults = defaults}).claims) {
      lines.push_back(std::string(name(one.outcome)) + ": " + one.claim.text);
    }
    return lines;
  };
  EXPECT_THAT(lines([](const std::string&) { return R"({"clip": 16, "values": true})"; }),
              ElementsAre("fails: Shaw's encoding with a clip of 2 is as good as with 16 at the "
                          "training length"));
  EXPECT_THAT(lines({}), IsEmpty()) << "defaults are unknown";
}

TEST(Claims, CompareTunedArmsForEachNumberOfSteps) {
  const std::vector<ArmResult> results{of_arm("rope", "rope", 2), of_arm("pi", "pi", 0, 3.0),
                                       of_arm("pi:tune=20", "pi:tune=20", 0, 2.0),
                                       of_arm("pi:tune=40", "pi:tune=40", 0, 1.6),
                                       of_arm("rope:weights=rope:tune=40", "rope:tune=40", 0, 1.8)};
  std::vector<std::string> lines;
  for (const CheckedClaim& one : checked(results, small())) {
    if (one.claim.measure != Measure::kLongest || one.method == "pi") continue;
    lines.push_back(std::string(name(one.outcome)) + ": " + one.method + " - " + one.other);
  }
  EXPECT_THAT(lines, ElementsAre("holds: pi:tune=20 - pi", "holds: pi:tune=40 - pi",
                                 "holds: pi:tune=40 - rope:tune=40"));
}

TEST(Claims, CountChangesOfAStretchFromTheLossOfItsBase) {
  const std::vector<ArmResult> results{result("rope", 0, 2), of_arm("rerope", "rerope", 0, 1.8)};
  EXPECT_THAT(found(results), testing::Contains("fails: ReRoPE keeps RoPE from breaking"));
}

TEST(Claims, MeasureTheReachOfAStretch) {
  Settings settings = small();
  settings.test.lengths = {32, 64, 128, 256};
  ArmResult rope = result("rope", 0, 2), ntk = of_arm("ntk", "ntk", 0);
  ntk.arm.options = make_arms({"ntk"}, 1, settings).at(1).options;
  for (ArmResult* one : {&rope, &ntk}) {
    one->lengths.pop_back();
    for (const auto& [length, loss] : {std::pair(64, 1.52), {128, 1.9}, {256, 2.6}}) {
      one->lengths.push_back({.length = length, .sliding = {loss, 0.01}});
    }
  }
  const std::vector<ArmResult> results{rope, ntk};
  std::vector<std::string> lines;
  for (const CheckedClaim& one : checked(results, settings)) {
    if (!one.claim.question.empty()) {
      lines.push_back(std::string(name(one.outcome)) + ": " + words(one).value);
    }
  }
  EXPECT_THAT(lines, ElementsAre("holds: +0.020 ± 0.028", "fails: +0.400 ± 0.028",
                                 "holds: +1.100 ± 0.028"));
}

ArmResult attending(ArmResult made, const std::vector<double>& at_distance) {
  for (const int64_t length : {32, 64}) {
    made.attention.push_back({.length = length, .layer = 0, .at_distance = at_distance});
  }
  return made;
}

// Distances 0, 1, 2 to 3, 4 to 7, 8 to 15, 16 to 31, 32 to 63: L is 32.
TEST(Claims, MeasureAttentionFarBackOverSeeds) {
  std::vector<ArmResult> results;
  for (const uint64_t seed : {0, 1}) {
    const double shift = 0.001 * static_cast<double>(seed);
    results.push_back(
        attending(result("rope", seed, 0), {0.4, 0.2, 0.1, 0.1, 0.05, 0.05 + shift, 0.1 - shift}));
    results.push_back(attending(result("none", seed, 0), {0.1, 0.1, 0.1, 0.1, 0.2, 0.2, 0.2}));
  }
  const auto on_attention = [&](const std::vector<ArmResult>& of) {
    std::vector<std::string> lines;
    for (const CheckedClaim& one : findings_of(of, small()).claims) {
      if (one.claim.measure == Measure::kAttention) lines.push_back(words(one).value);
      if (one.claim.measure == Measure::kAttentionPast) lines.push_back(words(one).over);
    }
    return lines;
  };
  EXPECT_THAT(on_attention(results), ElementsAre("-0.400 ± 0.000", "over 2 seeds"));
  results.resize(2);
  EXPECT_THAT(on_attention(results), IsEmpty()) << "the error of one seed is unknown";
}

TEST(Claims, AreNotDecidedOnMethodsThatHaveNotLearned) {
  const std::vector<ArmResult> results{result("none", 0, 0, 0.01, 2.5),
                                       result("alibi", 0, 0, 0.01, 2.48),
                                       result("sinusoidal", 0, 1, 0.01, 2.0)};
  EXPECT_THAT(found(results),
              testing::IsSupersetOf({"not learned: ALiBi holds past the training length",
                                     "not learned: ALiBi gets better with longer texts",
                                     "fails: ALiBi is better than sinusoidal positions at the "
                                     "training length",
                                     "holds: Sinusoidal positions break past the training length",
                                     "fails: Sinusoidal positions extrapolate to some degree"}));
  EXPECT_THAT(claims_text(checked(results, small())),
              HasSubstr("said to be below 0.1; not decided: alibi has not learned the task\n"));
}

TEST(Claims, OnRetrievalNeedRetrievalThatWasLearned) {
  Settings settings = settings_of_results();
  settings.training.bytes = kEnoughBytes;
  const std::vector<ArmResult> results{pair_result("t5", 0, 1, 0.9),
                                       pair_result("rope", 0, 0.1, 0.08)};
  for (const CheckedClaim& one : checked(results, settings)) {
    EXPECT_EQ(one.outcome, Outcome::kNotLearned) << one.claim.text;
    EXPECT_EQ(words(one).reason, "rope has not learned the task");
  }
}

TEST(ClaimsText, GivesNumbersAndSource) {
  const std::vector<ArmResult> results{result("rope", 0, 1.0)};
  const std::string text = claims_text(checked(results, small()));
  EXPECT_THAT(text,
              HasSubstr("holds      RoPE breaks past the training length; Press et al. 2022"));
  EXPECT_THAT(text,
              HasSubstr("change of the sliding loss of rope: +1.000 ± 0.020 (over the test text), "
                        "said to be above 0.25"));
  EXPECT_EQ(claims_text({}), "");
}

}  // namespace
}  // namespace sextant::lab
