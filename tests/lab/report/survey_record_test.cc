#include "sextant/lab/report/survey_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "sextant/base/error.h"
#include "sextant/chart/report.h"
#include "sextant/files/json_fields.h"
#include "sextant/lab/report/claims.h"
#include "sextant/lab/report/report.h"
#include "sextant/lab/run/hand_out.h"
#include "tests/lab/arm_results.h"
#include "tests/lab/temporary_folder.h"

namespace sextant::lab {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

json record_manifest() {
  return {{"sextant", "0.2.0"}, {"settings", settings_of_enough()}, {"text", {{"crc32", "1"}}}};
}

// Two seeds of four encodings and a stretch, in text and retrieval.
std::vector<ArmResult> surveyed() {
  std::vector<ArmResult> all;
  for (const uint64_t seed : {uint64_t{0}, uint64_t{1}}) {
    const double more = 0.01 * static_cast<double>(seed);
    all.push_back(at_loss(arm_result("none", seed, 0.05), 2.5 + more));
    all.push_back(at_loss(arm_result("rope", seed, 1 + more), 1.6));
    all.push_back(at_loss(arm_result("t5", seed, 0.01), 1.5 + more));
    all.push_back(at_loss(arm_result("alibi", seed, 0), 1.51));
    all.push_back(reading(at_loss(arm_result("yarn", seed, 0.02), 1.62 + more), "rope"));
    all.push_back(pair_result("none", seed, 1, 0.9));
    all.push_back(pair_result("rope", seed, 1, 0.1 + more));
    all.push_back(pair_result("t5", seed, 1, 0.75));
    all.push_back(pair_result("alibi", seed, 1, 0.1));
    all.push_back(reading(pair_result("yarn", seed, 0.9, 0.9), "rope"));
  }
  for (ArmResult& one : all) one.machine = "a machine";
  return all;
}

json file() {
  json content = results_json(record_manifest(), findings_of(surveyed(), settings_of_enough()));
  content["command"] = "sextant survey --seeds 2";
  content["date"] = "2026-11-29";
  return content;
}

class Record : public testing::Test {
 protected:
  SurveyRecord read(const json& content) const {
    write_json(path_, content);
    return read_survey(path_);
  }
  std::string page(const SurveyRecord& record) const {
    return chart::markdown(report_page(record), "figures").text;
  }
  std::string part(const SurveyRecord& record, const std::string& name) const {
    return chart::markdown(chart::only_parts(report_page(record), {name}), "figures").text;
  }
  std::string error(const json& content) const {
    try {
      read(content);
    } catch (const Error& reason) {
      return reason.what();
    }
    return "no error";
  }

