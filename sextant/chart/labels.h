// Labels in a column that shall not overlap.
#pragma once

#include <span>
#include <vector>

namespace sextant::chart {

// Places for labels that would like to stand at `wanted`, at least `spacing` apart, all within
// [low, high] and in the order of their wishes; the sum of squared moves is the least possible.
// Where they cannot fit they share the room evenly.
std::vector<double> spread_out(std::span<const double> wanted, double spacing, double low,
                               double high);

}  // namespace sextant::chart
