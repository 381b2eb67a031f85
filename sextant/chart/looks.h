// How a series is told from the others: a colour, a dash and a point shape by its place in the
// list, so that readers who see few colours, and printers, have two more signs to go by. And the
// colours of heat maps.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "sextant/chart/chart.h"

namespace sextant::chart {

struct Look {
  std::string css;     // class of the colour, "look3": see chart.css
  std::string dashes;  // of stroke-dasharray; empty for a whole line
  int shape = 0;
};

Look look(size_t place);

// The sign of one point, as path data, `radius` pixels about (x, y). Seven shapes; others repeat.
std::string point_path(int shape, double x, double y, double radius);

struct Colour {
  uint8_t red = 0, green = 0, blue = 0;
};

// t from 0 to 1; what is beyond takes the colour of the end. Sequential: viridis (van der Walt and
// Smith 2015), read from a table. Diverging: blue, white at 1/2, red.
Colour colour(Colours colours, double t);

}  // namespace sextant::chart
