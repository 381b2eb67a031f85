// The output files of a survey: charts, tables of numbers and the HTML report.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sextant/chart/chart.h"
#include "sextant/lab/report/findings.h"

namespace sextant::lab {

struct NamedChart {
  std::string file;  // without folder and extension
  chart::LineChart chart;
};

// For trained methods: loss by length (sliding and all bytes), loss by position, retrieval by
// distance and by length, scores by distance, and training loss by bytes read. For methods that
// use other methods' weights, together with those other methods: sliding loss by length, loss by
// position, scores by distance, retrieval by distance and by length; for those with dropped
// channels sliding loss by length. More than ten methods are split over several charts of a kind,
// named NAME, NAME-2, ... and sorted by change, smallest first, with those that have not learned
// the text last. A line of such a method is marked "(not learned)".
std::vector<NamedChart> charts(const Findings& findings);

inline constexpr const char* kReportFile = "report.html";
inline constexpr const char* kResultsFile = "results.json";
inline constexpr const char* kCommandFile = "command.txt";  // the command line, for later reports

// Writes all files of a survey: results.json, results.csv, summary.csv, report.html, and charts and
// maps/ as SVG and PNG. Without a PNG converter no PNG is written, and a line on standard error
// says so. `status` marks a report of an unfinished survey, see page.h.
void write_results(const std::filesystem::path& directory, const nlohmann::json& manifest,
                   const Findings& findings, const std::string& command,
                   const std::string& status = "");

// Writes report.html alone; a survey calls it while it runs.
void write_report(const std::filesystem::path& directory, const nlohmann::json& manifest,
                  const Findings& findings, const std::string& command, const std::string& status);

// Returns whether the files exist and show these findings with this status.
bool is_written(const std::filesystem::path& directory, const nlohmann::json& manifest,
                const Findings& findings, const std::string& status);

// The content of results.json: the manifest, "arms", their "summary" over seeds, the "reference" of
// learning (or null), "verdicts" of the methods with results on text, and the checked "claims". It
// depends only on the manifest and the findings.
nlohmann::json results_json(const nlohmann::json& manifest, const Findings& findings);
std::string results_text(const nlohmann::json& manifest, const Findings& findings);

}  // namespace sextant::lab
