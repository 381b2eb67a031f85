#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "sextant/base/error.h"
#include "sextant/chart/chart.h"
#include "tests/chart/boxes.h"
#include "tests/chart/png_reader.h"
#include "tests/chart/samples.h"
#include "tests/chart/xml.h"

namespace sextant::chart {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

// The image of the cells in a drawn map; the other image is the colour bar.
Picture cells_of(const HeatMap& map) {
  const Element drawing = parse_xml(svg(map));
  const auto images = drawing.all("image");
  EXPECT_EQ(images.size(), 2U);
  const std::string url = images.at(0)->attribute("href"), start = "data:image/png;base64,";
  EXPECT_TRUE(url.starts_with(start));
  return read_png(unbase64(url.substr(start.size())));
}

std::string complaint_about(const HeatMap& map) {
  try {
    svg(map);
  } catch (const Error& error) {
    return error.what();
  }
  return "no complaint";
}

TEST(HeatMap, EachCellHasItsPlaceAndColour) {
  HeatMap map = small_map(2, 3);  // values 0 1 2 / 3 4 none
  const Picture cells = cells_of(map);
  const auto at = [&](int row, int column) {
    const int64_t y = cells.height * (2 * row + 1) / 4, x = cells.width * (2 * column + 1) / 6;
    return cells.pixel(x, y);
  };
  EXPECT_EQ(at(0, 0), (Pixel{68, 1, 84, 255}));     // the dark end of viridis
  EXPECT_EQ(at(1, 1), (Pixel{253, 231, 37, 255}));  // the light end
  EXPECT_EQ(at(1, 2)[3], 0);                        // no value: transparent
  EXPECT_NE(at(0, 1), at(0, 2));
}

TEST(HeatMap, DivergingColoursAreWhiteAtZeroAndSymmetric) {
  HeatMap map = small_map(1, 3);
  map.values = {-1, 0, 4};
  map.colours = Colours::kDiverging;
  const Picture cells = cells_of(map);
  const Pixel minus = cells.pixel(0, 0), zero = cells.pixel(cells.width / 2, 0),
              plus = cells.pixel(cells.width - 1, 0);
  EXPECT_EQ(zero, (Pixel{248, 248, 248, 255}));
  EXPECT_EQ(plus, (Pixel{103, 8, 32, 255}));
  EXPECT_GT(minus[2], minus[0]);  // pale blue, for -1 in a range to -4
  EXPECT_GT(minus[2], 200);
}

TEST(HeatMap, LargeMapsAreAveragedAndNotSampled) {
  HeatMap map = small_map(1, 8192);
  for (size_t i = 0; i < map.values.size(); ++i) map.values[i] = i % 2 == 0 ? 0 : 1;
  map.value.low = 0;
  map.value.high = 1;
  const Picture cells = cells_of(map);
  EXPECT_EQ(cells.width, 2048);
  EXPECT_EQ(cells.pixel(0, 0), cells.pixel(1000, 0));
  EXPECT_EQ(cells.pixel(0, 0), (Pixel{33, 145, 140, 255}));  // the middle of viridis
}

TEST(HeatMap, ShowsAllThatItWasGiven) {
  HeatMap map = small_map(2, 3);
  map.rows.names = {"first <row>", "second"};
  map.columns.first = 100;
  map.columns.step = 50;
  const Element drawing = parse_xml(svg(map));
  std::vector<std::string> words;
  for (const Element* text : drawing.all("text")) words.push_back(text->text);
  for (const char* word : {"A map", "column", "row", "amount (units)", "first <row>", "second",
                           "100", "150", "200", "0.0", "4.0", "no value"}) {
    EXPECT_THAT(words, Contains(word));
  }
}

TEST(HeatMap, NoWordsOverlapOrAreCutOff) {
  std::vector<HeatMap> maps = {small_map(1, 1), small_map(128, 128), small_map(3, 500),
                               small_map(700, 2)};
  HeatMap named = small_map(8, 30);
  for (int i = 0; i < 8; ++i)
    named.rows.names.push_back("a row with a long name " + std::to_string(i));
  for (int i = 0; i < 30; ++i) named.columns.names.push_back("column " + std::to_string(i));
  named.value = {.label = "a long name for the values of this map", .unit = "of something"};
  named.y.label = "a long name for its rows";
  maps.push_back(named);
  for (HeatMap& map : maps) {
    for (const int width : {360, 640}) {
      map.width = width;
      const Element drawing = parse_xml(svg(map));
      const std::vector<TextBox> boxes = text_boxes(drawing);
      EXPECT_THAT(overlaps(boxes), IsEmpty()) << map.rows.count << " x " << map.columns.count;
      EXPECT_THAT(cut_off(boxes, width, std::stod(drawing.attribute("height"))), IsEmpty())
          << map.rows.count << " x " << map.columns.count;
    }
  }
}

TEST(HeatMap, OddValuesAreDrawn) {
  for (const double value : {0.0, 7.0, -1e300, 1e-310}) {
    HeatMap map = small_map(2, 2);
    map.values.assign(4, value);
    const std::string drawing = svg(map);
    parse_xml(drawing);
    EXPECT_THAT(drawing, Not(HasSubstr("nan")));
  }
  HeatMap nothing = small_map(2, 2);
  nothing.values.assign(4, std::nan(""));
  EXPECT_EQ(cells_of(nothing).pixel(0, 0)[3], 0);
  for (const HeatMap& empty : {small_map(0, 0), small_map(0, 5), small_map(5, 0)}) {
    EXPECT_THAT(svg(empty), HasSubstr("no values to show"));
  }
}

TEST(HeatMap, DataThatDoNotFitTogetherAreRefused) {
  HeatMap map = small_map(2, 3);
  map.values.pop_back();
  EXPECT_THAT(complaint_about(map), HasSubstr("values: expected 2 rows of 3, but got 5"));
  map = small_map(2, 3);
  map.rows.names = {"one"};
  EXPECT_THAT(complaint_about(map), HasSubstr("rows: names: expected none or 2, but got 1"));
  map = small_map(2, 3);
  map.columns.step = 0;
  EXPECT_THAT(complaint_about(map), HasSubstr("columns: step"));
  map = small_map(2, 3);
  map.value.scale = Scale::kLog10;  // one value is 0
  EXPECT_THAT(complaint_about(map), HasSubstr("above 0 on a logarithmic axis"));
}

TEST(HeatMap, PictureOfCellsIsSmall) {
  HeatMap map = small_map(512, 512);
  for (int64_t i = 0; i < 512; ++i) {
    for (int64_t k = 0; k < 512; ++k) {
      map.values[static_cast<size_t>(512 * i + k)] = std::cos(0.1 * static_cast<double>(i - k));
    }
  }
  EXPECT_LT(svg(map).size(), 200'000U);
}

}  // namespace
}  // namespace sextant::chart
