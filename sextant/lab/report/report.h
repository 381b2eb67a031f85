// The files of a survey: charts, tables of numbers and the HTML report.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "sextant/chart/chart.h"
#include "sextant/lab/report/table.h"

namespace sextant::lab {

struct NamedChart {
  std::string file;  // without folder and ending
  chart::LineChart chart;
};

// Methods that were trained: loss by length (sliding and all bytes), loss by position, retrieval by
// distance and by length, loss by bytes read in training, scores by distance. Methods that read
// others' weights, beside these: loss by length and position, retrieval by distance. More than ten
// methods are split over several charts of a kind, those that hold first: NAME, NAME-2, ...
std::vector<NamedChart> charts(std::span<const MethodResult> methods, const Settings& settings);

inline constexpr const char* kReportFile = "report.html";

// Writes all files of a survey: results.json, results.csv, summary.csv, charts and maps/ as SVG and
// PNG, report.html. Without a PNG converter there are no PNGs, and a line on standard error says
// so. `status` marks a report of fewer arms than were asked for, see report_page.h.
void write_results(const std::filesystem::path& directory, const nlohmann::json& manifest,
                   std::span<const ArmResult> results, const Settings& settings,
                   const std::string& command, const std::string& status = "");

// Writes report.html alone, as a survey does while it runs.
void write_report(const std::filesystem::path& directory, const nlohmann::json& manifest,
                  std::span<const ArmResult> results, const Settings& settings,
                  const std::string& command, const std::string& status);

// Whether the files are there and show these results with this status.
bool is_written(const std::filesystem::path& directory, const nlohmann::json& manifest,
                std::span<const ArmResult> results, const std::string& status);

// The content of results.json: the manifest, "arms" and their "summary" over seeds. It is a
// function of the manifest and the results only.
nlohmann::json results_json(const nlohmann::json& manifest, std::span<const ArmResult> results);
std::string results_text(const nlohmann::json& manifest, std::span<const ArmResult> results);

}  // namespace sextant::lab
