#include "sextant/lab/result/stretch_candidates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "sextant/base/error.h"
#include "sextant/chart/report.h"
#include "sextant/lab/report/model_report.h"

namespace sextant::lab {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::Optional;
using ::testing::ThrowsMessage;

TEST(StretchCandidates, KeepTheRopeThatWasTrainedAndLeaveItsStretchOut) {
  const std::string options =
      R"({"base": 500.0, "pairing": "interleaved", "stretch": "yarn*2", "dynamic": "length"})";
  std::set<std::string> names;
  for (const StretchCandidate& candidate : stretch_candidates(options, 128, 1024)) {
    const json given = json::parse(candidate.options);
    const json& rope = candidate.method == "window" ? given.at("options") : given;
    EXPECT_EQ(rope.at("base"), 500.0) << candidate.name;
    EXPECT_EQ(rope.at("pairing"), "interleaved") << candidate.name;
    EXPECT_NE(given.value("stretch", json()), "yarn*2") << candidate.name;
    EXPECT_TRUE(names.insert(candidate.name).second) << candidate.name;
  }
  EXPECT_THAT(names, ::testing::IsSupersetOf({"direct", "pi", "ntk", "by-parts", "yarn", "llama3",
                                              "dynamic", "dynamic-yarn", "rerope", "leaky-rerope",
                                              "self-extend", "dual-chunk", "window"}));
  EXPECT_EQ(stretch_candidates("{}", 128, 1024).front().name, "direct");
}

TEST(StretchCandidates, GoBeyondTheTrainedLength) {
  EXPECT_THAT([] { stretch_candidates("{}", 128, 128); },
              ThrowsMessage<Error>(HasSubstr("expected more than the model's 128, but got 128")));
}

// A candidate: sliding losses at 128 and 1024, and whether config.json can express it.
struct Found {
  const char* name;
  double near, far;
  bool in_hugging_face;
};

Extension extension(const std::vector<Found>& found) {
  Extension made;
  made.model = {.method = "rope",
                .options = "{}",
                .train_length = 128,
                .blocks = 2,
                .stride = 64,
                .lengths = {{.length = 128}, {.length = 1024}},
                .reference = 128};
  for (const Found& one : found) {
    AtLength near{.length = 128, .sliding = {one.near, 0}};
    near.sliding_change = {one.near - found.front().near, 0};
    made.candidates.push_back({.candidate = {.name = one.name,
                                             .method = one.name,
                                             .options = "{}",
                                             .in_hugging_face = one.in_hugging_face},
                               .lengths = {near, {.length = 1024, .sliding = {one.far, 0}}}});
  }
  return made;
}

TEST(Recommend, TheLowestLossAndWhatConfigJsonCanSayOfTheRest) {
  const Recommendation found = recommend(extension(
      {{"direct", 1.4, 3.0, true}, {"yarn", 1.45, 1.8, true}, {"rerope", 1.4, 1.4, false}}));
  EXPECT_EQ(found.best, 2);
  EXPECT_THAT(found.writable, Optional(Eq(1)));
  EXPECT_THAT(found.reason, AllOf(HasSubstr("rerope"), HasSubstr("1.400 nats per byte"),
                                  HasSubstr("against 3.000")));
}

TEST(Recommend, HasNoNegativeZero) {
  const Extension made = extension({{"direct", 1.4, 3.0, true}, {"yarn", 1.39999, 1.8, true}});
  EXPECT_THAT(recommend(made).reason, HasSubstr("at 128 it has 1.400 (+0.000)"));
}

TEST(Recommend, NotWhatSpoilsShortTexts) {
  const Recommendation found = recommend(
      extension({{"direct", 1.4, 3.0, true}, {"pi", 2.5, 1.3, true}, {"yarn", 1.4, 1.5, true}}));
  EXPECT_EQ(found.best, 2);
  EXPECT_THAT(found.writable, Optional(Eq(2)));
  EXPECT_THAT(found.reason, HasSubstr("Lower there, but worse at 128: pi 1.300"));
}

TEST(Recommend, WhatCostsShortTextsALittleBeforeWhatDoesNotReadLongOnes) {
  const Recommendation found = recommend(extension(
      {{"direct", 1.5, 3.3, true}, {"dynamic", 1.5, 3.1, true}, {"yarn", 1.75, 1.9, true}}));
  EXPECT_EQ(found.best, 2);
}

TEST(Recommend, NoWindowWhichReadsNoFurtherThanBefore) {
  Extension made = extension({{"direct", 1.4, 3.0, true},
                              {"window", 1.4, 1.4, true},
                              {"streaming", 1.4, 1.41, false},
                              {"yarn", 1.4, 1.5, true}});
  for (MeasuredCandidate& candidate : made.candidates)
    candidate.lengths.back().sliding_blocks = {1.4, 1.5, 1.45};
  const Recommendation found = recommend(made);
  EXPECT_EQ(found.best, 3);
  EXPECT_THAT(found.writable, Optional(Eq(3)));
  EXPECT_THAT(found.reason,
              HasSubstr("Do not be misled by window 1.400 and streaming 1.410: "
                        "in each layer that is without anything further back than 128 bytes"));
  ASSERT_EQ(found.ties.size(), 1)
      << "on the same blocks all four are alike, but two see a window only";
  EXPECT_EQ(found.ties[0].candidate, 0);
}

TEST(Recommend, SaysWhatIsNotToBeToldApart) {
  Extension made = extension({{"direct", 1.4, 3.0, true},
                              {"yarn", 1.4, 1.8, true},
                              {"ntk", 1.4, 1.81, true},
                              {"pi", 2.5, 1.805, true}});
  made.candidates[0].lengths.front().sliding_blocks = {1.3, 1.5, 1.4};
  made.candidates[1].lengths.back().sliding_blocks = {1.7, 1.9, 1.8};
  made.candidates[2].lengths.back().sliding_blocks = {1.75, 1.86, 1.82};
  made.candidates[3].lengths.front().sliding_blocks = {2.4, 2.6, 2.5};
  made.candidates[3].lengths.back().sliding_blocks = {1.71, 1.9, 1.81};
  const Recommendation found = recommend(made);
  EXPECT_EQ(found.best, 1);
  ASSERT_EQ(found.ties.size(), 1) << "pi is as good there, but costs short texts more";
  EXPECT_EQ(found.ties[0].candidate, 2);
  EXPECT_THAT(found.reason,
              HasSubstr("; on this text ntk (+0.010 ± 0.114) is not to be told apart from it"));
  EXPECT_EQ(json::parse(json_text(made, found)).at("not_told_apart").at(0).at("name"), "ntk");
}

TEST(Recommend, WhatIsBetterThereForCertainAndWorseShortIsNoTie) {
  Extension made =
      extension({{"direct", 1.4, 3.0, true}, {"yarn", 1.4, 1.8, true}, {"pi", 1.6, 1.75, true}});
  made.candidates[0].lengths.front().sliding_blocks = {1.3, 1.5, 1.4};
  made.candidates[1].lengths.back().sliding_blocks = {1.7, 1.9, 1.8};
  made.candidates[2].lengths.front().sliding_blocks = {1.5, 1.7, 1.6};
  made.candidates[2].lengths.back().sliding_blocks = {1.65, 1.846, 1.754};  // -0.050 ± 0.010
  const Recommendation found = recommend(made);
  EXPECT_EQ(found.best, 1);
  EXPECT_THAT(found.ties, ::testing::IsEmpty());
  EXPECT_THAT(found.reason, HasSubstr("Lower there, but worse at 128: pi 1.750"));
}

TEST(Recommend, ATieInAllThatCountsIsNotCalledWorse) {
  Extension made =
      extension({{"direct", 1.4, 3.0, true}, {"yarn", 1.4, 1.8, true}, {"pi", 1.46, 1.75, true}});
  made.candidates[0].lengths.front().sliding_blocks = {1.3, 1.5, 1.4};
  made.candidates[1].lengths.back().sliding_blocks = {1.7, 1.9, 1.8};
  made.candidates[2].lengths.front().sliding_blocks = {1.36, 1.53, 1.49};  // +0.06, +0.03, +0.09
  made.candidates[2].lengths.back().sliding_blocks = {1.65, 1.85, 1.75};   // -0.05 each
  const Recommendation found = recommend(made);
  EXPECT_EQ(found.best, 1);
  ASSERT_EQ(found.ties.size(), 1);
  EXPECT_EQ(found.ties[0].candidate, 2);
  EXPECT_NEAR(found.ties[0].behind.mean, 0.01, 1e-12);
  EXPECT_NEAR(found.ties[0].behind.half.value(), 4.303 * 0.03 / std::sqrt(3.0), 1e-12);
  EXPECT_THAT(found.reason, ::testing::Not(HasSubstr("Lower there")));
}

TEST(Recommend, NothingToWriteIsSaidAsNothing) {
  EXPECT_FALSE(recommend(extension({{"direct", 1.4, 3.0, false}})).writable.has_value());
}

TEST(ModelReport, SortsWaysAndKeepsTheModelAsItIsInTheChart) {
  std::vector<Found> many{{"direct", 1.4, 9, true}};
  const char* names[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"};
  for (int n = 0; n < 12; ++n) many.push_back({names[n], 1.4, 8.0 - n * 0.1, false});
  const Extension made = extension(many);
  const std::string text = table(made);
  EXPECT_LT(text.find("\nl "), text.find("\nk "));
  EXPECT_LT(text.find("\na "), text.find("\ndirect "));
  const chart::LineChart chart = chart_of(made, recommend(made));
  ASSERT_EQ(chart.series.size(), 10);
  EXPECT_EQ(chart.series.front().name, "l");
  EXPECT_EQ(chart.series.back().name, "direct");
  EXPECT_TRUE(chart.series.front().emphasis);
  EXPECT_EQ(json::parse(json_text(made, recommend(made))).at("recommended"), "l");
}

TEST(ModelReport, DrawsTheWayRecommendedThickerHoweverManyLieBelowIt) {
  std::vector<Found> many{{"direct", 1.4, 9, true}, {"yarn", 1.4, 8, true}};
  const char* names[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"};
  for (int n = 0; n < 12; ++n) many.push_back({names[n], 99, 7.0 - n * 0.1, false});
  many.push_back({"window", 1.4, 1.4, true});
  const Extension made = extension(many);
  const chart::LineChart chart = chart_of(made, recommend(made));
  ASSERT_EQ(chart.series.size(), 10);
  EXPECT_EQ(chart.series.front().name, "window");
  EXPECT_EQ(chart.series[8].name, "yarn");
  EXPECT_EQ(chart.series[9].name, "direct");
  for (const chart::Series& line : chart.series) {
    EXPECT_EQ(line.emphasis, line.name == "yarn") << line.name;
  }
}

// ---- the report of what --json prints ----

json content() {
  const Extension made = extension(
      {{"direct", 1.4, 3.0, true}, {"yarn", 1.5, 1.8, true}, {"rerope", 1.4, 1.7, false}});
  json content = json::parse(json_text(made, recommend(made)));
  content["model"] = "small";
  content["words"] = {
      {"hugging_face",
       {{"candidate", "yarn"}, {"words", R"({"hidden_size": 8, "max_position_embeddings": 128})"}}},
      {"vllm", nullptr},
      {"llama_cpp", {{"candidate", "yarn"}, {"words", "--rope-scaling yarn\n"}}}};
  return content;
}

TEST(ExtensionPage, HasTheAnswerTheTableAndTheWordsOfEngines) {
  const chart::Report page = extension_page(content(), "found.json");
  EXPECT_EQ(page.title, "small, stretched to 1024 bytes");
  EXPECT_THAT(page.lead, ::testing::StartsWith("rerope is best for sequences of 1024"));
  const std::string text = chart::markdown(page, "figures").text;
  EXPECT_THAT(text, HasSubstr("| `rerope` | 1.400 | 1.700 | +0.000 ± "));
  EXPECT_LT(text.find("| `rerope` |"), text.find("| `yarn` |"));
  EXPECT_LT(text.find("| `yarn` |"), text.find("| `direct` |"));
  EXPECT_THAT(text, HasSubstr("](figures/loss-by-length.svg)"));
  EXPECT_THAT(text, HasSubstr("```\n{\n  \"max_position_embeddings\": 128\n}\n```"));
  EXPECT_THAT(text, HasSubstr("llama.cpp: `yarn`\n\n```\n--rope-scaling yarn\n```"));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("vLLM")));
}

TEST(ExtensionPage, NamesTheField) {
  const auto error = [](const json& bad) { return [bad] { extension_page(bad, "found.json"); }; };
  json bad = content();
  bad["candidates"][1]["lengths"][0]["sliding"]["mean"] = "low";
  EXPECT_THAT(error(bad),
              ThrowsMessage<Error>(HasSubstr("found.json: candidates: lengths: sliding: "
                                             "mean: expected a number")));
  bad = content();
  bad["candidates"][1]["lengths"].erase(1);
  EXPECT_THAT(error(bad), ThrowsMessage<Error>(HasSubstr("candidates: expected the same lengths")));
  bad = content();
  bad["recommended"] = "x";
  EXPECT_THAT(error(bad), ThrowsMessage<Error>(HasSubstr("recommended: expected a candidate")));
}

}  // namespace
}  // namespace sextant::lab
