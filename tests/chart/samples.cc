#include "tests/chart/samples.h"

#include <cmath>

namespace sextant::chart {

LineChart survey_chart() {
  LineChart chart;
  chart.title = "Loss against length";
  chart.subtitle = "mean over two seeds";
  chart.x = {.label = "length of the text", .unit = "bytes", .scale = Scale::kLog2};
  chart.y = {.label = "loss", .unit = "nats per byte"};
  const auto add = [&](const char* name, const std::vector<double>& y) {
    Series series = {.name = name, .x = {128, 256, 512, 1024}, .y = y, .low = y, .high = y};
    for (double& low : series.low) low -= 0.02;
    for (double& high : series.high) high += 0.02;
    chart.series.push_back(series);
  };
  add("none", {2.076, 2.150, 2.300, 2.500});
  add("sinusoidal", {1.660, 2.377, 2.727, 2.851});
  add("learned", {1.870, 2.310, 2.520, 2.620});
  add("rope", {1.461, 1.810, 2.401, 2.886});
  add("alibi", {1.585, 1.577, 1.572, 1.571});
  add("t5", {1.392, 1.385, 1.381, 1.387});
  add("shaw", {1.431, 1.422, 1.417, 1.415});
  add("window", {1.461, 1.450, 1.452, 1.450});
  chart.markers = {{128, "training length"}};
  return chart;
}

std::vector<std::string> hostile_names() {
  return {"<script>alert(1)</script>",
          "\" onload=\"alert(1)",
          "a & b &amp; c",
          "]]></style></svg>",
          "bell \a and null-free control \x1f",
          "broken UTF-8 \xff\xc0\x80\xed\xa0\x80 here",
          "漢字 и кириллица",
          "ends in half a letter \xe2\x82"};
}

LineChart crowded_chart() {
  LineChart chart;
  chart.title =
      "Twenty-two series whose ends are crowded together, with a title so long that it has to be "
      "wrapped, and, since even two lines of the chart do not hold all of it, shortened";
  chart.x = {.label = "x & more"};
  chart.y = {.label = "a long title of the vertical axis", .unit = "furlongs per fortnight"};
  const std::vector<std::string> names = hostile_names();
  for (size_t k = 0; k < 22; ++k) {
    Series series;
    series.name = k < names.size() ? names[k] : "method-" + std::to_string(k);
    if (k == 10) series.name += " with a name that goes on and on and on and on and on";
    for (int i = 0; i < 30; ++i) {
      series.x.push_back(i);
      const double wave = std::sin(i * 0.1 + static_cast<double>(k) * 0.3);
      series.y.push_back(wave * static_cast<double>(k % 3) + 1e-3 * static_cast<double>(k));
    }
    chart.series.push_back(series);
  }
  chart.series[9].emphasis = true;
  chart.series[11].y.assign(30, std::nan(""));
  for (size_t i = 20; i < 30; ++i) chart.series[12].y[i] = INFINITY;
  chart.y.high = 1.2;
  chart.markers = {{0, "training length"}, {1, "twice"}, {2, "four times that"}, {28, "the end"}};
  return chart;
}

HeatMap small_map(int64_t rows, int64_t columns) {
  HeatMap map;
  map.title = "A map";
  map.x = {.label = "column"};
  map.y = {.label = "row"};
  map.value = {.label = "amount", .unit = "units"};
  map.rows.count = rows;
  map.columns.count = columns;
  for (int64_t i = 0; i < rows * columns; ++i) map.values.push_back(static_cast<double>(i));
  if (!map.values.empty()) map.values.back() = std::nan("");
  return map;
}

}  // namespace sextant::chart
