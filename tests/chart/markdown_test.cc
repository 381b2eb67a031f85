#include "sextant/chart/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "sextant/base/error.h"
#include "tests/chart/samples.h"
#include "tests/chart/xml.h"

namespace sextant::chart {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::ThrowsMessage;

std::string text_of(const Report& report) { return markdown(report, "figures").text; }

std::string text_of(ReportBlock block) {
  Report report;
  report.sections = {{"", {std::move(block)}}};
  return text_of(report);
}

TEST(Markdown, HasTitleLeadSectionsAndFooter) {
  Report report;
  report.title = "A *page*";
  report.status = "3 of 4 arms so far";
  report.lead = "**Train with t5**: `t5` has 1.5.";
  report.opening.blocks = {Prose{"About."}};
  report.sections = {{"Tables", {Prose{"Words."}}}};
  report.footer = "sextant 1";
  EXPECT_EQ(text_of(report),
            "# A \\*page\\*\n\n**3 of 4 arms so far**\n\n**Train with t5**: `t5` has 1.5.\n\n"
            "About.\n\n## Tables\n\nWords.\n\nsextant 1\n");
}

TEST(Markdown, ProseHasItsMarksAndNothingElseIsMarkup) {
  EXPECT_EQ(
      text_of(Prose{"2 * 3, <i>, a|b and [x](y), p_i W_q.\n\nOne:\n- **two**\n- `a|b`\n\nEnd."}),
      "2 \\* 3, &lt;i>, a\\|b and \\[x](y), p_i W_q.\n\nOne:\n\n* **two**\n* `a|b`\n\nEnd.\n");
}

TEST(Markdown, LinesHaveAtMostAHundredColumnsAndAreNoListsByChance) {
  std::string words;
  for (int n = 0; n < 60; ++n) words += "± é 12345 - 1. # 7 % ";
  std::istringstream lines(text_of(Prose{"- " + words + "\n- end"}));
  std::string line;
  for (int n = 0; std::getline(lines, line); ++n) {
    const auto columns = std::ranges::count_if(line, [](char c) { return (c & 0xC0) != 0x80; });
    EXPECT_LE(columns, 100) << line;
    if (line == "* end") return;
    EXPECT_TRUE(line.starts_with(n == 0 ? "* " : "  ")) << line;
    const std::string begin = line.substr(2, 2);
    EXPECT_THAT(begin, testing::AllOf(Not("- "), Not("1."), Not("# "), Not("% "))) << line;
  }
  FAIL() << "the second item is missing";
}

TEST(Markdown, TablesHaveNotesUnderTheirCells) {
  EXPECT_EQ(text_of(Table{.caption = "Loss | length",
                          .columns = {{"method"}, {"change", "at 64"}, {"verdict"}},
                          .rows = {{{.text = "t5:a=1", .note = "(1 diverged)", .is_code = true},
                                    {.text = "+0.1", .value = 0.1, .note = "not told apart"},
                                    words("holds", Tone::kGood)},
                                   {words("a|b"), {.note = "first"}, words("drifts")}}}),
            "Loss \\| length:\n\n"
            "| method | change<br>at 64 | verdict |\n| --- | --- | --- |\n"
            "| `t5:a=1`<br>(1 diverged) | +0.1<br>not told apart | **holds** |\n"
            "| a\\|b | first | drifts |\n");
}

TEST(Markdown, OtherBlocksAreText) {
  EXPECT_EQ(text_of(Details{"How", "- so"}), "**How**\n\n* so\n");
  EXPECT_EQ(text_of(Listing{"a | b"}), "```\na | b\n```\n");
  EXPECT_EQ(text_of(NamedValues{{{"a.b", "1"}}}),
            "| setting | value |\n| --- | --- |\n| `a.b` | 1 |\n");
  EXPECT_EQ(text_of(Download{"a.csv", "text/csv", "1"}), "");
}

// A browser shows one of the two drawings by the width of the picture.
TEST(Markdown, ChartsAreFilesForWideScreensAndNarrowOnes) {
  Report report;
  LineChart lines = survey_chart();
  lines.name = "by-length";
  HeatMap map = small_map(4, 5);
  map.title = "A map";
  report.sections = {{"", {lines, map}}};
  const Markdown found = markdown(report, "figures/all");
  EXPECT_THAT(found.text,
              HasSubstr("](figures/all/by-length.svg)\n\n![A map](figures/all/a-map.svg)"));
  ASSERT_EQ(found.figures.size(), 2U);
  EXPECT_EQ(found.figures[0].file, "figures/all/by-length.svg");
  for (const Markdown::Figure& figure : found.figures) {
    EXPECT_THAT(figure.svg, HasSubstr("(prefers-color-scheme: dark)"));
    EXPECT_THAT(figure.svg, HasSubstr("@media (max-width: 480px) { .wide { display: none; }"));
    const Element svg = parse_xml(figure.svg);
    const auto drawings = svg.all("svg", "wide"), narrow = svg.all("svg", "narrow");
    ASSERT_EQ(drawings.size(), 1U);
    ASSERT_EQ(narrow.size(), 1U);
    EXPECT_EQ(drawings[0]->attribute("width"), svg.attribute("width"));
    EXPECT_EQ(narrow[0]->attribute("width"), svg.attribute("width")) << "larger print";
    EXPECT_TRUE(narrow[0]->attribute("viewBox").starts_with("0 0 440 "));
  }
}

Report with_parts() {
  Report report;
  report.lead = "Answer.";
  report.opening.blocks = {Details{"How this was chosen", "Rule."}};
  report.sections = {{"All tables",
                      {Table{.caption = "One", .columns = {{"a"}}},
                       Table{.caption = "Two", .columns = {{"b"}}, .name = "second"}}},
                     {"Limits", {Prose{"Small."}}}};
  report.footer = "end";
  return report;
}

TEST(Parts, AreFoundByHeadingNameOrTitle) {
  const auto part = [](const std::vector<std::string>& names) {
    return text_of(only_parts(with_parts(), names));
  };
  EXPECT_EQ(part({"answer"}), "Answer.\n\n**How this was chosen**\n\nRule.\n");
  EXPECT_EQ(part({"how-this-was-chosen"}), "**How this was chosen**\n\nRule.\n");
  EXPECT_EQ(part({"limits", "second"}), "Small.\n\nTwo:\n\n| b |\n| --- |\n");
  EXPECT_EQ(part({"all-tables"}), "One:\n\n| a |\n| --- |\n\nTwo:\n\n| b |\n| --- |\n");
}

TEST(Parts, AreListedWhereOneIsUnknown) {
  EXPECT_THAT([] { only_parts(with_parts(), {"two"}); },
              ThrowsMessage<Error>("report: --part: expected one of answer how-this-was-chosen "
                                   "all-tables one second limits, but got two"));
}

}  // namespace
}  // namespace sextant::chart
