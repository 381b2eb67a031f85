// Line charts: ranges, layout and SVG elements.
#pragma once

#include <vector>

#include "sextant/chart/axis.h"
#include "sextant/chart/chart.h"
#include "sextant/chart/svg.h"

namespace sextant::chart {

struct LineDrawing {
  Drawing drawing;
  Range x, y;
  std::vector<std::vector<std::vector<size_t>>> strokes;  // per series: indices of drawn points
};

// Throws Error if the chart's data do not fit together (chart.h).
LineDrawing draw(const LineChart& chart, const Canvas& canvas);

}  // namespace sextant::chart
