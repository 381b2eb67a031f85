// Drawing any method of the laboratory by what it does, and not by what its file here knows of it.
#pragma once

#include <string>
#include <vector>

#include "sextant/cli/plot/plotted.h"

namespace sextant::cli {

// The methods of the laboratory; none if this is a build without libtorch.
std::vector<std::string> drawable_by_scores();

// What the method adds to the input, or else its scores for one vector as query and key at all positions,
// with parameters as training starts from them.
PlottedMethod plot_by_scores(const std::string& method);

}  // namespace sextant::cli
