// The results of evaluating or extending a model, as tables, JSON and charts.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sextant/chart/report.h"
#include "sextant/lab/result/model_work.h"
#include "sextant/lab/result/stretch_candidates.h"

namespace sextant::lab {

// Plain text: loss, its standard error over blocks, and perplexity by length, both for the text cut
// into pieces and for sliding windows.
std::string table(const ModelEvaluation& evaluation);
std::string json_text(const ModelEvaluation& evaluation);
chart::LineChart chart_of(const ModelEvaluation& evaluation);

// Plain text: the sliding loss of each candidate by length, sorted by loss at the longest length.
std::string table(const Extension& extension);
std::string json_text(const Extension& extension, const Recommendation& recommendation);
// Draws the candidates with the lowest loss at the longest length, the unchanged model, and the
// recommended candidate, which is emphasised.
chart::LineChart chart_of(const Extension& extension, const Recommendation& recommendation);
// The same candidates by position in the longest sequences, if losses by position were measured.
chart::LineChart chart_by_position(const Extension& extension,
                                   const Recommendation& recommendation);

// The report of what json_text() has of an extension. Throws Error that begins with `where` and
// names the field.
chart::Report extension_page(const nlohmann::json& content, const std::string& where);

}  // namespace sextant::lab
