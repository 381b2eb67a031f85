// Charts and the HTML report of a survey.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "sextant/chart/chart.h"
#include "sextant/lab/table.h"

namespace sextant::lab {

struct NamedChart {
  std::string file;  // without folder and ending
  chart::LineChart chart;
};

// Of methods that were trained: loss by length (sliding and all bytes), loss by position, retrieval by distance
// and by length, loss by bytes read in training, scores by distance. Of those that read others' weights, beside these: loss by
// length and position, retrieval by distance. More than ten methods are parted over several charts of a kind, those that hold first: NAME, NAME-2, ...
std::vector<NamedChart> charts(std::span<const MethodResult> methods, const Settings& settings);

// Everything that a survey leaves: results.json, results.csv, summary.csv, charts and maps/
// as SVG and PNG, report.html.
// Without a PNG converter there are no PNGs, and a line on standard error says so.
void write_results(const std::filesystem::path& directory, const nlohmann::json& manifest,
                   std::span<const ArmResult> results, const Settings& settings,
                   const std::string& command);

// The content of results.json: the manifest, "arms" and their "summary" over seeds. It is a function of the manifest and the results only.
nlohmann::json results_json(const nlohmann::json& manifest, std::span<const ArmResult> results);

}  // namespace sextant::lab
