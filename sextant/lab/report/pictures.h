// Pictures of what the encodings of a survey do: scores by distance, vectors of positions, maps of
// attention.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sextant/chart/chart.h"
#include "sextant/lab/report/table.h"

namespace sextant::lab {

struct NamedMap {
  std::string file;  // without folder and ending
  chart::HeatMap map;
};

// The attention of the last bytes of windows by distance, all methods in one map: at L, and at the
// longest length. For each method that was trained: its position vectors and their cosines, and its
// attention over a sequence of the longest length. Maps that another version did not measure are
// left out.
std::vector<NamedMap> maps(std::span<const MethodResult> methods, const Settings& settings);

// Scores by distance, a line for each method: the mean over heads, in a band from the least to the
// greatest, minus that at distance 0. No lines for methods that change no scores.
chart::LineChart scores_by_distance(std::span<const MethodResult> methods, const Settings& settings,
                                    const std::string& title);
bool has_scores(const MethodResult& method);

}  // namespace sextant::lab
