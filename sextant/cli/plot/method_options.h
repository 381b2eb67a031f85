// The options of a method itself, for its plot: `--options JSON` and NAME:OPTION=VALUE.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sextant/cli/plot/plotted.h"
#include "sextant/lab/run/plugin.h"

namespace sextant::cli {

// A command line of `sextant plot`.
struct PlotRequest {
  std::string words;                         // "alibi", "alibi:future_scale=2"
  std::string options = "{}";                // of the method, as JSON
  std::map<std::string, std::string> texts;  // values of the plot's options, or their defaults
  std::set<std::string> typed;               // the plot's options that the user gave
};

struct ChosenPlot {
  PlottedMethod method;
  std::map<std::string, std::string> texts = {};
  // Begins the names of the files: "alibi", "alibi-future_scale=2-max_bias=4" with the method's own
  // options sorted by name. Characters other than letters, digits and ".,=+-_" become "_"; a long
  // label is cut, and ends with a hash of the whole.
  std::string label;
};

// The plot of a method with its own options. If all of them are expressed by options of the plot it
// is `method`; else the method is drawn by its scores or its input, which every option can change.
// Throws Error if the options cannot be parsed, if one is given twice, or if they are drawn by
// scores and the user gave an option that such plots do not have. Options that the method does not
// have are refused when its figures are made.
ChosenPlot choose_plot(const PlottedMethod& method, const PlotRequest& request);

// Figures of any method, from the scores or input vectors that the plug-in computes.

// The methods of the plug-in; empty in a build without libtorch.
std::vector<lab::KnownMethod> methods_of_laboratory();

// Draws the vectors that the method adds to the input, or else its scores with one vector as query
// and key at all positions; a method on a grid, by both distances. Parameters have their initial
// values.
PlottedMethod plot_by_scores(const std::string& method);

}  // namespace sextant::cli
