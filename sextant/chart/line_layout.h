// The layout of a line chart: ranges, margins, ticks and the text above the plot. line_chart.cc
// draws the series and the labels at their ends.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "sextant/chart/axis.h"
#include "sextant/chart/chart.h"
#include "sextant/chart/svg.h"

namespace sextant::chart {

inline constexpr double kLabelSpacing = 15, kLabelSize = 12, kTickSize = 11;
inline constexpr size_t kEveryPoint = 24;  // series of at most this many points show all of them

struct LineLayout {
  struct Words {
    double x = 0, y = 0;
    std::string words;
  };

  std::string heading;  // SVG elements
  Range x, y;
  Scale x_scale = Scale::kLinear, y_scale = Scale::kLinear;
  Box plot;
  int height = 0;  // of the whole picture; exceeds the requested height if labels need it
  std::vector<Tick> x_ticks, y_ticks;
  Words y_title;
  std::vector<Words> marker_names;  // per marker

  double place_x(double value) const {
    return plot.left + plot.width * fraction(x_scale, x, value);
  }
  double place_y(double value) const {
    return plot.bottom() - plot.height * fraction(y_scale, y, value);
  }
};

// Throws Error if the chart's data do not fit together (chart.h).
LineLayout lay_out(const LineChart& chart, const Canvas& canvas);

// Places labels in a column without overlap.

// Places for labels with preferred places `wanted`: at least `spacing` apart, within [low, high],
// in the order of `wanted`, and with the smallest possible sum of squared moves. If they do not
// fit, they share the room evenly.
std::vector<double> spread_out(std::span<const double> wanted, double spacing, double low,
                               double high);

// Splits a line at its gaps and drops points that would not be visible.

// Indices of the points to draw, one list for each run of finite values. If points share a column
// of pixels, only the first, the smallest, the largest and the last are kept (Jugel et al. 2014,
// "M4"), which gives the same picture as all points. `column` maps an index to its column and never
// decreases.
std::vector<std::vector<size_t>> strokes(std::span<const double> y,
                                         const std::function<long(size_t)>& column);

}  // namespace sextant::chart
