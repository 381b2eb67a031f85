// Splits a line at its gaps and drops points that would not be visible.
#pragma once

#include <functional>
#include <span>
#include <vector>

namespace sextant::chart {

// Indices of the points to draw, one list for each run of finite values. If points share a column
// of pixels, only the first, the smallest, the largest and the last are kept (Jugel et al. 2014,
// "M4"), which gives the same picture as all points. `column` maps an index to its column and never
// decreases.
std::vector<std::vector<size_t>> strokes(std::span<const double> y,
                                         const std::function<long(size_t)>& column);

}  // namespace sextant::chart