  const TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_ / "found.json";
};

TEST_F(Record, OfResultsGivesThePageOfTheSurvey) {
  const SurveyRecord record = read(file());
  EXPECT_EQ(record.name, "found");
  const Findings findings = findings_of(surveyed(), settings_of_enough());
  const chart::Report theirs =
      report_page(record_manifest(), findings, "sextant survey --seeds 2", "", "2026-11-29");
  EXPECT_EQ(chart::html(report_page(record)), chart::html(theirs));
  EXPECT_THAT(page(record), HasSubstr("**Train with t5**"));
  EXPECT_THAT(page(record), HasSubstr("* `sextant survey --seeds 2`\n"));
}

TEST_F(Record, OfFilesWithoutDetailsHasTheSameNumbers) {
  const json whole = file();
  json content = whole;
  for (json& arm : content["arms"]) {
    for (const char* name : {"loss_at", "train_loss", "attention", "message"}) arm.erase(name);
    for (json& at : arm["lengths"]) {
      for (const char* name : {"sliding_blocks", "loss", "loss_change"}) at.erase(name);
      at["sliding"].erase("standard_error");
    }
    if (!arm.contains("retrieval")) continue;
    json few = json::array();  // the near and the far pairs
    for (const json& at : arm["retrieval"]) {
      if (at["distance"] == 8 || at["distance"] == at["length"].get<int64_t>() - 2) {
        few.push_back(at);
      }
    }
    arm["retrieval"] = few;
  }
  const SurveyRecord record = read(content), all = read(whole);
  for (const char* name : {"answer", "compared", "compared-with-rope", "sliding", "retrieval",
                           "stretches-of-rope", "claims"}) {
    EXPECT_EQ(part(record, name), part(all, name));
  }
  EXPECT_THAT(page(all), HasSubstr("All bytes, the text cut into pieces"));
  EXPECT_THAT(page(record), Not(HasSubstr("All bytes, the text cut into pieces")));
  EXPECT_THAT(page(record), Not(HasSubstr("loss-by-position.svg")));
  EXPECT_THAT(page(record), Not(HasSubstr("nan")));
}

TEST_F(Record, OfASummaryAloneHasNoRecommendation) {
  const json whole = file();
  json content = whole;
  for (json& arm : content["arms"]) arm = {{"arm", arm["arm"]}, {"machine", "a machine"}};
  const SurveyRecord record = read(content), all = read(whole);
  for (const char* name : {"sliding", "pieces", "retrieval", "claims"}) {
    EXPECT_EQ(part(record, name), part(all, name));
  }
  EXPECT_TRUE(record.findings.rankings.empty());
  EXPECT_EQ(record.findings.fewest_seeds, 2);
  const std::string compared = part(record, "compared");
  EXPECT_THAT(compared, Not(HasSubstr("minus")));
  EXPECT_THAT(compared, HasSubstr("| `none` | not learned |"));
  EXPECT_EQ(part(record, "stretches-of-rope"), part(all, "stretches-of-rope"));
  EXPECT_THAT(page(record), Not(HasSubstr("Train with")));
  EXPECT_THAT(page(record), Not(HasSubstr("nan")));
}

TEST_F(Record, OfASummaryWithoutChangesFromTheBaseHasThemWithoutAnInterval) {
  json content = file();
  for (json& arm : content["arms"]) arm = {{"arm", arm["arm"]}, {"machine", "a machine"}};
  json older = json::array();
  for (const json& row : content["summary"]) {
    if (row["measure"] != kBaseChange) older.push_back(row);
  }
  ASSERT_LT(older.size(), content["summary"].size());
  const json whole = content["summary"];
  content["summary"] = older;
  EXPECT_THAT(part(read(content), "stretches-of-rope"),
              HasSubstr("| `yarn` | **holds** | +0.045 |"));
  // Changes in another order would be those of other lengths.
  content["summary"] = whole;
  std::ranges::reverse(content["summary"]);
  EXPECT_THAT([&] { read(content); },
              ThrowsMessage<Error>(HasSubstr("each of test.lengths once, in their order")));
}

TEST_F(Record, ShowsWhatTheFileRecords) {
  json content = file();
  for (json& row : content["verdicts"]) {
    if (row["method"] == "alibi") row["verdict"] = "drifts";
  }
  ASSERT_FALSE(content["claims"].empty());
  content["claims"][0]["outcome"] = "undecided";
  content["claims"][0]["mean"] = 7.125;
  content["claims"].push_back(content["claims"][0]);
  content["claims"].back()["claim"] = "A claim of tomorrow";
  const SurveyRecord record = read(content);
  EXPECT_THAT(part(record, "sliding"), HasSubstr("| `alibi` | drifts |"));
  EXPECT_THAT(part(record, "claims"), HasSubstr("| undecided | +7.125"));
  EXPECT_EQ(record.unknown_claims, 1);
  EXPECT_THAT(page(record), HasSubstr("claims that this version does not know: 1."));
}

TEST_F(Record, OfAnOlderFileDerivesVerdictsAndClaims) {
  json content = file();
  const SurveyRecord all = read(content);
  for (const char* name : {"verdicts", "claims", "reference", "summary", "command", "date"}) {
    content.erase(name);
  }
  const SurveyRecord record = read(content);
  for (const char* name : {"answer", "sliding", "claims"}) {
    EXPECT_EQ(part(record, name), part(all, name));
  }
  EXPECT_EQ(record.command, "");
}

TEST_F(Record, NamesTheFileAndTheField) {
  json content = file();
  content.erase("arms");
  EXPECT_THAT(error(content), testing::AllOf(HasSubstr("found.json"), HasSubstr("arms")));
  content = file();
  content["verdicts"][0]["verdict"] = "fine";
  EXPECT_THAT(error(content),
              HasSubstr("verdicts: verdict: expected one of \"holds\" \"drifts\" \"breaks\" "
                        "\"diverged\" \"not learned\", but got \"fine\""));
  content = file();
  content["claims"][0]["bound"] = "low";
  EXPECT_THAT(error(content), HasSubstr("claims: bound"));
  content = file();
  content["arms"][0]["lengths"][0]["sliding"]["mean"] = "x";
  EXPECT_THAT(error(content), testing::AllOf(HasSubstr("found.json"), HasSubstr("mean")));
}

// Arms of which some are done, without results.json.
TEST_F(Record, OfAFolderThatIsNotFinished) {
  const std::filesystem::path survey = folder_ / "survey";
  write_json(survey / "manifest.json", record_manifest());
  const std::vector<ArmResult> all = surveyed();
  const auto done = static_cast<size_t>(
      std::ranges::count_if(all, [](const ArmResult& one) { return is_on_text(one.arm.task); }));
  for (const ArmResult& one : all) {
    const std::filesystem::path arm = arm_directory(survey, one.arm);
    write_json(arm / kArmFile,
               {{"arm", one.arm}, {"files", {"../../../gone"}}, {"text", {{"crc32", "1"}}}});
    if (is_on_text(one.arm.task)) write_json(arm / kResultFile, one);
  }
  write_text(survey / "command.txt", "sextant survey --seeds 2");
  const SurveyRecord record = read_survey(survey);
  EXPECT_EQ(record.name, "survey");
  EXPECT_EQ(record.findings.results.size(), done);
  EXPECT_EQ(record.planned, all.size());
  EXPECT_EQ(record.date.size(), std::string("2026-11-29").size());
  const std::string text = page(record);
  EXPECT_THAT(text, HasSubstr("**10 of 20 arms so far**"));
  EXPECT_THAT(text, HasSubstr("So far: **Train with alibi or t5**"));
  EXPECT_THAT(text, HasSubstr("* `sextant survey --seeds 2`\n"));
  // Results that are older than an arm are not read.
  write_json(survey / kResultsFile, {{"arms", std::vector<int>(done)}});
  EXPECT_THAT([&] { read_survey(survey); }, testing::ThrowsMessage<Error>(HasSubstr(kResultsFile)));
  const auto past = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
  std::filesystem::last_write_time(survey / kResultsFile, past);
  EXPECT_EQ(read_survey(survey).findings.results.size(), done);
}

TEST_F(Record, OfAFolderWithoutResultsIsRefused) {
  const std::filesystem::path survey = folder_ / "survey";
  write_json(survey / "manifest.json", record_manifest());
  std::filesystem::create_directories(survey / "arms");
  EXPECT_THAT([&] { read_survey(survey); },
              testing::ThrowsMessage<Error>(HasSubstr("expected results of arms")));
}

TEST_F(Record, KeepsTheMethodsThatAreWanted) {
  SurveyRecord record = read(file());
  keep_methods(record, {"t5", "rope"});
  const std::string text = part(record, "sliding");
  EXPECT_LT(text.find("`t5`"), text.find("`rope`"));
  EXPECT_THAT(text, Not(HasSubstr("`alibi`")));
  EXPECT_THAT([&] { keep_methods(record, {"alibi"}); },
              testing::ThrowsMessage<Error>("report: --methods: expected some of t5 rope, but got "
                                            "alibi"));
}

// ---- result_table.h ----

TEST_F(Record, ComparesEachMethodWithTheBest) {
  const std::string text = part(read(file()), "compared");
  EXPECT_THAT(text, HasSubstr("minus t5<br>at 64"));
  const size_t t5 = text.find("| `t5` |"), alibi = text.find("| `alibi` |");
  ASSERT_NE(t5, std::string::npos);
  EXPECT_THAT(text.substr(t5, text.find('\n', t5) - t5), HasSubstr("| first |"));
  EXPECT_THAT(text.substr(alibi, text.find('\n', alibi) - alibi),
              HasSubstr("−0.005 ±0.064<br>not told apart"));
  EXPECT_LT(text.find("`rope`"), text.find("`none`")) << "which has not learned the text";
}

// ---- surveys_page.cc ----

TEST_F(Record, OfTwoSurveysAreSetBesideEachOther) {
  json larger = file();
  larger["settings"]["model"]["width"] = 256;
  larger["command"] = "sextant survey --width 256";
  for (json& arm : larger["arms"]) {  // only there rope finds far pairs
    if (arm["arm"]["label"] != "rope") continue;
    for (json& at : arm["retrieval"]) at["accuracy"]["mean"] = 0.9;
  }
  std::vector<SurveyRecord> both{read(file()), read(larger)};
  both[1].name = "larger";
  const auto part = [&](const std::string& name, const std::string& question = "") {
    return chart::markdown(chart::only_parts(surveys_page(both, question), {name}), "figures").text;
  };
  EXPECT_THAT(part("surveys"), HasSubstr("| `larger` | `sextant survey --width 256` | layers: "));
  const std::string all = part("in-all-of-them");
  EXPECT_THAT(all, HasSubstr("* Verdict on the loss: the same for 5 of 5 methods\n"));
  EXPECT_THAT(all,
              HasSubstr("* Far pairs: the same for 4 of 5 methods; `rope`: not found in found, "
                        "found in larger\n"));
  EXPECT_THAT(all, HasSubstr("* First of these in larger, encodings: `t5`"));
  EXPECT_THAT(all, HasSubstr("| method | change at 64<br>found | change at 64<br>larger |"));
  EXPECT_EQ(part("claims"), this->part(both[0], "claims")) << "equal claims are one row";
  EXPECT_THAT([&] { part("claims", "what-is"); },
              testing::ThrowsMessage<Error>(HasSubstr("--question: expected one of")));
}

}  // namespace
}  // namespace sextant::lab
