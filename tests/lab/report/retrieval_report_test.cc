#include "sextant/lab/report/retrieval_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sextant/base/error.h"
#include "sextant/files/json_fields.h"

namespace sextant::lab {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

json record(const std::string& task, int64_t length, int64_t sample, double score,
            const json& depth = nullptr) {
  return {{"task", task},          {"length", length},
          {"depth", depth},        {"sample", sample},
          {"tokens", length - 10}, {"score", score},
          {"expected", {"7319"}},  {"answer", score == 1 ? "It is 7319." : "I do not know"}};
}

RetrievalScores scores_of(const std::vector<json>& records) {
  std::vector<RetrievalSample> samples;
  for (const json& record : records) {
    samples.push_back(retrieval_sample(JsonFields(record, "record")));
  }
  return retrieval_scores(samples);
}

// `right` complete answers of 20; samples have the depths 0, 0.5 and 1 in turn if the task has
// depths.
void add_answers(std::vector<json>& records, const std::string& task, int64_t length, int64_t right,
                 bool has_depths = true) {
  for (int64_t n = 0; n < 20; ++n) {
    const json depth = has_depths ? json(static_cast<double>(n % 3) / 2) : json();
    records.push_back(record(task, length, n, n < right ? 1 : 0, depth));
  }
}

std::vector<json> two_tasks(int64_t right_at_2048) {
  std::vector<json> records;
  for (const int64_t length : {1024, 2048, 4096}) {
    const int64_t right = length == 1024 ? 20 : length == 2048 ? right_at_2048 : 2;
    add_answers(records, "needle", length, right);
    add_answers(records, "common-words", length, right, false);
  }
  return records;
}

json manifest() {
  return {{"model", "/models/small"},
          {"endpoint", nullptr},
          {"candidate", {{"name", "own"}, {"method", nullptr}, {"options", json::object()}}},
          {"trained_length", 2048},
          {"dtype", "auto"},
          {"retrieval", {{"samples", 20}}}};
}

// Agresti and Coull 1998: with two right and two wrong answers added, 20 of 20 is 22 of 24.
TEST(Score95, IsNeverCertain) {
  const std::vector<double> all(20, 1.0), none(20, 0.0), half(20, 0.5);
  const double width = 1.96 * std::sqrt(22.0 / 24 * 2 / 24 / 24);
  const ScoreInterval sure = score95(all);
  EXPECT_NEAR(sure.mean, 1, 1e-12);
  EXPECT_NEAR(sure.low, 22.0 / 24 - width, 1e-12);
  EXPECT_EQ(sure.high, 1);
  EXPECT_EQ(score95(none).low, 0);
  EXPECT_NEAR(score95(none).high, 2.0 / 24 + width, 1e-12);
  // Shares that are all equal have no variance, but an interval.
  EXPECT_NEAR(score95(half).low, 0.5 - 1.96 * std::sqrt(0.25 / 24), 1e-12);
  EXPECT_NEAR(score95(half).high, 0.5 + 1.96 * std::sqrt(0.25 / 24), 1e-12);
  EXPECT_EQ(score95(std::vector<double>(20, 1.0)).mean, 1);  // not a rounding step above it
  EXPECT_THROW(score95({}), Error);
}

TEST(Score95, OfSharesIsStudents) {
  const ScoreInterval found = score95(std::vector<double>{0.25, 0.5, 0.75});
  EXPECT_NEAR(found.mean, 0.5, 1e-12);
  EXPECT_EQ(found.low, 0) << "cut at the ends of the scale";
  std::vector<double> many;
  for (int n = 0; n < 20; ++n) many.push_back(n % 2 == 0 ? 0.5 : 0.75);
  const double error = std::sqrt(20 * 0.125 * 0.125 / 19 / 20);
  EXPECT_NEAR(score95(many).low, 0.625 - 2.093 * error, 1e-12);
  EXPECT_NEAR(score95(many).high, 0.625 + 2.093 * error, 1e-12);
}

TEST(MeanOfTasks, CombinesEachSideApart) {
  const std::vector<ScoreInterval> tasks{{.mean = 1, .low = 0.8, .high = 1},
                                         {.mean = 0.5, .low = 0.2, .high = 0.9}};
  const ScoreInterval found = mean_of_tasks(tasks);
  EXPECT_NEAR(found.mean, 0.75, 1e-12);
  EXPECT_NEAR(found.low, 0.75 - std::hypot(0.2, 0.3) / 2, 1e-12);
  EXPECT_NEAR(found.high, 0.75 + 0.2, 1e-12);
}

TEST(EffectiveLength, IsTheLongestOfAPrefix) {
  std::vector<json> records;
  for (const int64_t length : {1024, 2048, 4096}) {
    add_answers(records, "needle", length, length == 2048 ? 0 : 20);
  }
  const RetrievalScores gap = scores_of(records);
  EXPECT_EQ(gap.effective.length, 1024) << "a longer length does not make up for a shorter one";
  EXPECT_EQ(gap.effective.high, 1024);
  EXPECT_EQ(gap.effective.low, 0) << "20 of 20 may be 81 %";
  EXPECT_THAT(effective_words(gap),
              HasSubstr("do not decide it: from less than 1024 to 1024 tokens"));
}

TEST(EffectiveLength, SaysWhenTheIntervalsDecide) {
  std::vector<json> records;
  for (int64_t n = 0; n < 200; ++n) {
    records.push_back(record("needle", 512, n, 1));
    records.push_back(record("needle", 1024, n, n < 20 ? 1 : 0));
  }
  const RetrievalScores scores = scores_of(records);
  EXPECT_TRUE(scores.effective.decided());
  EXPECT_THAT(effective_words(scores), HasSubstr("Effective length: 512 tokens"));
  EXPECT_THAT(effective_words(scores), Not(HasSubstr("do not decide")));
}

// 17 of 20 are 85 %, 18 are 90 %: the threshold of 85.6 % is between them.
TEST(EffectiveLength, HasRulersThreshold) {
  EXPECT_EQ(scores_of(two_tasks(17)).effective.length, 1024);
  EXPECT_EQ(scores_of(two_tasks(18)).effective.length, 2048);
  EXPECT_EQ(scores_of(two_tasks(18)).effective.high, 2048);
  std::vector<json> all;
  add_answers(all, "needle", 512, 20);
  EXPECT_THAT(effective_words(scores_of(all)), HasSubstr("at least 512 tokens"));
}

TEST(RetrievalScores, AverageDepthsOverTasksThatHaveThem) {
  std::vector<json> records;
  for (const double depth : {0.0, 1.0}) {
    records.push_back(record("needle", 512, depth == 0 ? 0 : 1, 1, depth));
    records.push_back(record("multi-key", 512, depth == 0 ? 0 : 1, depth == 0 ? 0.5 : 0, depth));
    records.push_back(record("common-words", 512, depth == 0 ? 0 : 1, 0));
  }
  const RetrievalScores scores = scores_of(records);
  EXPECT_EQ(scores.depths, (std::vector<double>{0, 1}));
  EXPECT_EQ(scores.by_depth, (std::vector<std::vector<double>>{{0.75}, {0.5}}));
  EXPECT_EQ(scores.tasks, (std::vector<std::string>{"needle", "multi-key", "common-words"}));
}

TEST(RetrievalScores, RefusesIncompleteRecords) {
  EXPECT_THROW(scores_of({}), Error);
  std::vector<json> records{record("needle", 512, 0, 1), record("variables", 1024, 0, 1)};
  EXPECT_THROW(scores_of(records), Error);
  records = {record("needle", 512, 0, 1.5)};
  EXPECT_THROW(scores_of(records), Error);
  records[0].erase("score");
  EXPECT_THROW(scores_of(records), Error);
}

json without_score(json record, const std::string& why) {
  record["score"] = nullptr;
  record["unscored"] = why;
  return record;
}

// Two prompts of 20 are cut: the interval is that of 16 to 18 right ones.
TEST(Unscored, RepliesWidenTheInterval) {
  std::vector<json> records;
  add_answers(records, "needle", 1024, 18);
  for (const size_t n : {0, 1}) records[n] = without_score(records[n], "the prompt was cut");
  const RetrievalScores found = scores_of(records);
  const ScoreInterval score = found.by_task[0][0];
  EXPECT_NEAR(score.mean, 16.0 / 18, 1e-12);
  std::vector<double> fewest(20, 0.0), most(20, 0.0);
  std::fill_n(fewest.begin(), 16, 1.0);
  std::fill_n(most.begin(), 18, 1.0);
  EXPECT_NEAR(score.low, score95(fewest).low, 1e-12);
  EXPECT_NEAR(score.high, score95(most).high, 1e-12);
  EXPECT_THAT(table(found), HasSubstr("No scores at 1024 tokens: 2 of 20 replies; the first: the "
                                      "prompt was cut.\n"));
  const json out = json::parse(json_text(found, manifest(), nullptr));
  EXPECT_EQ(out["unscored"],
            json::parse(R"([{"length": 1024, "count": 2, "first": "the prompt was cut"}])"));
  EXPECT_THAT(samples_csv(found), HasSubstr("needle,1024,0,0,1014,,7319,"));
  EXPECT_THAT(html(report_page(found, manifest(), nullptr, "")),
              HasSubstr("(no score) the prompt was cut"));
}

TEST(Unscored, LengthsAreNoVerdict) {
  std::vector<json> records = two_tasks(20);
  for (json& one : records) {
    if (one["length"] == 2048 && one["task"] == "needle") one = without_score(one, "it is empty");
  }
  const RetrievalScores found = scores_of(records);
  EXPECT_FALSE(found.over_tasks[1].has_mean());
  EXPECT_EQ(found.effective.length, 1024);
  EXPECT_THAT(effective_words(found), AllOf(HasSubstr("not known, as tasks of 2048 tokens have no "
                                                      "scores"),
                                            HasSubstr("to 2048 tokens")));
  EXPECT_THAT(table(found), HasSubstr("needle          100.0 [81, 100]                -"));
  EXPECT_TRUE(
      json::parse(json_text(found, manifest(), nullptr))["mean_of_tasks"][1]["mean"].is_null());
  EXPECT_FALSE(html(report_page(found, manifest(), nullptr, "")).empty());
}

TEST(Unscored, ALaterRecordOfThePromptCounts) {
  std::vector<json> records = two_tasks(20);
  records.insert(records.begin(), without_score(records[0], "it is empty"));
  EXPECT_EQ(missing_words(scores_of(records)), "");
  EXPECT_EQ(scores_of(records).samples.size(), two_tasks(20).size());
}

TEST(Unscored, RepliesAloneAreRefused) {
  const std::vector<json> records = {without_score(record("needle", 512, 0, 0), "it is empty")};
  EXPECT_THAT(
      [&] { scores_of(records); },
      testing::ThrowsMessage<Error>(HasSubstr("none of 1 is a score; of the first: it is")));
}

TEST(RetrievalReport, SaysHowManyAnswersAreEmpty) {
  std::vector<json> records = two_tasks(17);
  EXPECT_EQ(missing_words(scores_of(records)), "");
  records.back()["answer"] = " \n";
  EXPECT_EQ(missing_words(scores_of(records)),
            "1 of 120 answers are empty, which counts as wrong.\n");
}

TEST(RetrievalReport, TableHasIntervalsInPercent) {
  const std::string text = table(scores_of(two_tasks(17)));
  EXPECT_THAT(text, HasSubstr("20 samples per task and length"));
  EXPECT_THAT(text, HasSubstr("needle          100.0 [81, 100]    85.0 [63, 95]"));
  EXPECT_THAT(text, HasSubstr("\nmean of tasks   100.0 [86, 100]    85.0 [69, 92]"));
  EXPECT_THAT(text, HasSubstr("\nEffective length: 1024 tokens (up to it, the mean of tasks is at "
                              "least 85.6 %).\n"));
}

TEST(RetrievalReport, JsonHasAllMeans) {
  const json found =
      json::parse(json_text(scores_of(two_tasks(17)), manifest(), {{"transformers", "5.24.0"}}));
  EXPECT_EQ(found["effective_length"], 1024);
  EXPECT_EQ(found["threshold"], 0.856);
  EXPECT_EQ(found["tasks"][1]["task"], "common-words");
  EXPECT_NEAR(found["tasks"][1]["lengths"][1]["mean"].get<double>(), 0.85, 1e-12);
  EXPECT_EQ(found["mean_of_tasks"][2]["length"], 4096);
  EXPECT_EQ(found["depths"].size(), 3);
  EXPECT_EQ(found["settings"]["model"], "/models/small");
  EXPECT_EQ(found["facts"]["transformers"], "5.24.0");
}

TEST(RetrievalReport, PageIsTheSameOfItsJson) {
  std::vector<json> records = two_tasks(17);
  records[0] = without_score(records[0], "it is empty");
  const RetrievalScores scores = scores_of(records);
  const json facts{{"transformers", "5.24.0"}};
  json content = json::parse(json_text(scores, manifest(), facts, "sextant retrieve x"));
  EXPECT_EQ(html(retrieval_page(content, "found.json")),
            html(report_page(scores, manifest(), facts, "sextant retrieve x")));
  content["samples"][3]["score"] = 2;
  EXPECT_THAT([&] { retrieval_page(content, "found.json"); },
              testing::ThrowsMessage<Error>(HasSubstr("found.json: samples: score")));
  content.erase("samples");
  EXPECT_THAT([&] { retrieval_page(content, "found.json"); },
              testing::ThrowsMessage<Error>(HasSubstr("samples: expected")));
}

TEST(RetrievalReport, CsvQuotesAnswers) {
  json one = record("variables", 512, 0, 0.5);
  one["expected"] = {"VAR A", "VAR B"};
  one["answer"] = "\"A\",\nthen B";
  one["depth"] = 0.25;
  EXPECT_EQ(samples_csv(scores_of(std::vector<json>{one})),
            "task,length,depth,sample,tokens,score,expected,answer\n"
            "variables,512,0.25,0,502,0.5,VAR A; VAR B,\"\"\"A\"\",\nthen B\"\n");
}

TEST(RetrievalReport, PageShowsMapsAndWrongAnswers) {
  std::vector<json> records = two_tasks(17);
  records.back()["answer"] = "<b>bold</b>";
  records[60]["answer"] = "x";  // a complete one
  const std::string page = html(report_page(
      scores_of(records), manifest(), {{"transformers", "5.24.0"}}, "sextant retrieve small"));
  for (const char* part : {"Retrieval: small", "Effective length: 1024 tokens", "its own positions",
                           "2048 tokens, which is exceeded here", "Score by depth and length",
                           "Score by task and length", "I do not know", "retrieval.csv",
                           "transformers", "sextant retrieve small"}) {
    EXPECT_THAT(page, HasSubstr(part));
  }
  EXPECT_THAT(page, Not(HasSubstr("<b>bold</b>")));
}

TEST(RetrievalReport, PageShortensAnswersBetweenCharacters) {
  json one = record("needle", 512, 0, 0);
  std::string answer = "a";
  for (int n = 0; n < 200; ++n) answer += "ü";
  one["answer"] = answer;
  json settings = manifest();
  settings["endpoint"] = {{"url", "http://127.0.0.1:8080"}, {"model", nullptr}};
  settings["model"] = nullptr;
  const chart::Report page = report_page(scores_of(std::vector<json>{one}), settings, nullptr, "");
  EXPECT_EQ(page.title, "Retrieval: http://127.0.0.1:8080");
  EXPECT_TRUE(page.opening.blocks.empty()) << "no task has a depth";
  const std::string text = html(page);
  EXPECT_THAT(text, HasSubstr("üü…"));
  // The whole answer is in the CSV only, which is in base64 or escaped.
  EXPECT_THAT(text.substr(0, text.find("retrieval.csv")), Not(HasSubstr("\xEF\xBF\xBD")));
}

}  // namespace
}  // namespace sextant::lab
