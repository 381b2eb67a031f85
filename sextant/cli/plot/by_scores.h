// Figures of any method, from the scores or input vectors that the plug-in computes.
#pragma once

#include <string>
#include <vector>

#include "sextant/cli/plot/plotted.h"
#include "sextant/lab/run/plugin.h"

namespace sextant::cli {

// The methods of the plug-in; empty in a build without libtorch.
std::vector<lab::KnownMethod> methods_of_laboratory();

// Draws the vectors that the method adds to the input, or else its scores with one vector as query
// and key at all positions. Parameters have their initial values.
PlottedMethod plot_by_scores(const std::string& method);

}  // namespace sextant::cli
