// Places labels in a column without overlap.
#pragma once

#include <span>
#include <vector>

namespace sextant::chart {

// Places for labels with preferred places `wanted`: at least `spacing` apart, within [low, high],
// in the order of `wanted`, and with the smallest possible sum of squared moves. If they do not
// fit, they share the room evenly.
std::vector<double> spread_out(std::span<const double> wanted, double spacing, double low,
                               double high);

}  // namespace sextant::chart
