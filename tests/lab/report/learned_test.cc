#include "sextant/lab/report/findings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sextant/chart/report.h"
#include "sextant/lab/report/advice.h"
#include "sextant/lab/report/report.h"
#include "sextant/lab/report/result_table.h"
#include "tests/lab/arm_results.h"

namespace sextant::lab {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

ArmResult text(const std::string& label, double trained, double change, uint64_t seed = 0) {
  return at_loss(arm_result(label, seed, change), trained);
}

Background bigrams_of(double loss) {
  return {.bigrams =
              BigramLoss{.mean = loss, .blocks = {loss - 0.2, loss - 0.1, loss + 0.1, loss + 0.2}},
          .defaults = {}};
}

const MethodResult& method_of(const Findings& findings, const std::string& label) {
  return *std::ranges::find(findings.methods, label, &MethodResult::label);
}

Verdict verdict_of(const Findings& findings, const std::string& label) {
  return method_of(findings, label).verdict;
}

TEST(LearnedText, IsALossBelowThatOfNone) {
  const std::vector<ArmResult> results{text("none", 2.5, 0.1), text("binary", 2.46, 0.01),
                                       text("alibi", 1.7, 0.01), text("sinusoidal", 2.3, 1)};
  const Findings findings = findings_of(results, settings_of_enough(), bigrams_of(2.7));
  EXPECT_EQ(verdict_of(findings, "binary"), Verdict::kNotLearned) << "by less than the margin";
  EXPECT_EQ(verdict_of(findings, "alibi"), Verdict::kHolds);
  EXPECT_EQ(verdict_of(findings, "sinusoidal"), Verdict::kBreaks);
  ASSERT_TRUE(findings.reference.has_value());
  EXPECT_EQ(findings.reference->name, "none");
  EXPECT_NEAR(findings.reference->loss, 2.5, 1e-12);
  EXPECT_NEAR(method_of(findings, "alibi").to_reference.value().mean, -0.8, 1e-12);
}

// One block is much better than that of none, and the others are worse.
TEST(LearnedText, IsSignificantlyBelowThatOfNone) {
  ArmResult lucky = text("binary", 2.3, 0);
  for (AtLength& at : lucky.lengths) at.sliding_blocks = {1.0, 2.6, 2.8, 2.8};
  const std::vector<ArmResult> results{text("none", 2.5, 0), lucky};
  EXPECT_EQ(verdict_of(findings_of(results, settings_of_enough()), "binary"), Verdict::kNotLearned);
}

TEST(LearnedText, IsComparedSeedBySeed) {
  std::vector<ArmResult> results;
  for (const uint64_t seed : {0, 1, 2}) {
    const double of_seed = 0.3 * static_cast<double>(seed);
    results.push_back(text("none", 2.5 + of_seed, 0, seed));
    results.push_back(text("alibi", 2.2 + 1.01 * of_seed, 0, seed));
  }
  const Findings findings = findings_of(results, settings_of_enough());
  EXPECT_EQ(verdict_of(findings, "alibi"), Verdict::kHolds);
}

TEST(LearnedText, IsALossBelowThatOfBigramsWithoutNone) {
  const std::vector<ArmResult> results{text("binary", 2.5, 0.01), text("alibi", 1.7, 0.01)};
  const Findings findings = findings_of(results, settings_of_enough(), bigrams_of(2.7));
  EXPECT_EQ(verdict_of(findings, "binary"), Verdict::kNotLearned);
  EXPECT_EQ(verdict_of(findings, "alibi"), Verdict::kHolds);
  EXPECT_EQ(findings.reference.value().name, "bigrams");
  EXPECT_EQ(findings.reference.value().margin, kBelowBigrams);
}

TEST(LearnedText, IsUnknownWithoutAReference) {
  const std::vector<ArmResult> results{text("alibi", 5.5, 0)};
  const Findings findings = findings_of(results, settings_of_enough());
  EXPECT_FALSE(findings.reference.has_value());
  EXPECT_EQ(method_of(findings, "alibi").text, Learned::kUnknown);
  EXPECT_EQ(verdict_of(findings, "alibi"), Verdict::kHolds);
}

TEST(LearnedText, IsInheritedFromTheMethodThatWasTrained) {
  const ArmResult pi = reading(text("pi", 3.5, 0), "rope");
  const std::vector<ArmResult> learned{text("none", 2.5, 0), text("rope", 1.5, 2), pi};
  EXPECT_EQ(verdict_of(findings_of(learned, settings_of_enough()), "pi"), Verdict::kBreaks)
      << "rope has learned, and pi loses it";
  const std::vector<ArmResult> unlearned{text("none", 2.5, 0), text("rope", 2.5, 2), pi};
  EXPECT_EQ(verdict_of(findings_of(unlearned, settings_of_enough()), "pi"), Verdict::kNotLearned);
}

TEST(LearnedText, OfNoneNeedsBigramsAndABetterMethod) {
  const auto of_none = [](double none, double rope, const Background& background) {
    const std::vector<ArmResult> results{text("none", none, 0), text("rope", rope, 2)};
    return verdict_of(findings_of(results, settings_of_enough(), background), "none");
  };
  EXPECT_EQ(of_none(2.0, 1.5, bigrams_of(2.7)), Verdict::kHolds);
  EXPECT_EQ(of_none(2.5, 1.5, bigrams_of(2.7)), Verdict::kNotLearned) << "hardly below bigrams";
  EXPECT_EQ(of_none(2.0, 2.0, bigrams_of(2.7)), Verdict::kNotLearned) << "nothing is better";
  EXPECT_EQ(of_none(2.0, 1.5, {}), Verdict::kNotLearned) << "bigrams are unknown";
  const std::vector<ArmResult> alone{text("none", 2.0, 0)};
  EXPECT_EQ(verdict_of(findings_of(alone, settings_of_enough(), bigrams_of(2.7)), "none"),
            Verdict::kNotLearned);
}

TEST(LearnedRetrieval, IsHalfOfThePairsNearInSequencesOfTheTrainedLength) {
  const std::vector<ArmResult> results{pair_result("alibi", 0, 0.5, 0.1),
                                       pair_result("rope", 0, 0.45, 0.1),
                                       reading(pair_result("rerope", 0, 0.9, 0.9), "rope")};
  const Findings findings = findings_of(results, settings_of_enough());
  EXPECT_EQ(method_of(findings, "alibi").retrieval, Learned::kYes);
  EXPECT_EQ(method_of(findings, "rope").retrieval, Learned::kNo);
  EXPECT_EQ(method_of(findings, "rerope").retrieval, Learned::kNo) << "by the weights of rope";
  EXPECT_THAT(tables_text(findings), HasSubstr("0.45  (not learned)\n"));
}

// A survey of a few steps: all losses are those of none, all pairs are guessed.
std::vector<ArmResult> unlearned(uint64_t seeds) {
  std::vector<ArmResult> results;
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    const double noise = 0.01 * static_cast<double>(seed);
    for (const char* label : {"none", "sinusoidal", "rope", "alibi", "binary", "t5"}) {
      results.push_back(text(label, 3 - noise, 0.01 + noise, seed));
      results.push_back(pair_result(label, seed, 0.0625, 0.0625));
    }
    for (const char* label : {"window", "rerope", "pi"}) {
      results.push_back(reading(text(label, 3, 0.01 + noise, seed), "rope"));
      results.push_back(reading(pair_result(label, seed, 0.0625, 0.0625), "rope"));
    }
  }
  return results;
}

