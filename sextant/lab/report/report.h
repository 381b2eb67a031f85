// The output files of a survey: charts, maps, tables of numbers and the HTML report, which has the
// answer and a chart first, then tables, claims, charts, maps and settings.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sextant/chart/chart.h"
#include "sextant/chart/report.h"
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
// says so. `status` marks a report of an unfinished survey (status_of).
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

// "method,seed,measure,length,position,value": every number of every arm. position is the first
// position of a bin; the bytes read for "training", the distance for "retrieval" and "direction",
// the layer for "attention_...".
std::string results_csv(const Findings& findings);

inline constexpr const char* kBaseChange = "base_change";

// One measure of one method over its seeds: those of AtLength, "retrieval" or "direction", and
// "lost" of a method with dropped channels (MethodResult::lost).
struct Summary {
  std::string method, measure;
  int64_t length = 0;
  std::optional<int64_t> distance = {};  // of the small task
  size_t seeds = 0;
  MeanInterval value;
};
// kBaseChange, of a method with a base such as a stretch, is the sliding loss minus the base's at
// L. "sliding_minus_reference" is the loss at L minus that of the reference of learning
// (findings.h).
std::vector<Summary> summary(const Findings& findings);

// The mean that "loss", "sliding", "loss_change" or "sliding_change" names; nullopt for others.
std::optional<MeanInterval LossMeans::*> loss_measure(const std::string& name);

// "method,measure,length,distance,seeds,mean,half_interval95"
std::string summary_csv(const Findings& findings);

// A figure of encodings: position vectors, their products, or attention.
struct NamedMap {
  std::string file;  // without folder and extension
  chart::HeatMap map;
};

// Attention of the last L/2 bytes of windows by distance, all methods in one map: one map at the
// training length L and one at the longest length. For each trained method also its position
// vectors and their cosines, the products of these vectors by layer and head, and its attention
// over a sequence of the longest length. Maps that are missing from results of older versions are
// left out.
std::vector<NamedMap> maps(const Findings& findings);

// The marker at L of an axis of lengths, distances or positions.
std::vector<chart::Marker> training_length(int64_t length);

// Scores by distance, relative to the score at distance 0: one line per method for the mean over
// heads, with a band from the lowest head to the highest. Methods that do not change scores have no
// line.
chart::LineChart scores_by_distance(std::span<const MethodResult* const> methods,
                                    const Settings& settings);
bool has_scores(const MethodResult& method);

// The HTML report. `status` marks a report of an unfinished survey (status_of); it is empty for a
// complete one. `date` is that of the newest result; it may be empty.
chart::Report report_page(const nlohmann::json& manifest, const Findings& findings,
                          const std::string& command, const std::string& status,
                          const std::string& date = "");

// The claims of the literature that the surveys have checked: their number by subject and outcome,
// and a table with a row for each. With several surveys a column has their lengths, if these
// differ, and equal rows of two surveys are one. `question`: only claims on the open question whose
// slug begins with it ("why-10000"), without numbers; empty: all. The section has no blocks without
// claims.
chart::Section claims_section(std::span<const Findings* const> surveys,
                              const std::string& question = "");

// Adds the leaves of an object, by their paths, without those that are null.
void add_settings(const nlohmann::json& object, chart::NamedValues& out);

// "3 of 42 arms so far"; empty if all arms are done.
std::string status_of(size_t done, size_t arms);

// "layers: 3, width: 128, heads: 4, 623 488 to 919 424 parameters": the text models.
std::string size_words(const Findings& findings);
// "11 h 24 min" of all trainings and tests; empty if unknown.
std::string time_words(const Findings& findings);

// "17.1 thousand bytes per second and worker"; empty if nothing was trained.
std::string speed(const Findings& findings);

}  // namespace sextant::lab
