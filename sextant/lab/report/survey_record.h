// A survey as its folder or a file keeps it, finished or not, for a report of it later.
//
//   FOLDER/results.json   if it has all results of the folder
//   FOLDER/arms/*         else: the results of the arms that are done
//   FILE                  results.json, also without details: blocks, answers, positions, steps,
//                         attention and pictures; or with the measures of "summary" alone
//
// Tables and charts that need more are left out; without measures of the arms there is no
// recommendation either. The verdicts, the reference and the claims of a file are shown as they are
// recorded.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sextant/chart/report.h"
#include "sextant/lab/data/corpus.h"
#include "sextant/lab/report/findings.h"

namespace sextant::lab {

struct SurveyRecord {
  std::string name;         // of the folder or file, without its ending
  nlohmann::json manifest;  // "sextant", "settings", "text"
  Findings findings;
  std::string command, date;   // the date of the newest result; empty: unknown
  size_t planned = 0;          // arms
  int64_t unknown_claims = 0;  // recorded by another version, and not shown
};

// Throws Error that names the file and the field.
SurveyRecord read_survey(const std::filesystem::path& path);
// The same of the content of a file; `where` begins the errors.
SurveyRecord survey_of(const nlohmann::json& content, const std::string& where);

// The reference that a survey of causal models has in its text.
std::optional<BigramLoss> bigrams_of(const Corpus& corpus, const Settings& settings);

chart::Report report_page(const SurveyRecord& record);

// Several surveys, for example of models of two sizes: the conditions of each, the methods that all
// have beside each other, and the claims, of one question or all (page.h).
chart::Report surveys_page(std::span<const SurveyRecord> surveys, const std::string& question);

// Only these methods, in this order, in tables and charts; empty: all. Throws Error that lists the
// names for one that the survey does not have.
void keep_methods(SurveyRecord& record, const std::vector<std::string>& labels);

}  // namespace sextant::lab