class Unlearned : public testing::TestWithParam<uint64_t> {
 protected:
  Findings findings_ = findings_of(unlearned(GetParam()), settings_of_enough(), bigrams_of(2.9));
};

TEST_P(Unlearned, HasNoGreenVerdictInThePage) {
  const std::string html = chart::html(report_page({}, findings_, "sextant survey", /*status=*/""));
  EXPECT_THAT(html, AllOf(Not(HasSubstr("<td class=\"good")), Not(HasSubstr("<td class=\"bad"))));
  EXPECT_THAT(html, Not(HasSubstr(">holds</td>")));
  EXPECT_THAT(html, AllOf(HasSubstr("<td class=\"quiet\" data-label=\"verdict\">not learned"),
                          HasSubstr(">not learned<")));
}

TEST_P(Unlearned, HasNoVerdictInTheTables) {
  const std::string tables = tables_text(findings_);
  EXPECT_THAT(tables, AllOf(Not(HasSubstr("  holds")), Not(HasSubstr("  drifts")),
                            Not(HasSubstr("  breaks")), HasSubstr("  not learned\n")));
}

TEST_P(Unlearned, HasNoOutcomeOfAClaim) {
  ASSERT_THAT(findings_.claims, Not(IsEmpty()));
  for (const CheckedClaim& checked : findings_.claims) {
    SCOPED_TRACE(checked.claim.text);
    EXPECT_EQ(checked.outcome, Outcome::kNotLearned);
    EXPECT_THAT(words(checked).reason, HasSubstr("not learned the task"));
  }
}

