#include "sextant/lab/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/lab/arm_results.h"

namespace sextant::lab {
namespace {

using testing::HasSubstr;

constexpr const char* kHeader = "method,seed,measure,length,position,value\n";

Settings small() {
  Settings settings;
  settings.training = {.length = 32, .bytes = 10'240};
  settings.test = {.lengths = {32, 64}, .blocks = 4, .bin = 32};
  return settings;
}

TEST(Spread, IsThatOfASample) {
  const Spread one = spread(std::vector<double>{3});
  EXPECT_EQ(one.mean, 3);
  EXPECT_EQ(one.deviation, std::nullopt);
  const Spread three = spread(std::vector<double>{1, 2, 3});
  EXPECT_DOUBLE_EQ(three.mean, 2);
  EXPECT_DOUBLE_EQ(*three.deviation, 1);
}

TEST(Table, SaysWhoHoldsAndWhoBreaks) {
  const std::vector<ArmResult> results{arm_result("alibi", 0, 0.001), arm_result("xpos", 0, 0.2),
                                       arm_result("rope", 0, 2.0)};
  const std::string text = table(by_method(results), small());
  EXPECT_THAT(text, HasSubstr("alibi        1.500   1.501    +0.001  holds\n"));
  EXPECT_THAT(text, HasSubstr("xpos         1.500   1.700    +0.200  drifts\n"));
  EXPECT_THAT(text, HasSubstr("rope         1.500   3.500    +2.000  breaks\n"));
}

TEST(Table, ShowsTheSpreadOverSeeds) {
  const std::vector<ArmResult> results{arm_result("rope", 0, 1), arm_result("rope", 1, 2)};
  EXPECT_THAT(table(by_method(results), small()), HasSubstr("3.000 ±0.707"));
}

TEST(Table, NamesTrainingsThatDiverged) {
  ArmResult diverged;
  diverged.arm = {.label = "rope", .method = "rope", .options = "{}"};
  diverged.diverged = true;
  const std::vector<ArmResult> both{diverged, arm_result("rope", 1, 2)}, one{diverged};
  EXPECT_THAT(table(by_method(one), small()), HasSubstr("rope        diverged"));
  EXPECT_THAT(table(by_method(both), small()), HasSubstr("1 of 2 diverged"));
}

TEST(ResultsCsv, HasARowForEachNumber) {
  const std::vector<ArmResult> results{arm_result("rope", 0, 1)};
  const std::string csv = results_csv(results, small());
  EXPECT_THAT(csv, testing::StartsWith(kHeader));
  EXPECT_THAT(csv, HasSubstr("rope,0,sliding_change,64,,1\n"));
  EXPECT_THAT(csv, HasSubstr("rope,0,loss_at,64,32,3\n"));
  EXPECT_THAT(csv, HasSubstr("rope,0,training,32,5120,2.5\n"));
  EXPECT_EQ(std::ranges::count(csv, '\n'), 1 + 2 * 8 + 2 + 2);
}

TEST(ArmResult, SurvivesJson) {
  const nlohmann::json written = arm_result("rope", 3, 0.1 + 0.2);
  EXPECT_EQ(nlohmann::json(nlohmann::json::parse(written.dump()).get<ArmResult>()), written);
}

}  // namespace
}  // namespace sextant::lab
