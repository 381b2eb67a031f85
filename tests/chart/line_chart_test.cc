#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include "sextant/base/error.h"
#include "sextant/chart/chart.h"
#include "sextant/chart/text.h"
#include "tests/chart/boxes.h"
#include "tests/chart/samples.h"
#include "tests/chart/xml.h"

namespace sextant::chart {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<std::string> words_of(const Element& svg) {
  std::vector<std::string> out;
  for (const Element* text : svg.all("text")) out.push_back(text->text);
  return out;
}

std::string complaint_about(const LineChart& chart) {
  try {
    svg(chart);
  } catch (const Error& error) {
    return error.what();
  }
  return "no complaint";
}

LineChart chart_of(std::vector<double> x, std::vector<double> y) {
  LineChart chart;
  chart.series = {{.name = "s", .x = std::move(x), .y = std::move(y)}};
  return chart;
}

// The drawn lines of a chart with one series: how many subpaths and line segments they have.
struct Pen {
  long down = 0, strokes = 0;
};
Pen pen(const LineChart& chart) {
  const Element drawing = parse_xml(svg(chart));
  Pen out;
  for (const Element* line : drawing.all("path", "line")) {
    for (const char c : line->attribute("d")) {
      out.down += c == 'M';
      out.strokes += c == 'L';
    }
  }
  return out;
}

TEST(LineChart, ShowsAllThatItWasGiven) {
  const LineChart chart = survey_chart();
  const Element drawing = parse_xml(svg(chart));
  const std::vector<std::string> words = words_of(drawing);
  for (const Series& series : chart.series) EXPECT_THAT(words, Contains(series.name));
  for (const char* more : {"Loss against length", "mean over two seeds", "training length",
                           "length of the text (bytes)", "loss (nats per byte)", "128", "1024"}) {
    EXPECT_THAT(words, Contains(more));
  }
  EXPECT_EQ(drawing.all("path", "line").size(), chart.series.size());
  EXPECT_EQ(drawing.all("path", "band").size(), chart.series.size());
  EXPECT_EQ(drawing.all("path", "point").size(), 4 * chart.series.size());
}

TEST(LineChart, LooksDifferForTwentySeries) {
  LineChart chart;
  for (int i = 0; i < 20; ++i) chart.series.push_back({.name = "s", .x = {0, 1}, .y = {0, 1}});
  const Element drawing = parse_xml(svg(chart));
  std::set<std::string> looks;
  for (const Element* group : drawing.all("g", "series")) {
    for (const Element* line : group->all("path", "line")) {
      looks.insert(group->attribute("class") + line->attribute("stroke-dasharray"));
    }
  }
  EXPECT_EQ(looks.size(), 20U);
}

TEST(LineChart, NoWordsOverlapOrAreCutOff) {
  for (LineChart chart : {survey_chart(), crowded_chart()}) {
    for (const int width : {360, 760, 1200}) {
      for (const int height : {200, 440}) {
        chart.width = width;
        chart.height = height;
        const Element drawing = parse_xml(svg(chart));
        const std::vector<TextBox> boxes = text_boxes(drawing);
        EXPECT_THAT(overlaps(boxes), IsEmpty()) << width << " x " << height;
        const double tall = std::stod(drawing.attribute("height"));
        EXPECT_THAT(cut_off(boxes, width, tall), IsEmpty()) << width << " x " << height;
      }
    }
  }
}

TEST(LineChart, LabelsOfEqualEndsStandApart) {
  LineChart chart;
  for (int i = 0; i < 20; ++i) {
    chart.series.push_back({.name = "equal-" + std::to_string(i), .x = {0, 1}, .y = {1, 1}});
  }
  const std::vector<TextBox> boxes = text_boxes(parse_xml(svg(chart)));
  EXPECT_THAT(overlaps(boxes), IsEmpty());
}

TEST(LineChart, NamesCannotLeaveTheirPlace) {
  const LineChart chart = crowded_chart();
  const Element drawing = parse_xml(svg(chart));  // throws if a name is not escaped
  EXPECT_THAT(drawing.all("script"), IsEmpty());
  for (const Element* element : drawing.all()) EXPECT_EQ(element->attribute("onload"), "");
  std::vector<std::string> titles;
  for (const Element* title : drawing.all("title")) titles.push_back(title->text);
  EXPECT_THAT(titles, Contains("<script>alert(1)</script>"));
  EXPECT_THAT(titles, Contains("a & b &amp; c"));
  EXPECT_THAT(titles, Contains("漢字 и кириллица"));
}

TEST(LineChart, ValuesThatAreNoNumbersAreGaps) {
  EXPECT_EQ(pen(chart_of({0, 1, 2, 3}, {1, 2, 3, 4})).down, 1);
  const Pen gap = pen(chart_of({0, 1, 2, 3, 4, 5}, {1, 2, kNan, 4, 5, 6}));
  EXPECT_EQ(gap.down, 2);
  EXPECT_EQ(gap.strokes, 3);
  EXPECT_EQ(pen(chart_of({0, 1, 2, 3}, {1, kInfinity, -kInfinity, 4})).down, 2);
  for (const char* bad : {"nan", "inf"}) {
    EXPECT_THAT(svg(chart_of({0, 1, 2}, {1, kNan, kInfinity})), Not(HasSubstr(bad)));
  }
}

TEST(LineChart, AlwaysSaysWhyItIsEmpty) {
  EXPECT_THAT(words_of(parse_xml(svg(LineChart{}))), Contains("no values to show"));
  EXPECT_THAT(words_of(parse_xml(svg(chart_of({}, {})))), Contains("no values to show"));
  const Element missing = parse_xml(svg(chart_of({0, 1}, {kNan, kNan})));
  EXPECT_THAT(words_of(missing), Contains("s: no values"));
}

TEST(LineChart, OnePointIsSeen) {
  const Element drawing = parse_xml(svg(chart_of({3}, {4})));
  EXPECT_EQ(drawing.all("path", "point").size(), 1U);
  const Element lonely = parse_xml(svg(chart_of({1, 2, 3}, {kNan, 4, kNan})));
  EXPECT_EQ(lonely.all("path", "point").size(), 1U);
}

TEST(LineChart, OddRangesGiveFiniteCoordinates) {
  const std::vector<std::vector<double>> values = {
      {0, 0},          {5, 5},         {1e-320, 2e-320}, {1e300, 1.1e300},
      {-1e150, 1e150}, {1, 1 + 1e-15}, {1e6, 1e6 + 1},   {-3, -3}};
  for (const auto& y : values) {
    const std::string drawing = svg(chart_of({0, 1}, y));
    parse_xml(drawing);
    EXPECT_THAT(drawing, Not(HasSubstr("nan"))) << y[0] << " " << y[1];
    EXPECT_THAT(drawing, Not(HasSubstr("inf"))) << y[0] << " " << y[1];
    EXPECT_EQ(pen(chart_of({0, 1}, y)).strokes, 1) << y[0] << " " << y[1];
  }
}

TEST(LineChart, LogarithmicAxesRefuseWhatTheyCannotShow) {
  LineChart chart = chart_of({1, 2}, {0, 1});
  chart.y.scale = Scale::kLog10;
  EXPECT_THAT(complaint_about(chart),
              HasSubstr("y axis: expected values above 0 on a logarithmic axis, but got 0"));
  chart = chart_of({-1, 2}, {1, 1});
  chart.x.scale = Scale::kLog2;
  EXPECT_THAT(complaint_about(chart), HasSubstr("x axis"));
  chart = chart_of({1, 2}, {1, 1});
  chart.x.scale = Scale::kLog2;
  chart.x.low = 0;
  EXPECT_THAT(complaint_about(chart), HasSubstr("x axis"));
  chart.x.low = {};
  EXPECT_EQ(complaint_about(chart), "no complaint");
}

TEST(LineChart, DataThatDoNotFitTogetherAreRefused) {
  EXPECT_THAT(complaint_about(chart_of({1, 2}, {1})),
              HasSubstr("series \"s\": y: expected as many values as x, 2, but got 1"));
  EXPECT_THAT(complaint_about(chart_of({1, kNan}, {1, 1})),
              HasSubstr("x[1]: expected a finite number, but got nan"));
  EXPECT_THAT(complaint_about(chart_of({1, 2, 1}, {1, 1, 1})), HasSubstr("x[2]"));
  LineChart marked = chart_of({1, 2}, {1, 1});
  marked.markers = {{kNan, "nowhere"}};
  EXPECT_THAT(complaint_about(marked), HasSubstr("marker \"nowhere\": x: expected a finite"));
  LineChart band = chart_of({1, 2}, {1, 1});
  band.series[0].low = {0, 0};
  EXPECT_THAT(complaint_about(band), HasSubstr("high"));
  LineChart upside_down = chart_of({1, 2}, {1, 1});
  upside_down.y.low = 3;
  upside_down.y.high = 2;
  EXPECT_THAT(complaint_about(upside_down), HasSubstr("but got 3 to 2"));
}

TEST(LineChart, AMillionPointsMakeASmallPicture) {
  LineChart chart;
  Series series = {.name = "wave"};
  for (int i = 0; i < 1'000'000; ++i) {
    series.x.push_back(i);
    series.y.push_back(std::sin(i * 0.001));
  }
  chart.series = {series};
  EXPECT_LT(svg(chart).size(), 100'000U);
}

TEST(LineChart, WhatLeavesTheRangeIsNamedWithAnArrow) {
  LineChart chart = chart_of({0, 1}, {0, 10});
  chart.y.low = 0;
  chart.y.high = 1;
  EXPECT_THAT(words_of(parse_xml(svg(chart))), Contains("s ↑"));
  chart.series[0].y = {0, -10};
  EXPECT_THAT(words_of(parse_xml(svg(chart))), Contains("s ↓"));
}

}  // namespace
}  // namespace sextant::chart
