// Heat maps: layout and SVG elements.
#pragma once

#include "sextant/chart/axis.h"
#include "sextant/chart/chart.h"
#include "sextant/chart/svg.h"

namespace sextant::chart {

// Throws Error if the map's data do not fit together (chart.h).
Drawing draw(const HeatMap& map, const Canvas& canvas);

// The same checks, for output of the data alone.
void check(const HeatMap& map);

}  // namespace sextant::chart
