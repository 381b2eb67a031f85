#include "sextant/lab/report/result_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sextant/lab/report/report.h"
#include "tests/lab/arm_results.h"

namespace sextant::lab {
namespace {

using testing::HasSubstr;

std::string text_of(const std::vector<ArmResult>& results) {
  return tables_text(findings_of(results, settings_of_results()));
}

TEST(Table, SaysWhoHoldsAndWhoBreaks) {
  const std::vector<ArmResult> results{arm_result("alibi", 0, 0.001), arm_result("xpos", 0, 0.2),
                                       arm_result("rope", 0, 2.0)};
  const std::string text = text_of(results);
  EXPECT_THAT(text, HasSubstr("alibi         1.500    1.501     +0.001  holds\n"));
  EXPECT_THAT(text, HasSubstr("xpos          1.500    1.700     +0.200  drifts\n"));
  EXPECT_THAT(text, HasSubstr("rope          1.500    3.500     +2.000  breaks\n"));
}

TEST(Table, ShowsRetrievalFarAndNear) {
  const std::vector<ArmResult> results{arm_result("alibi", 0, 0), pair_result("alibi", 0, 1, 0.25)};
  const std::string text = text_of(results);
  EXPECT_THAT(text,
              HasSubstr("Retrieval, trained at 16 tokens: share of pairs found; far: at the"));
  EXPECT_THAT(text, HasSubstr("method       far 16   far 32  near 32\n"
                              "alibi          0.25     0.25     1.00\n"));
}

// A stretch that raises the loss of short texts as much as that of long ones is compared with the
// trained method, not with itself.
TEST(Table, HoldsReadingsAgainstTheMethodThatWasTrained) {
  ArmResult costly = reading(arm_result("pi", 0, 0), "rope");
  for (AtLength& at : costly.lengths) at.sliding.value = 3;
  const std::vector<ArmResult> results{arm_result("rope", 0, 2), pair_result("rope", 0, 1, 0.1),
                                       costly, reading(pair_result("pi", 0, 0.5, 0.75), "rope"),
                                       reading(arm_result("rerope", 0, 0.01), "rope")};
  const Findings findings = findings_of(results, settings_of_results());
  EXPECT_EQ(findings.methods[1].verdict, Verdict::kBreaks);
  const std::string text = tables_text(findings);
  const size_t stretches = text.find("How to stretch the trained rope");
  ASSERT_NE(stretches, std::string::npos);
  EXPECT_THAT(text.substr(0, stretches), testing::Not(HasSubstr("rerope")));
  EXPECT_THAT(
      text.substr(stretches),
      HasSubstr("rerope        1.500    1.510     +0.010                    holds\n"
                "pi            3.000    3.000     +1.500     0.75     0.50  breaks\n"
                "rope          1.500    3.500     +2.000     0.10     1.00  breaks  (as it is)"
                "\n"));
}

TEST(Table, SaysWhenReadingsWereTrainedOn) {
  ArmResult tuned = reading(arm_result("pi", 0, 0), "rope");
  const std::vector<ArmResult> untouched{arm_result("rope", 0, 2), tuned};
  EXPECT_THAT(text_of(untouched), HasSubstr("rope without more training: "));
  tuned.arm.tune = 20;
  tuned.arm.label = "pi:tune=20";
  const std::vector<ArmResult> both{arm_result("rope", 0, 2), untouched[1], tuned};
  EXPECT_THAT(text_of(both), testing::AllOf(HasSubstr("rope (tune=N: after N steps of more"),
                                            testing::Not(HasSubstr("without more training"))));
}

TEST(Table, ShowsWhatIsLostWithChannels) {
  ArmResult dropped = reading(arm_result("binary:drop_channels=1", 0, 0.5), "binary");
  dropped.arm.drop_channels = 1;
  for (AtLength& at : dropped.lengths) at.sliding.value += 0.25;
  ArmResult found = reading(pair_result("binary:drop_channels=1", 0, 0.5, 0.125), "binary");
  found.arm.drop_channels = 1;
  const std::vector<ArmResult> results{arm_result("rope", 0, 2), arm_result("binary", 0, 0.5),
                                       pair_result("binary", 0, 1, 0.75), dropped, found};
  const Findings findings = findings_of(results, settings_of_results());
  EXPECT_FALSE(findings.methods[1].is_base) << "no stretch has its weights";
  EXPECT_THAT(summary_csv(findings), HasSubstr("\nbinary:drop_channels=1,lost,32,,1,0.25,\n"));
  const std::string text = tables_text(findings);
  const size_t lost = text.find("Channels of the added position vector set to zero");
  ASSERT_NE(lost, std::string::npos);
  EXPECT_THAT(text.substr(lost),
              HasSubstr("binary                    1.500    2.000                0.75  (all "
                        "channels)\n"
                        "binary:drop_channels=1    1.750    2.250     +0.250     0.12\n"));
  EXPECT_THAT(text, testing::Not(HasSubstr("How to stretch the trained binary")));
  EXPECT_THAT(text.substr(0, lost), testing::Not(HasSubstr("drop_channels")));
}

TEST(Table, HasNoNegativeZero) {
  const std::vector<ArmResult> results{arm_result("window", 0, -1e-5)};
  EXPECT_THAT(text_of(results),
              testing::AllOf(HasSubstr("+0.000"), testing::Not(HasSubstr("-0.000"))));
}

TEST(Table, ShowsTheIntervalOverSeeds) {
  const std::vector<ArmResult> results{arm_result("rope", 0, 1), arm_result("rope", 1, 2)};
  EXPECT_THAT(text_of(results), HasSubstr("3.000 ±6.353"));
}

TEST(Table, NamesTrainingsThatDiverged) {
  ArmResult diverged;
  diverged.arm = {.label = "rope", .method = "rope", .options = "{}"};
  diverged.diverged = true;
  const std::vector<ArmResult> both{diverged, arm_result("rope", 1, 2)}, one{diverged};
  EXPECT_THAT(text_of(one), HasSubstr("rope        diverged"));
  EXPECT_THAT(text_of(both), HasSubstr("1 of 2 diverged"));
}

}  // namespace
}  // namespace sextant::lab
