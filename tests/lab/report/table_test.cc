#include "sextant/lab/report/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/lab/arm_results.h"

namespace sextant::lab {
namespace {

using testing::HasSubstr;

constexpr const char* kHeader = "method,seed,measure,length,position,value\n";

Settings small() { return settings_of_results(); }

TEST(Table, SaysWhoHoldsAndWhoBreaks) {
  const std::vector<ArmResult> results{arm_result("alibi", 0, 0.001), arm_result("xpos", 0, 0.2),
                                       arm_result("rope", 0, 2.0)};
  const std::string text = table(by_method(results), small());
  EXPECT_THAT(text, HasSubstr("alibi         1.500    1.501     +0.001  holds\n"));
  EXPECT_THAT(text, HasSubstr("xpos          1.500    1.700     +0.200  drifts\n"));
  EXPECT_THAT(text, HasSubstr("rope          1.500    3.500     +2.000  breaks\n"));
}

TEST(Table, ShowsRetrievalFarAndNear) {
  const std::vector<ArmResult> results{arm_result("alibi", 0, 0), pair_result("alibi", 0, 1, 0.25)};
  const std::string text = table(by_method(results), small());
  EXPECT_THAT(text,
              HasSubstr("Retrieval, trained at 16 tokens: share of pairs found; far: at the"));
  EXPECT_THAT(text, HasSubstr("method       far 16   far 32  near 32\n"
                              "alibi          0.25     0.25     1.00\n"));
}

// A stretch that raises the loss of short texts as much as that of long ones is compared with the
// trained method, not with itself.
TEST(Table, HoldsReadingsAgainstTheMethodThatWasTrained) {
  ArmResult spoilt = reading(arm_result("pi", 0, 0), "rope");
  for (AtLength& at : spoilt.lengths) at.sliding.value = 3;
  const std::vector<ArmResult> results{arm_result("rope", 0, 2), pair_result("rope", 0, 1, 0.1),
                                       spoilt, reading(pair_result("pi", 0, 0.5, 0.75), "rope"),
                                       reading(arm_result("rerope", 0, 0.01), "rope")};
  const std::vector<MethodResult> methods = by_method(results);
  EXPECT_EQ(verdict(methods[1], methods, small()), "breaks");
  const std::string text = table(methods, small());
  const size_t readings = text.find("How to stretch the trained rope");
  ASSERT_NE(readings, std::string::npos);
  EXPECT_THAT(text.substr(0, readings), testing::Not(HasSubstr("rerope")));
  EXPECT_THAT(
      text.substr(readings),
      HasSubstr("rerope        1.500    1.510     +0.010                    holds\n"
                "pi            3.000    3.000     +1.500     0.75     0.50  breaks\n"
                "rope          1.500    3.500     +2.000     0.10     1.00  breaks  (as it is)"
                "\n"));
}

TEST(Table, SaysWhenReadingsWereTrainedOn) {
  ArmResult tuned = reading(arm_result("pi", 0, 0), "rope");
  const std::vector<ArmResult> untouched{arm_result("rope", 0, 2), tuned};
  EXPECT_THAT(table(by_method(untouched), small()), HasSubstr("rope without more training: "));
  tuned.arm.tune = 20;
  tuned.arm.label = "pi:tune=20";
  const std::vector<ArmResult> both{arm_result("rope", 0, 2), untouched[1], tuned};
  EXPECT_THAT(table(by_method(both), small()),
              testing::AllOf(HasSubstr("rope (tune=N: after N steps of more"),
                             testing::Not(HasSubstr("without more training"))));
}

TEST(Table, HasNoNegativeZero) {
  const std::vector<ArmResult> results{arm_result("window", 0, -1e-5)};
  EXPECT_THAT(table(by_method(results), small()),
              testing::AllOf(HasSubstr("+0.000"), testing::Not(HasSubstr("-0.000"))));
}

TEST(Table, ShowsTheIntervalOverSeeds) {
  const std::vector<ArmResult> results{arm_result("rope", 0, 1), arm_result("rope", 1, 2)};
  EXPECT_THAT(table(by_method(results), small()), HasSubstr("3.000 ±6.353"));
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

TEST(ResultsCsv, HaveRowsOfRetrieval) {
  const std::vector<ArmResult> results{pair_result("rope", 0, 1, 0.5)};
  const std::string csv = results_csv(results, small());
  EXPECT_THAT(csv, HasSubstr("rope,0,retrieval,32,30,0.5\n"));
  EXPECT_THAT(csv, HasSubstr("rope,0,retrieval_standard_error,32,8,0.02\n"));
  EXPECT_THAT(csv, HasSubstr("rope,0,retrieval_training,16,20480,1\n"));
}

TEST(Summary, IsTheMeanAndItsIntervalOverSeeds) {
  const std::vector<ArmResult> results{arm_result("rope", 0, 1), arm_result("rope", 1, 2),
                                       pair_result("rope", 0, 1, 0.5)};
  const std::string csv = summary_csv(by_method(results));
  EXPECT_THAT(csv,
              testing::StartsWith("method,measure,length,distance,seeds,mean,half_interval95\n"));
  EXPECT_THAT(csv, HasSubstr("\nrope,sliding,64,,2,3,6.353"));
  EXPECT_THAT(csv, HasSubstr("\nrope,retrieval,32,30,1,0.5,\n"));
}

TEST(ArmResult, SurvivesJson) {
  for (const ArmResult& result : {arm_result("rope", 3, 0.1 + 0.2), pair_result("t5", 1, 0.3, 0)}) {
    const nlohmann::json written = result;
    EXPECT_EQ(nlohmann::json(nlohmann::json::parse(written.dump()).get<ArmResult>()), written);
  }
}

}  // namespace
}  // namespace sextant::lab
