// Charts drawn as elements of SVG: each kind lays itself out within a canvas. Throws Error if the
// data of a chart do not fit together (chart.h).
#pragma once

#include <utility>
#include <vector>

#include "sextant/chart/axis.h"
#include "sextant/chart/svg.h"

namespace sextant::chart {

struct LineDrawing {
  Drawing drawing;
  Range x, y;
  std::vector<std::vector<std::vector<size_t>>> strokes;  // per series: indices of drawn points
};

LineDrawing draw(const LineChart& chart, const Canvas& canvas);
Drawing draw(const HeatMap& map, const Canvas& canvas);
// The height follows from the width and the panels. A point must lie in the square from -1.25 to
// 1.25, and an arc be from 0 to 2 pi.
Drawing draw(const PlaneChart& chart, const Canvas& canvas);
// Panels one above the other, as tall as they need.
Drawing draw(const Panels& panels, const Canvas& canvas);

// The same for any of them.
Drawing drawing_of(const auto& chart, const Canvas& canvas) {
  auto drawn = draw(chart, canvas);
  if constexpr (requires { drawn.drawing; })
    return std::move(drawn.drawing);
  else
    return drawn;
}

// The same checks, for output of the data alone.
void check(const HeatMap& map);
void check(const PlaneChart& chart);

}  // namespace sextant::chart
