// The results of `sextant retrieve` as a table, JSON, CSV and a page.
//
// `manifest` is that of the measurement: "model" (a path, or null), "endpoint", "candidate",
// "trained_length" (absent: not known), "dtype" and "retrieval". `facts` are those of the worker's
// done.json, or null.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sextant/chart/report.h"
#include "sextant/lab/report/retrieval_scores.h"

namespace sextant::lab {

// Plain text: scores in percent by task and length with their intervals, and the effective length.
std::string table(const RetrievalScores& scores);

// "Effective length: 2048 tokens ..." and, in a second line, the range if the intervals do not
// decide it.
std::string effective_words(const RetrievalScores& scores);

// A line for each length with replies that are no scores, and one on empty answers that are; empty
// if there are none.
std::string missing_words(const RetrievalScores& scores);

// Everything, with the samples.
std::string json_text(const RetrievalScores& scores, const nlohmann::json& manifest,
                      const nlohmann::json& facts, const std::string& command = "");

// "task,length,depth,sample,tokens,score,expected,answer": one line per sample.
std::string samples_csv(const RetrievalScores& scores);

// Heat maps of depths and of tasks by length, the table, wrong answers, and the settings.
chart::Report report_page(const RetrievalScores& scores, const nlohmann::json& manifest,
                          const nlohmann::json& facts, const std::string& command);

// The same page, of the text of json_text(). Throws Error that begins with `where` and names the
// field.
chart::Report retrieval_page(const nlohmann::json& content, const std::string& where);

}  // namespace sextant::lab
