#include "sextant/lab/report/advice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sextant/lab/report/claims.h"
#include "tests/lab/arm_results.h"

namespace sextant::lab {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

Advice of(const std::vector<ArmResult>& results) {
  return advice(findings_of(results, settings_of_enough()));
}

TEST(Advice, WantsBothALossThatHoldsAndPairsThatAreFound) {
  const std::vector<ArmResult> results{
      arm_result("rope", 0, 2),        pair_result("rope", 0, 1, 0.1),
      arm_result("alibi", 0, -0.1),    pair_result("alibi", 0, 1, 0.2),
      arm_result("t5", 0, 0.02),       pair_result("t5", 0, 1, 0.7),
      arm_result("sandwich", 0, 0.01), pair_result("sandwich", 0, 1, 0.6)};
  const std::string train = of(results).train;
  EXPECT_EQ(
      train,
      "**Train with sandwich**: it has a loss of 1.510 at 64 bytes (1.500 at 32) and finds 60 % "
      "of the key-value pairs 30 tokens back.");
  const std::string details = of(results).details;
  EXPECT_THAT(details,
              HasSubstr("- Encodings that were trained: 3 of 4 hold their loss at 64 bytes; "
                        "2 of these find at least half of the key-value pairs 30 tokens back"));
  EXPECT_THAT(
      details,
      HasSubstr("- By loss at 64 bytes: sandwich 1.510 (60 % found), t5 1.520 (70 % found)."));
  EXPECT_THAT(details, HasSubstr("Loss alone misleads: it also holds for alibi 1.400 (20 % found), "
                                 "which does not find the key-value pairs 30 tokens back."));
  EXPECT_THAT(of(results).stretch, IsEmpty());
}

TEST(Advice, SaysWhereNoneDoesBoth) {
  const std::vector<ArmResult> breaking{arm_result("rope", 0, 2), arm_result("learned", 0, 1)};
  EXPECT_THAT(
      of(breaking).train,
      StartsWith("**None of the 2 encodings holds its loss**: the lowest, learned, has 2.500 "
                 "at 64 bytes (1.500 at 32)."));
  EXPECT_THAT(of(breaking).details, HasSubstr("learned 2.500, rope 3.500."));
  const std::vector<ArmResult> forgetting{arm_result("rope", 0, 2), arm_result("alibi", 0, 0),
                                          pair_result("alibi", 0, 1, 0.2)};
  EXPECT_THAT(of(forgetting).train,
              HasSubstr("none of these finds half of the key-value pairs 30 tokens back."));
}

TEST(Advice, StretchesWhatWasTrained) {
  const std::vector<ArmResult> results{arm_result("rope", 0, 2),
                                       pair_result("rope", 0, 1, 0.1),
                                       reading(arm_result("window", 0, 0), "rope"),
                                       reading(pair_result("window", 0, 1, 0.05), "rope"),
                                       reading(arm_result("rerope", 0, 0.02), "rope"),
                                       reading(pair_result("rerope", 0, 1, 0.9), "rope")};
  const Advice advised = of(results);
  EXPECT_THAT(advised.train, IsEmpty()) << "one encoding is no choice";
  EXPECT_EQ(advised.stretch,
            "**Stretch a trained rope with rerope**: it has a loss of 1.520 at 64 bytes (rope "
            "unchanged: 3.500) and finds 90 % of the key-value pairs 30 tokens back.");
  EXPECT_EQ(advised.answer(), advised.stretch);
}

TEST(Advice, NamesAllThatAreNotSignificantlyWorse) {
  const auto on_blocks = [](const std::string& label, const std::vector<double>& blocks) {
    ArmResult made = arm_result(label, 0, blocks.front() - 1.5);
    made.lengths.back().sliding_blocks = blocks;
    return made;
  };
  const std::vector<ArmResult> results{on_blocks("t5", {1.50, 1.6, 1.4, 1.9}),
                                       on_blocks("shaw", {1.51, 1.5, 1.51, 1.9}),
                                       on_blocks("alibi", {1.52, 1.62, 1.43, 1.92})};
  const Advice advised = of(results);
  EXPECT_THAT(advised.train, StartsWith("**Train with t5 or shaw**: t5 has a loss of 1.500 "));
  EXPECT_THAT(advised.details, HasSubstr("- Not significantly worse than t5 (paired over 4 blocks, "
                                         "95 %): shaw +0.005 ± "));
  EXPECT_THAT(advised.details, HasSubstr("alibi 1.520")) << "it holds, too";
}

TEST(Advice, SaysHowManySeedsItRestsOn) {
  std::vector<ArmResult> results{arm_result("rope", 0, 2), arm_result("t5", 0, 0)};
  EXPECT_THAT(of(results).details, HasSubstr("one seed"));
  results.push_back(arm_result("rope", 1, 2));
  EXPECT_THAT(of(results).details, HasSubstr("one seed")) << "t5 has no second one";
  results.push_back(arm_result("t5", 1, 0));
  EXPECT_THAT(of(results).details, HasSubstr("means over 2 seeds"));
}

TEST(Advice, IsNotGivenOnTrainingsThatLearnedTooLittle) {
  const std::vector<ArmResult> results{arm_result("rope", 0, 2), arm_result("t5", 0, 0)};
  Settings settings = settings_of_enough();
  settings.training.bytes = kEnoughBytes - 1;
  EXPECT_THAT(advice_text(advice(findings_of(results, settings))), IsEmpty());
}

// The terminal output begins with the sentences of the report, without Markdown.
TEST(Advice, OpensWithTheAnswerAsPlainText) {
  const std::vector<ArmResult> results{arm_result("rope", 0, 2), arm_result("t5", 0, 0),
                                       reading(arm_result("rerope", 0, 0.02), "rope")};
  const std::string text = advice_text(of(results));
  EXPECT_THAT(text, StartsWith("Train with t5: it has a loss of 1.500 at 64 bytes (1.500 at 32).\n"
                               "Stretch a trained rope with rerope: it has a loss of 1.520 "));
  EXPECT_THAT(text, Not(HasSubstr("*")));
  EXPECT_THAT(text, Not(HasSubstr("`")));
}

}  // namespace
}  // namespace sextant::lab
