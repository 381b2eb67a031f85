// Figures of any method of the laboratory, made from the scores or inputs that it computes.
#pragma once

#include <string>
#include <vector>

#include "sextant/cli/plot/plotted.h"
#include "sextant/lab/run/plugin.h"

namespace sextant::cli {

// The methods of the laboratory; none if this is a build without libtorch.
std::vector<lab::KnownMethod> methods_of_laboratory();

// Draws the vectors that the method adds to the input, or else its scores for one vector as query
// and key at all positions, with parameters as training starts from them.
PlottedMethod plot_by_scores(const std::string& method);

}  // namespace sextant::cli
