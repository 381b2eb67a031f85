// Figures of the encodings of a survey: scores by distance, position vectors, and attention maps.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sextant/chart/chart.h"
#include "sextant/lab/report/findings.h"

namespace sextant::lab {

struct NamedMap {
  std::string file;  // without folder and extension
  chart::HeatMap map;
};

// Attention of the last L/2 bytes of windows by distance, all methods in one map: one map at the
// training length L and one at the longest length. For each trained method also its position
// vectors and their cosines, the products of these vectors by layer and head, and its attention
// over a sequence of the longest length. Maps that are missing from results of older versions are
// left out.
std::vector<NamedMap> maps(const Findings& findings);

// Scores by distance, relative to the score at distance 0: one line per method for the mean over
// heads, with a band from the lowest head to the highest. Methods that do not change scores have no
// line.
chart::LineChart scores_by_distance(std::span<const MethodResult* const> methods,
                                    const Settings& settings, const std::string& title);
bool has_scores(const MethodResult& method);

}  // namespace sextant::lab
