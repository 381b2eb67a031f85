// The unbroken pieces of a line, with no more points than eyes can part.
#pragma once

#include <functional>
#include <span>
#include <vector>

namespace sextant::chart {

// Indices of the points to draw, one list for each run of finite values. Of the points that share a
// column of pixels only the first, the least, the greatest and the last stay (Jugel et al. 2014,
// "M4"), so the picture is that of all points. `column` tells the column of an index, and never
// falls.
std::vector<std::vector<size_t>> strokes(std::span<const double> y,
                                         const std::function<long(size_t)>& column);

}  // namespace sextant::chart
