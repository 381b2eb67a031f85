// Points of a plane, in panels: layout and SVG elements.
#pragma once

#include "sextant/chart/chart.h"
#include "sextant/chart/svg.h"

namespace sextant::chart {

// The height follows from the width and the panels. Throws Error if a point is not finite or lies
// outside the square from -1.25 to 1.25, or if an arc is not from 0 to 2 pi.
Drawing draw(const PlaneChart& chart, const Canvas& canvas);

// The same checks, for output of the data alone.
void check(const PlaneChart& chart);

}  // namespace sextant::chart
