// Charts that the tests draw.
#pragma once

#include <string>
#include <vector>

#include "sextant/chart/chart.h"

namespace sextant::chart {

// Loss against length of eight methods, four of which end close together.
LineChart survey_chart();

// 22 series that crowd at their ends, have no values, break off, leave the chart, or have long and
// hostile names; markers side by side at the left; a title of three lines.
LineChart crowded_chart();

// Names that a careless writer would let out of their quotes.
std::vector<std::string> hostile_names();

// rows x columns of small numbers, with a cell that has no value.
HeatMap small_map(int64_t rows, int64_t columns);

}  // namespace sextant::chart
