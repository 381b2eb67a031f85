// Charts for tests.
#pragma once

#include <string>
#include <vector>

#include "sextant/chart/chart.h"

namespace sextant::chart {

// Loss by length of eight methods, four of which end close together.
LineChart survey_chart();

// 22 series that end close together, have no values, have gaps, leave the chart, or have long and
// hostile names; markers side by side at the left; a title of three lines.
LineChart crowded_chart();

// Names that break quoting or markup unless they are escaped.
std::vector<std::string> hostile_names();

// rows x columns of small values, with one cell without a value.
HeatMap small_map(int64_t rows, int64_t columns);

}  // namespace sextant::chart
