#include "sextant/lab/report/report.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <variant>

#include "sextant/base/error.h"
#include "sextant/lab/report/claims.h"
#include "sextant/lab/report/result_table.h"
#include "tests/lab/arm_results.h"
#include "tests/lab/temporary_folder.h"

namespace sextant::lab {
namespace {

// The loss of method n changes by 0.01 (7 n mod `count`) nats.
std::vector<ArmResult> results(int count) {
  std::vector<ArmResult> all;
  for (int n = 0; n < count; ++n) {
    all.push_back(arm_result("method-" + std::to_string(n), 0, 0.01 * (n * 7 % count)));
  }
  return all;
}

std::vector<NamedChart> charts_of(const std::vector<ArmResult>& all) {
  return charts(findings_of(all, settings_of_results()));
}

TEST(Charts, AreOneOfAKindForTenMethodsInTheirOrder) {
  const std::vector<NamedChart> all = charts_of(results(10));
  ASSERT_EQ(all.size(), 4);
  for (const NamedChart& named : all) {
    ASSERT_EQ(named.chart.series.size(), 10) << named.file;
    EXPECT_EQ(named.chart.series[1].name, "method-1");
  }
}

TEST(Charts, PartManyMethodsFromThoseThatHoldToThoseThatBreak) {
  const std::vector<NamedChart> all = charts_of(results(29));
  ASSERT_EQ(all.size(), 12);
  EXPECT_EQ(all[0].file, "sliding-by-length");
  EXPECT_EQ(all[2].file, "sliding-by-length-3");
  EXPECT_THAT(all[2].chart.title, testing::EndsWith(" (3 of 3)"));
  std::set<std::string> names;
  double last = 0;
  for (size_t n = 0; n < 3; ++n) {
    EXPECT_LE(all[n].chart.series.size(), 10);
    EXPECT_GE(all[n].chart.series.size(), 9);
    for (const chart::Series& series : all[n].chart.series) {
      names.insert(series.name);
      EXPECT_GE(series.y.back(), last);
      last = series.y.back();
    }
  }
  EXPECT_EQ(names.size(), 29);
}

TEST(Charts, PartManyStretchesToo) {
  std::vector<ArmResult> all{arm_result("rope", 0, 1)};
  for (int n = 0; n < 14; ++n) {
    all.push_back(reading(arm_result("yarn*" + std::to_string(n + 2), 0, 0.01 * n), "rope"));
  }
  std::map<std::string, size_t> lines;
  for (const NamedChart& named : charts_of(all)) lines[named.file] = named.chart.series.size();
  EXPECT_EQ(lines["stretches-by-length"] + lines["stretches-by-length-2"], 15);
  EXPECT_EQ(lines["stretches-by-position"] + lines["stretches-by-position-2"], 15);
  EXPECT_FALSE(lines.contains("stretches-by-length-3"));
}

TEST(Charts, OfMethodsThatAllDivergedAreNone) {
  std::vector<ArmResult> all = results(3);
  for (ArmResult& result : all) result.diverged = true;
  EXPECT_TRUE(charts_of(all).empty());
}

TEST(Charts, ShowRetrievalAndReadingsApart) {
  const std::vector<ArmResult> all{arm_result("rope", 0, 1),
                                   arm_result("t5", 0, 0),
                                   pair_result("rope", 0, 1, 0.1),
                                   pair_result("t5", 0, 1, 0.8),
                                   reading(arm_result("ntk", 0, 0.5), "rope"),
                                   reading(pair_result("ntk", 0, 1, 0.5), "rope")};
  std::map<std::string, std::vector<std::string>> lines;
  for (const NamedChart& named : charts_of(all)) {
    for (const chart::Series& series : named.chart.series) lines[named.file].push_back(series.name);
    if (named.file == "retrieval-by-distance") {
      EXPECT_THAT(named.chart.series[1].x, testing::ElementsAre(2, 4, 8, 16, 30));
      EXPECT_THAT(named.chart.series[1].y, testing::ElementsAre(1, 1, 1, 1, 0.8));
    }
  }
  const auto trained = testing::ElementsAre("rope", "t5");
  const auto read = testing::ElementsAre("rope", "ntk");
  EXPECT_EQ(lines.size(), 10);
  for (const char* kind : {"sliding-by-length", "loss-by-length", "loss-by-position", "training",
                           "retrieval-by-distance", "retrieval-by-length"}) {
    EXPECT_THAT(lines[kind], trained) << kind;
  }
  for (const char* kind : {"stretches-by-length", "stretches-by-position",
                           "stretches-retrieval-by-distance", "stretches-retrieval-by-length"}) {
    EXPECT_THAT(lines[kind], read) << kind;
  }
}

TEST(Charts, HaveABandOfTheInterval) {
  const std::vector<ArmResult> all{arm_result("rope", 0, 1), arm_result("rope", 1, 2)};
  const chart::Series line = charts_of(all).at(0).chart.series.at(0);
  EXPECT_NEAR(line.high.at(1) - line.y.at(1), 12.706 * 0.5, 1e-9);
  EXPECT_NEAR(line.y.at(1) - line.low.at(1), 12.706 * 0.5, 1e-9);
}

// Pictures as an arm of seed 0 writes them: rope's scores at 4 distances, learned's vectors of two
// channels at two positions.
std::vector<ArmResult> with_pictures() {
  std::vector<ArmResult> all{arm_result("rope", 0, 1), arm_result("learned", 0, 1),
                             reading(arm_result("window", 0, 0), "rope")};
  for (ArmResult& result : all) {
    for (const int64_t length : {32, 64}) {
      result.attention.push_back({.length = length,
                                  .layer = 0,
                                  .entropy = 1,
                                  .span = 1,
                                  .at_distance = {0.5, 0.25, 0.25}});
    }
    result.pictures.cell = 32;
    result.pictures.attention = {{1}, {0.75, 0.25}};
  }
  for (const size_t n : {size_t{0}, size_t{2}}) {
    all[n].pictures.distances = {0, 1, 2, 3};
    all[n].pictures.scores = {{1, 0.5, 0, NAN}, {1, 0.75, 0.5, NAN}};
  }
  all[1].pictures.step = 32;
  all[1].pictures.vectors = {{1, 0}, {0, 1}};
  all[1].pictures.cosines = {{1, 0}, {0, 1}};
  all[1].pictures.product_step = 16;
  all[1].pictures.products.assign(8, {1, -1, NAN, 0.5, 9, NAN, 1, 2, NAN, 0, 1});  // 3 x 4 tiles
  all[1].positions = {.plain = 0.75,
                      .heads = {{.layer = 0, .head = 0, .trained = 0.5, .untrained = 0.25},
                                {.layer = 0, .head = 1, .trained = 0.25, .untrained = NAN}}};
  return all;
}

TEST(Maps, AreOfAllMethodsAndOfThoseThatWereTrained) {
  const std::vector<ArmResult> all = with_pictures();
  const Findings findings = findings_of(all, settings_of_results());
  std::vector<std::string> files;
  for (const NamedMap& named : maps(findings)) {
    files.push_back(named.file);
    EXPECT_NO_THROW(chart::svg(named.map)) << named.file;
  }
  EXPECT_THAT(files, testing::ElementsAre("products-by-head", "attention-by-distance-32",
                                          "attention-by-distance-64", "positions-learned",
                                          "similarity-learned", "products-learned",
                                          "attention-rope", "attention-learned"));
  const chart::HeatMap by_distance = maps(findings)[1].map;
  EXPECT_THAT(by_distance.rows.names, testing::ElementsAre("rope", "learned", "window"));
  EXPECT_THAT(by_distance.columns.names, testing::ElementsAre("0", "1", "2–3"));
  EXPECT_TRUE(maps(findings_of(results(3), settings_of_results())).empty())
      << "old results have none";
}

TEST(Products, AreATableOfMeansOverHeads) {
  const std::vector<ArmResult> all = with_pictures();
  const Findings findings = findings_of(all, settings_of_results());
  const std::vector<ResultTable> found = tables(findings);
  const auto table = std::ranges::find_if(
      found, [](const ResultTable& one) { return one.columns.front().name == "no W"; });
  ASSERT_NE(table, found.end());
  EXPECT_TRUE(table->in_report_only);
  ASSERT_EQ(table->rows.size(), 1) << "rope adds nothing to the input";
  const ResultTable::Row& row = table->rows.front();
  EXPECT_EQ(row.label, "learned");
  EXPECT_EQ(row.values.at(0)->mean, 0.75);
  EXPECT_EQ(row.values.at(1)->mean, 0.25) << "of the head whose products vary";
  EXPECT_EQ(row.values.at(2)->mean, 0.375);
  const chart::HeatMap map = maps(findings)[0].map;
  EXPECT_THAT(map.columns.names, testing::ElementsAre("1.1", "1.2"));
  EXPECT_THAT(map.values, testing::ElementsAre(0.5, 0.25));
}

TEST(ScoresByDistance, HaveTheMeanOverHeadsInTheirBand) {
  const std::vector<ArmResult> all = with_pictures();
  const Findings findings = findings_of(all, settings_of_results());
  std::vector<const MethodResult*> methods;
  for (const MethodResult& method : findings.methods) methods.push_back(&method);
  const chart::LineChart chart = scores_by_distance(methods, settings_of_results());
  ASSERT_EQ(chart.series.size(), 2);
  EXPECT_EQ(chart.series[0].name, "rope");
  EXPECT_THAT(chart.series[0].x, testing::ElementsAre(1, 2)) << "3 is not seen";
  EXPECT_THAT(chart.series[0].y, testing::ElementsAre(-0.375, -0.75));
  EXPECT_THAT(chart.series[0].low, testing::ElementsAre(-0.5, -1));
  EXPECT_THAT(chart.series[0].high, testing::ElementsAre(-0.25, -0.5));
}

// JSON has null for NaN; a parsed file must equal its source nevertheless.
TEST(Report, PicturesSurviveTheirFile) {
  for (const ArmResult& result : with_pictures()) {
    const nlohmann::json written = result;
    const nlohmann::json read = nlohmann::json::parse(written.dump());
    EXPECT_EQ(read, written);
    EXPECT_EQ(nlohmann::json(read.get<ArmResult>()), written);
  }
}

TEST(Report, RefusesOtherValuesThanNumbersInItsFile) {
  nlohmann::json written = with_pictures()[1];
  written["positions"]["plain"] = "all";
  EXPECT_THAT([&] { written.get<ArmResult>(); },
              testing::ThrowsMessage<Error>(
                  testing::HasSubstr(R"(result: positions: expected numbers, but got "all")")));
}

TEST(Report, OpensWithTheAnswerAndTheChartOfAllLengths) {
  Settings settings = settings_of_results();
  settings.training.bytes = kEnoughBytes;
  const std::vector<ArmResult> all{arm_result("rope", 0, 2), arm_result("t5", 0, 0)};
  const chart::Report page = report_page({}, findings_of(all, settings), "sextant survey", "");
  EXPECT_THAT(page.lead, testing::StartsWith("**Train with t5**: it has a loss of 1.500"));
  EXPECT_THAT(page.status, testing::IsEmpty());
  ASSERT_FALSE(page.opening.blocks.empty());
  const auto* const opening = std::get_if<chart::LineChart>(&page.opening.blocks.front());
  ASSERT_NE(opening, nullptr);
  EXPECT_EQ(opening->title, "Loss of the last 16 bytes by length");
  const std::string html = chart::html(page);
  const std::string caption = "<figcaption>" + opening->title;
  EXPECT_EQ(html.find(caption), html.rfind(caption)) << "the chart stands there once";
}

// A phone shows the first columns of a table, so these contain the result.
TEST(Report, TablesHaveTheVerdictAndTheChangeAfterTheName) {
  const std::vector<ArmResult> all{arm_result("rope", 0, 2), arm_result("t5", 0, 0)};
  const chart::Report page =
      report_page({}, findings_of(all, settings_of_results()), "sextant survey", "");
  const auto table = [&](const char* name) {
    return std::get<chart::Table>(chart::only_parts(page, {name}).sections.front().blocks.front());
  };
  const auto names = [](const chart::Table& table) {
    std::vector<std::string> names;
    for (const chart::Column& column : table.columns) names.push_back(column.name);
    return names;
  };
  const chart::Table sliding = table("sliding"), compared = table("compared");
  EXPECT_THAT(names(sliding), testing::ElementsAre("method", "verdict", "change", "32", "64"));
  EXPECT_EQ(sliding.rows[0][1].text, "breaks");
  EXPECT_EQ(sliding.rows[0][2].text, "+2.000");
  EXPECT_EQ(sliding.rows[0][4].text, "3.500");
  EXPECT_THAT(names(compared), testing::ElementsAre("method", "verdict", "minus rope", "change",
                                                    "loss", "loss", "far 16", "far 32", "near 32"));
  EXPECT_EQ(compared.rows[0][0].text, "t5") << "the best first";
}

TEST(Report, OfSomeArmsIsMarkedAndWrittenAnew) {
  const TemporaryFolder folder;
  const nlohmann::json manifest{{"settings", settings_of_results()}};
  const Findings two = findings_of(results(2), settings_of_results());
  const Findings three = findings_of(results(3), settings_of_results());
  write_results(folder.path(), manifest, two, "sextant survey");
  EXPECT_TRUE(is_written(folder.path(), manifest, two, ""));
  write_report(folder.path(), manifest, two, "sextant survey", status_of(2, 5));
  EXPECT_THAT(read_text(folder / "report.html"), testing::HasSubstr("2 of 5 arms so far"));
  EXPECT_FALSE(is_written(folder.path(), manifest, two, ""));
  EXPECT_TRUE(is_written(folder.path(), manifest, two, status_of(2, 5)));
  EXPECT_FALSE(is_written(folder.path(), manifest, three, status_of(2, 5)));
}

TEST(Report, ASmallerSurveyLeavesNoChartOfALargerOne) {
  const TemporaryFolder folder;
  const nlohmann::json manifest{{"settings", settings_of_results()}};
  write_results(folder.path(), manifest, findings_of(results(12), settings_of_results()),
                "sextant survey");
  EXPECT_TRUE(std::filesystem::exists(folder / "training-2.svg"));
  EXPECT_THAT(read_text(folder / "report.html"), testing::HasSubstr("split over several charts"));
  write_results(folder.path(), manifest, findings_of(results(3), settings_of_results()),
                "sextant survey");
  EXPECT_TRUE(std::filesystem::exists(folder / "training.svg"));
  EXPECT_FALSE(std::filesystem::exists(folder / "training-2.svg"));
  EXPECT_FALSE(std::filesystem::exists(folder / "training-2.png"));
}

}  // namespace
}  // namespace sextant::lab
