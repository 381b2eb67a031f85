#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "sextant/base/error.h"
#include "sextant/chart/chart.h"
#include "tests/chart/boxes.h"
#include "tests/chart/samples.h"
#include "tests/chart/xml.h"

namespace sextant::chart {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

// `count` points at equal angles from (1, 0).
PlaneChart::Series ring(const std::string& name, int count, double step) {
  PlaneChart::Series series = {.name = name, .points = {}};
  for (int n = 0; n < count; ++n) {
    series.points.push_back({std::cos(n * step), std::sin(n * step), std::to_string(n)});
  }
  return series;
}

PlaneChart pair_of_panels() {
  return {.title = "A pair in the plane",
          .subtitle = "base 10000",
          .x = "channel 3",
          .y = "channel 35",
          .arc_name = "angles of training",
          .panels = {{"as trained", {ring("near", 12, 0.2), ring("far", 30, 1.1)}, 1.7},
                     {"stretched", {ring("near", 12, 0.02), ring("far", 30, 0.05)}, 1.7}}};
}

std::vector<std::string> words_in(const PlaneChart& chart) {
  const Element drawing = parse_xml(svg(chart));
  std::vector<std::string> words;
  for (const Element* text : drawing.all("text")) words.push_back(text->text);
  return words;
}

TEST(PlaneChart, ShowsAllThatItWasGiven) {
  const std::vector<std::string> words = words_in(pair_of_panels());
  for (const char* word : {"A pair in the plane", "base 10000", "as trained", "stretched", "near",
                           "far", "angles of training", "channel 3 to the right, channel 35 up"}) {
    EXPECT_THAT(words, Contains(word));
  }
  const Element drawing = parse_xml(svg(pair_of_panels()));
  EXPECT_EQ(drawing.all("circle").size(), 2U);
  EXPECT_EQ(drawing.all("path", "point").size(), 2 * (12 + 30) + 2) << "and two in the legend";
  EXPECT_EQ(drawing.all("path", "band").size(), 2 * 2) << "each arc in two halves";
}

TEST(PlaneChart, PointsLieOnTheCircleWithYUpwards) {
  PlaneChart chart = {.title = "", .subtitle = "", .x = "", .y = "", .arc_name = "", .panels = {}};
  chart.panels = {{"p", {{"s", {{1, 0, "east"}, {0, 1, "north"}}}}, 0}};
  const Element drawing = parse_xml(svg(chart));
  const Element* circle = drawing.all("circle").at(0);
  const double x = std::stod(circle->attribute("cx")), y = std::stod(circle->attribute("cy"));
  const double radius = std::stod(circle->attribute("r"));
  for (const Element* text : drawing.all("text")) {
    const double right = std::stod(text->attribute("x")) - x;
    const double down = std::stod(text->attribute("y")) - y;
    if (text->text == "east") {
      EXPECT_GT(right, radius);
      EXPECT_NEAR(down, 4, 1);
    }
    if (text->text == "north") {
      EXPECT_NEAR(right, 0, 1);
      EXPECT_LT(down, -radius);
    }
  }
}

TEST(PlaneChart, PanelsThatDoNotFitAreStacked) {
  const auto places = [](int width) {
    PlaneChart chart = pair_of_panels();
    chart.width = width;
    const Element drawing = parse_xml(svg(chart));
    const auto circles = drawing.all("circle");
    return std::pair(
        std::stod(circles.at(1)->attribute("cx")) - std::stod(circles.at(0)->attribute("cx")),
        std::stod(circles.at(1)->attribute("cy")) - std::stod(circles.at(0)->attribute("cy")));
  };
  EXPECT_GT(places(760).first, 300);
  EXPECT_EQ(places(760).second, 0);
  EXPECT_EQ(places(360).first, 0);
  EXPECT_GT(places(360).second, 300);
}

TEST(PlaneChart, NoWordsOverlapOrAreCutOff) {
  PlaneChart crowded = pair_of_panels();
  for (PlaneChart::Panel& panel : crowded.panels) {
    panel.name = "a name that is longer than the panel which it is the name of, and longer still";
    panel.series.push_back(ring("very many points that lie one over another", 300, 0.021));
    panel.series.push_back({.name = "empty", .points = {}});
  }
  for (PlaneChart chart : {pair_of_panels(), crowded}) {
    for (const int width : {300, 360, 760, 1200}) {
      chart.width = width;
      const Element drawing = parse_xml(svg(chart));
      const std::vector<TextBox> boxes = text_boxes(drawing);
      EXPECT_THAT(overlaps(boxes), IsEmpty()) << width;
      EXPECT_THAT(cut_off(boxes, width, std::stod(drawing.attribute("height"))), IsEmpty())
          << width;
    }
  }
}

TEST(PlaneChart, VectorsAreLinesFromTheOriginAndArcsBeginWhereTheySay) {
  PlaneChart chart = pair_of_panels();
  chart.panels.resize(1);
  chart.panels[0].series = {{"q", {{0, 1, "q"}}, true}, {"k", {{-1, 0, "k"}}, true}};
  chart.panels[0].arc = chart.panels[0].arc_from = std::numbers::pi / 2;
  const Element drawing = parse_xml(svg(chart));
  EXPECT_EQ(drawing.all("path", "line").size(), 2U);
  const Element* circle = drawing.all("circle").at(0);
  const std::string arc = drawing.all("path", "band").at(0)->attribute("d");
  EXPECT_NEAR(std::stod(arc.substr(1)), std::stod(circle->attribute("cx")), 0.02) << "upwards";
}

TEST(PlaneChart, HostileNamesAreText) {
  PlaneChart chart = pair_of_panels();
  for (const std::string& name : hostile_names()) {
    chart.panels[0].series.push_back({.name = name, .points = {{0, 1, name}}});
  }
  EXPECT_NO_THROW(parse_xml(svg(chart)));
}

TEST(PlaneChart, CsvHasEachPointAndArc) {
  PlaneChart chart = pair_of_panels();
  chart.arc_name = "angles, of training";
  chart.panels = {{"a, b", {{"s", {{1, 0, "0"}, {0, 1.0 / 3, "1"}}}}, 0},
                  {"c", {}, 0},
                  {"d", {{"s", {{0, 1, "2"}}}}, 2.0 / 3},
                  {"e", {}, 1}};
  EXPECT_EQ(csv(chart),
            "panel,series,label,x,y,arc\n"
            "\"a, b\",s,0,1,0,\n"
            "\"a, b\",s,1,0,0.3333333333333333,\n"
            "d,\"angles, of training\",,,,0.6666666666666666\n"
            "d,s,2,0,1,\n"
            "e,\"angles, of training\",,,,1\n");
}

TEST(PlaneChart, ValuesThatDoNotFitAreRefused) {
  PlaneChart far = pair_of_panels(), none = far, arc = far;
  far.panels[1].series[0].points[3].x = 1.3;
  EXPECT_THAT([&] { svg(far); },
              ThrowsMessage<Error>(HasSubstr(
                  "plane chart: stretched: near: expected coordinates from -1.25 to 1.25")));
  none.panels[0].series[1].points[0].y = std::nan("");
  EXPECT_THAT([&] { csv(none); }, ThrowsMessage<Error>(HasSubstr("as trained: far: expected")));
  arc.panels[0].arc = 7;
  EXPECT_THAT([&] { svg(arc); },
              ThrowsMessage<Error>(HasSubstr("as trained: arc: expected radians from 0 to 2 pi")));
  arc.panels[0].arc = 2 * std::numbers::pi;
  EXPECT_NO_THROW(svg(arc));
}

TEST(PlaneChart, WithoutPanelsIsEmptyAndNoError) {
  PlaneChart chart = pair_of_panels();
  chart.panels.clear();
  EXPECT_THAT(svg(chart), HasSubstr("</svg>"));
}

}  // namespace
}  // namespace sextant::chart
