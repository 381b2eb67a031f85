// What evaluating or extending a model found: tables, JSON and charts.
#pragma once

#include <string>

#include "sextant/chart/chart.h"
#include "sextant/lab/plan/stretch_candidates.h"
#include "sextant/lab/run/model_work.h"

namespace sextant::lab {

// Plain text: loss, its standard error over blocks and perplexity by length, both ways of cutting
// the text.
std::string table(const ModelEvaluation& evaluation);
std::string json_text(const ModelEvaluation& evaluation);
chart::LineChart chart_of(const ModelEvaluation& evaluation);

// Plain text: the sliding loss of each way by length, lowest at the longest first.
std::string table(const Extension& extension);
std::string json_text(const Extension& extension, const Recommendation& recommendation);
// Of the ways that lie lowest at the longest length, the model as it is and the way recommended,
// which stands out.
chart::LineChart chart_of(const Extension& extension, const Recommendation& recommendation);

}  // namespace sextant::lab
