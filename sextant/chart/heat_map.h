// A matrix as colours: layout and elements.
#pragma once

#include "sextant/chart/axis.h"
#include "sextant/chart/chart.h"
#include "sextant/chart/svg.h"

namespace sextant::chart {

// Throws Error if the map's data do not fit together (chart.h).
Drawing draw(const HeatMap& map, const Canvas& canvas);

// Also throws, for what writes the numbers only.
void check(const HeatMap& map);

}  // namespace sextant::chart
