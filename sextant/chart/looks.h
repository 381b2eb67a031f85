// The appearance of series and of heat maps. The index of a series determines its colour, dash and
// point shape, so that readers with colour blindness, and printers, have two more marks to
// distinguish series.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "sextant/chart/chart.h"

namespace sextant::chart {

struct Look {
  std::string css;     // CSS class of the colour, such as "look3": see chart.css
  std::string dashes;  // value of stroke-dasharray; empty for a solid line
  int shape = 0;
};

Look look(size_t place);

// The marker of one point, as path data, `radius` pixels around (x, y). There are seven shapes;
// further indices repeat them.
std::string point_path(int shape, double x, double y, double radius);

struct Colour {
  uint8_t red = 0, green = 0, blue = 0;
};

// t from 0 to 1; other values take the colour of the nearer end. Sequential: viridis (van der Walt
// and Smith 2015), from a table. Diverging: blue, white at 1/2, red.
Colour colour(Colours colours, double t);

}  // namespace sextant::chart