TEST_P(Unlearned, GetsNoAdvice) {
  const Advice advised = advice(findings_);
  EXPECT_EQ(advised.train, "**No encoding is recommended**: none of them has learned the text.");
  EXPECT_EQ(advised.stretch,
            "**No stretch of rope is recommended**: rope itself has not learned the text.");
  EXPECT_THAT(advised.details,
              HasSubstr("- Left out, as not learned: sinusoidal, rope, alibi, binary, t5 (loss at "
                        "32: not significantly, or not by 0.1, below that of none ("));
}

TEST_P(Unlearned, IsMarkedInChartsAndFiles) {
  for (const NamedChart& named : charts(findings_)) {
    for (const chart::Series& series : named.chart.series) {
      EXPECT_THAT(series.name, testing::EndsWith(" (not learned)")) << named.file;
    }
  }
  const nlohmann::json json = results_json(nlohmann::json::object(), findings_);
  EXPECT_EQ(json.at("reference").at("name"), "none");
  ASSERT_THAT(json.at("verdicts"), SizeIs(9));
  for (const nlohmann::json& line : json.at("verdicts")) {
    EXPECT_EQ(line.at("verdict"), "not learned");
    EXPECT_EQ(line.at("text_learned"), false);
    EXPECT_EQ(line.at("small_task_learned"), false);
  }
  EXPECT_THAT(summary_csv(findings_), HasSubstr("\nalibi,sliding_minus_reference,32,,"));
}

INSTANTIATE_TEST_SUITE_P(Seeds, Unlearned, testing::Values(1, 3));

// Text is learned, and retrieval by none or by some.
TEST(LeftOut, AreMethodsWithoutRetrievalWhereOthersHaveIt) {
  const std::vector<ArmResult> results{text("none", 2.5, 0),   pair_result("none", 0, 1, 0.1),
                                       text("alibi", 1.7, 0),  pair_result("alibi", 0, 0.1, 0.1),
                                       text("t5", 1.8, 0),     pair_result("t5", 0, 1, 0.8),
                                       text("shaw", 1.9, 0),   pair_result("shaw", 0, 1, 0.9),
                                       text("binary", 2.5, 0), pair_result("binary", 0, 1, 0.9)};
  const Findings findings = findings_of(results, settings_of_enough());
  ASSERT_THAT(findings.rankings, SizeIs(1));
  const Ranking& ranking = findings.rankings[0];
  EXPECT_THAT(ranking.without_text, ElementsAre("binary"));
  EXPECT_THAT(ranking.without_retrieval, ElementsAre("alibi"));
  const Advice advised = advice(findings);
  EXPECT_THAT(advised.train, HasSubstr("**Train with t5**"));
  EXPECT_THAT(advised.details,
              HasSubstr("- Left out, as not learned: binary (loss at 32: not significantly, or not "
                        "by 0.1, below that of none (2.500)); alibi (less than half of the pairs 8 "
                        "tokens back found in sequences of 16).\n"));
}

TEST(LeftOut, IsRetrievalThatNoMethodLearned) {
  const std::vector<ArmResult> results{text("none", 2.5, 0),  pair_result("none", 0, 0.1, 0.1),
                                       text("alibi", 1.7, 0), pair_result("alibi", 0, 0.1, 0.1),
                                       text("rope", 1.6, 2),  pair_result("rope", 0, 0.1, 0.1)};
  const Findings findings = findings_of(results, settings_of_enough());
  const Advice advised = advice(findings);
  EXPECT_EQ(advised.train,
            "**Train with alibi**: it has a loss of 1.700 at 64 bytes (1.700 at 32).");
  EXPECT_THAT(advised.details, HasSubstr("Retrieval does not count, as no method has learned it"));
  for (const CheckedClaim& checked : findings.claims) {
    if (!is_on_retrieval(checked.claim.measure)) continue;
    EXPECT_EQ(checked.outcome, Outcome::kNotLearned) << checked.claim.text;
  }
}

}  // namespace
}  // namespace sextant::lab
