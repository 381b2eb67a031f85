#include "sextant/lab/claims.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  result.arm = {.label = label, .method = label, .options = "{}", .seed = seed};
  result.lengths = {
      {.length = 32, .sliding = {at_length, error}},
      {.length = 64, .sliding = {at_length + change, error}, .sliding_change = {change, error}}};
  return result;
}

std::vector<std::string> found(const std::vector<ArmResult>& results) {
  std::vector<std::string> lines;
  for (const ClaimFound& claim : claims(by_method(results), small())) {
    lines.push_back(std::string(name(claim.finding)) + ": " + claim.claim);
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

// Their starts, batches and test text are the same, so what a seed adds to both is no evidence.
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
  for (const ClaimFound& claim : claims(by_method(results), settings)) {
    lines.push_back(std::string(name(claim.finding)) + ": " + claim.claim);
  }
  EXPECT_THAT(lines, ElementsAre("holds: ALiBi does not find what lies far back",
                                 "undecided: RoPE does not find what lies far back",
                                 "holds: T5's bias finds more than RoPE far back"));
}

TEST(Claims, WantTrainingsThatLearnedSomething) {
  Settings settings = small();
  settings.training.bytes = kEnoughBytes - 1;
  const std::vector<ArmResult> results{result("rope", 0, 0)};
  EXPECT_THAT(claims(by_method(results), settings), IsEmpty());
}

TEST(ClaimsText, GivesNumbersAndSource) {
  const std::vector<ArmResult> results{result("rope", 0, 1.0)};
  const std::string text = claims_text(claims(by_method(results), small()));
  EXPECT_THAT(text,
              HasSubstr("holds      RoPE breaks past the training length; Press et al. 2022"));
  EXPECT_THAT(
      text, HasSubstr("change of the sliding loss of rope: +1.000 ± 0.020, said to be above 0.25"));
  EXPECT_EQ(claims_text({}), "");
}

}  // namespace
}  // namespace sextant::lab
