// The report of a survey of masked bytes and direction.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sextant/chart/report.h"
#include "sextant/lab/report/advice.h"
#include "sextant/lab/report/findings.h"
#include "sextant/lab/report/report.h"
#include "sextant/lab/report/result_table.h"
#include "tests/lab/arm_results.h"

namespace sextant::lab {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

Findings masked_survey() {
  Settings settings = settings_of_results();
  settings.objective = Objective::kMasked;
  settings.training.bytes = kEnoughBytes;
  const auto text = [](const std::string& label, double trained, double change) {
    return at_loss(arm_result(label, 0, change, Task::kMasked), trained);
  };
  const std::vector<ArmResult> results{text("none", 3.3, 0.03),
                                       direction_result("none", 0, 0.1),
                                       text("alibi", 2.6, 0.0),
                                       direction_result("alibi", 0, 0.5),
                                       text("shaw", 2.2, 0.02),
                                       direction_result("shaw", 0, 1.0),
                                       text("rope", 2.0, 0.9),
                                       direction_result("rope", 0, 0.9),
                                       reading(text("pi", 2.5, 0), "rope"),
                                       reading(direction_result("pi", 0, 0.7), "rope")};
  return findings_of(results, settings);
}

TEST(MaskedReport, HasColumnsOfDirection) {
  const std::string tables = tables_text(masked_survey());
  EXPECT_THAT(tables, HasSubstr("The middle 16 bytes of a window of each length"));
  EXPECT_THAT(tables, HasSubstr("nats per masked byte"));
  EXPECT_THAT(tables, HasSubstr("alibi          0.50     0.50  (not learned)\n"));
  EXPECT_THAT(tables, HasSubstr("shaw           1.00     1.00\n"));
  EXPECT_THAT(tables, HasSubstr(" change  direction 32\n"));
}

// Words of causal surveys, whose tasks these models do not have.
TEST(MaskedReport, SaysNothingOfRetrieval) {
  const Findings findings = masked_survey();
  const std::string html = chart::html(report_page({}, findings, "sextant survey", ""));
  for (const std::string& text :
       {html, tables_text(findings), advice_text(advice(findings)), summary_csv(findings)}) {
    for (const char* word : {"etrieval", "pairs", "The last ", "bytes back,"}) {
      EXPECT_THAT(text, Not(HasSubstr(word)));
    }
  }
}

TEST(MaskedReport, RecommendsNoEncodingWithoutDirection) {
  const Findings findings = masked_survey();
  const std::string text = advice_text(advice(findings));
  EXPECT_THAT(text, HasSubstr("Train with shaw"));
  EXPECT_THAT(text, HasSubstr("alibi (fewer than three quarters of the marks tagged right in "
                              "sequences of 16)"));
}

TEST(MaskedReport, ChecksTheClaimsOnDirection) {
  std::vector<std::string> texts;
  for (const CheckedClaim& checked : masked_survey().claims) {
    texts.push_back(std::string(checked.claim.text) + ": " + name(checked.outcome));
  }
  EXPECT_THAT(texts, Contains("ALiBi does not tell direction, because its bias is symmetric: "
                              "holds"));
  EXPECT_THAT(summary_csv(masked_survey()), HasSubstr("shaw,direction,16,1,1,1,"));
}

}  // namespace
}  // namespace sextant::lab
