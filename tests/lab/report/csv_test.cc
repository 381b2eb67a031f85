#include "sextant/lab/report/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/lab/arm_results.h"

namespace sextant::lab {
namespace {

using testing::HasSubstr;

constexpr const char* kHeader = "method,seed,measure,length,position,value\n";

TEST(ResultsCsv, HasARowForEachNumber) {
  const std::vector<ArmResult> results{arm_result("rope", 0, 1)};
  const std::string csv = results_csv(findings_of(results, settings_of_results()));
  EXPECT_THAT(csv, testing::StartsWith(kHeader));
  EXPECT_THAT(csv, HasSubstr("rope,0,sliding_change,64,,1\n"));
  EXPECT_THAT(csv, HasSubstr("rope,0,loss_at,64,32,3\n"));
  EXPECT_THAT(csv, HasSubstr("rope,0,training,32,5120,2.5\n"));
  EXPECT_EQ(std::ranges::count(csv, '\n'), 1 + 2 * 8 + 2 + 2);
}

TEST(ResultsCsv, HaveRowsOfRetrieval) {
  const std::vector<ArmResult> results{pair_result("rope", 0, 1, 0.5)};
  const std::string csv = results_csv(findings_of(results, settings_of_results()));
  EXPECT_THAT(csv, HasSubstr("rope,0,retrieval,32,30,0.5\n"));
  EXPECT_THAT(csv, HasSubstr("rope,0,retrieval_standard_error,32,8,0.02\n"));
  EXPECT_THAT(csv, HasSubstr("rope,0,retrieval_training,16,20480,1\n"));
}

TEST(Summary, IsTheMeanAndItsIntervalOverSeeds) {
  const std::vector<ArmResult> results{arm_result("rope", 0, 1), arm_result("rope", 1, 2),
                                       pair_result("rope", 0, 1, 0.5)};
  const std::string csv = summary_csv(findings_of(results, settings_of_results()));
  EXPECT_THAT(csv,
              testing::StartsWith("method,measure,length,distance,seeds,mean,half_interval95\n"));
  EXPECT_THAT(csv, HasSubstr("\nrope,sliding,64,,2,3,6.353"));
  EXPECT_THAT(csv, HasSubstr("\nrope,retrieval,32,30,1,0.5,\n"));
  EXPECT_THAT(csv, testing::Not(HasSubstr(kBaseChange))) << "rope has no base";
}

}  // namespace
}  // namespace sextant::lab
