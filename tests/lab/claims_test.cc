#include "sextant/lab/claims.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "sextant/error.h"

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

// Half widths for 1, 2 and 3, whose deviation is 1: t(2) / sqrt(3); and for 0 and 2: t(1) sqrt(2) / sqrt(2).
TEST(Interval95, IsStudents) {
  const Interval three = interval95(std::vector<double>{1, 2, 3});
  EXPECT_DOUBLE_EQ(three.mean, 2);
  EXPECT_NEAR(three.half, 4.303 / std::sqrt(3.0), 1e-12);
  EXPECT_NEAR(interval95(std::vector<double>{0, 2}).half, 12.706, 1e-12);
  std::vector<double> many;
  for (int n = 0; n < 61; ++n) many.push_back(n % 2);
  EXPECT_NEAR(interval95(many).half, 2.000 * *spread(many).deviation / std::sqrt(61.0), 2e-4);
  EXPECT_THROW(interval95(std::vector<double>{1}), Error);
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
