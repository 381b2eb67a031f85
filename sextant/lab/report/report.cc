// Tables, charts and the page are written from one set of findings; results.json is written last,
// as its presence marks a complete set. Charts of an earlier run of the folder are removed first.
#include "sextant/lab/report/report.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "sextant/base/error.h"
#include "sextant/chart/report.h"
#include "sextant/chart/text.h"
#include "sextant/files/read_file.h"
#include "sextant/files/write_file.h"
#include "sextant/lab/run/print.h"

namespace sextant::lab {
namespace {

namespace fs = std::filesystem;

constexpr const char* kKinds[] = {"sliding-by-length",
                                  "loss-by-length",
                                  "loss-by-position",
                                  "retrieval-by-distance",
                                  "retrieval-by-length",
                                  "direction-by-length",
                                  "training",
                                  "stretches-by-length",
                                  "stretches-by-position",
                                  "stretches-retrieval-by-distance",
                                  "stretches-retrieval-by-length",
                                  "lost-channels-by-length",
                                  "stretches-direction-by-length",
                                  "scores-by-distance",
                                  "stretches-scores-by-distance"};

// The folder of the maps; their file names contain method labels.
constexpr const char* kMapsFolder = "maps";

// Removes the charts of an earlier survey of this folder, which may have compared more methods.
void remove_charts(const fs::path& directory) {
  for (const std::string kind : kKinds) {
    for (int n = 1; n == 1 || fs::exists(directory / fmt::format("{}-{}.svg", kind, n)); ++n) {
      const std::string stem = n == 1 ? kind : fmt::format("{}-{}", kind, n);
      for (const char* ending : {"svg", "png"}) fs::remove(directory / (stem + "." + ending));
    }
  }
  fs::remove_all(directory / kMapsFolder);
}

// Writes a chart or a map.
void write_picture(const auto& picture, const fs::path& stem, bool& can_png) {
  constexpr std::array<chart::Format, 1> kSvg{chart::Format::kSvg}, kPng{chart::Format::kPng};
  chart::write_figure(picture, stem, kSvg);
  if (!can_png) return;
  try {
    chart::write_figure(picture, stem, kPng);
  } catch (const CannotWrite&) {
    throw;  // the following files would fail, too
  } catch (const Error& error) {
    can_png = false;
    note(fmt::format("charts are written as SVG only: {}", error.what()));
  }
}

nlohmann::json reference_json(const Findings& findings) {
  if (!findings.reference) return nullptr;
  return {{"name", findings.reference->name},
          {"loss", findings.reference->loss},
          {"margin", findings.reference->margin}};
}

nlohmann::json learned_json(Learned learned) {
  if (learned == Learned::kUnknown) return nullptr;
  return learned == Learned::kYes;
}

nlohmann::json verdicts_json(const Findings& findings) {
  nlohmann::json lines = nlohmann::json::array();
  for (const MethodResult& method : findings.methods) {
    if (method.seeds.empty() && method.diverged == 0) continue;
    lines.push_back({{"method", method.label},
                     {"verdict", name(method.verdict)},
                     {"text_learned", learned_json(method.text)},
                     {"small_task_learned", learned_json(method.retrieval)}});
  }
  return lines;
}

nlohmann::json claims_json(const Findings& findings) {
  nlohmann::json lines = nlohmann::json::array();
  for (const CheckedClaim& checked : findings.claims) {
    nlohmann::json arms = nlohmann::json::array({checked.method});
    if (!checked.other.empty()) arms.push_back(checked.other);
    lines.push_back({{"claim", checked.claim.text},
                     {"outcome", name(checked.outcome)},
                     {"arms", std::move(arms)},
                     {"measure", key(checked.claim.measure)},
                     {"side", name(checked.claim.side)},
                     {"bound", checked.claim.bound},
                     {"mean", checked.measured.interval.mean},
                     {"half_interval95", checked.measured.interval.half.value()},
                     {"over", words(checked).over}});
  }
  return lines;
}

struct LossMeasure {
  const char* name;
  Mean AtLength::*of_arm;
  MeanInterval LossMeans::*of_method;
};
constexpr std::array<LossMeasure, 4> kMeasures = {{
    {"loss", &AtLength::loss, &LossMeans::loss},
    {"sliding", &AtLength::sliding, &LossMeans::sliding},
    {"loss_change", &AtLength::loss_change, &LossMeans::loss_change},
    {"sliding_change", &AtLength::sliding_change, &LossMeans::sliding_change},
}};

// The measure of a small task.
const char* measure_of(Task task) { return task == Task::kDirection ? "direction" : "retrieval"; }

std::string arm_csv(const ArmResult& result, const Settings& settings) {
  const std::string arm = fmt::format("{},{}", chart::csv_field(result.arm.label), result.arm.seed);
  std::string csv;
  for (const AtLength& at : result.lengths) {
    for (const LossMeasure& measure : kMeasures) {
      const Mean& mean = at.*measure.of_arm;
      if (std::isnan(mean.value)) continue;  // not kept
      csv += fmt::format("{},{},{},,{}\n", arm, measure.name, at.length, mean.value);
      csv += fmt::format("{},{}_standard_error,{},,{}\n", arm, measure.name, at.length, mean.error);
    }
  }
  for (size_t bin = 0; bin < result.loss_at.size(); ++bin)
    csv += fmt::format("{},loss_at,{},{},{}\n", arm, settings.test.longest(),
                       static_cast<int64_t>(bin) * settings.test.bin, result.loss_at[bin]);
  for (const AttentionAt& at : result.attention) {
    csv += fmt::format("{},attention_entropy,{},{},{}\n", arm, at.length, at.layer, at.entropy);
    csv += fmt::format("{},attention_span,{},{},{}\n", arm, at.length, at.layer, at.span);
  }
  const std::string task = measure_of(small_task(settings));
  for (const AtDistance& at : result.retrieval) {
    csv += fmt::format("{},{},{},{},{}\n", arm, task, at.length, at.distance, at.accuracy.value);
    csv += fmt::format("{},{}_standard_error,{},{},{}\n", arm, task, at.length, at.distance,
                       at.accuracy.error);
  }
  const TrainingOptions training = training_of(settings, result.arm);
  const std::string measure = is_on_text(result.arm.task) ? "training" : task + "_training";
  for (size_t n = 0; n < result.train_loss.size(); ++n) {
    const int64_t bytes =
        static_cast<int64_t>(n + 1) * kTrainLossSteps * training.batch * training.length;
    csv +=
        fmt::format("{},{},{},{},{}\n", arm, measure, training.length, bytes, result.train_loss[n]);
  }
  return csv;
}

}  // namespace

nlohmann::json results_json(const nlohmann::json& manifest, const Findings& findings) {
  nlohmann::json json = manifest;
  json["arms"] = nlohmann::json::array();
  for (const ArmResult& result : findings.results) json["arms"].push_back(result);
  json["summary"] = nlohmann::json::array();
  for (const Summary& row : summary(findings)) {
    nlohmann::json line{{"method", row.method},
                        {"measure", row.measure},
                        {"length", row.length},
                        {"seeds", row.seeds},
                        {"mean", row.value.mean}};
    if (row.distance) line["distance"] = *row.distance;
    if (row.value.half) line["half_interval95"] = *row.value.half;
    json["summary"].push_back(std::move(line));
  }
  json["reference"] = reference_json(findings);
  json["verdicts"] = verdicts_json(findings);
  json["claims"] = claims_json(findings);
  return json;
}

std::string results_text(const nlohmann::json& manifest, const Findings& findings) {
  return results_json(manifest, findings).dump(2) + "\n";
}

void write_report(const fs::path& directory, const nlohmann::json& manifest,
                  const Findings& findings, const std::string& command, const std::string& status) {
  chart::write_report(report_page(manifest, findings, command, status), directory / kReportFile);
  write_file(directory / kCommandFile, command);
}

bool is_written(const fs::path& directory, const nlohmann::json& manifest, const Findings& findings,
                const std::string& status) {
  const fs::path page = directory / kReportFile, data = directory / kResultsFile;
  if (!fs::exists(page) || !fs::exists(data)) return false;
  const std::string html = read_file(page);
  const bool same_status = status.empty()
                               ? html.find("<p class=\"status\">") == std::string::npos
                               : html.find(chart::status_html(status)) != std::string::npos;
  return same_status && read_file(data) == results_text(manifest, findings);
}

void write_results(const fs::path& directory, const nlohmann::json& manifest,
                   const Findings& findings, const std::string& command,
                   const std::string& status) {
  write_file(directory / "results.csv", results_csv(findings));
  write_file(directory / "summary.csv", summary_csv(findings));
  remove_charts(directory);
  bool can_png = true;
  for (const NamedChart& named : charts(findings))
    write_picture(named.chart, directory / named.file, can_png);
  for (const NamedMap& named : maps(findings))
    write_picture(named.map, directory / kMapsFolder / named.file, can_png);
  write_report(directory, manifest, findings, command, status);
  // This file is written last: its presence marks a complete set of files.
  write_file(directory / kResultsFile, results_text(manifest, findings));
}

std::string results_csv(const Findings& findings) {
  std::string csv = "method,seed,measure,length,position,value\n";
  for (const ArmResult& result : findings.results) csv += arm_csv(result, findings.settings);
  return csv;
}

std::optional<MeanInterval LossMeans::*> loss_measure(const std::string& name) {
  for (const LossMeasure& one : kMeasures)
    if (name == one.name) return one.of_method;
  return {};
}

std::vector<Summary> summary(const Findings& findings) {
  std::vector<Summary> all;
  const int64_t trained = findings.settings.training.length;
  for (const MethodResult& method : findings.methods) {
    const auto add = [&](const char* measure, int64_t length, const MeanInterval& value) {
      all.push_back({.method = method.label,
                     .measure = measure,
                     .length = length,
                     .seeds = method.seeds.size(),
                     .value = value});
    };
    for (const LossMeans& at : method.losses) {
      for (const LossMeasure& measure : kMeasures)
        add(measure.name, at.length, at.*measure.of_method);
    }
    for (size_t n = 0; !method.base.empty() && n < method.changes.size(); ++n)
      add(kBaseChange, method.losses[n].length, method.changes[n]);
    if (method.to_reference) add("sliding_minus_reference", trained, *method.to_reference);
    if (method.lost) add("lost", trained, *method.lost);
    for (const AccuracyMean& at : method.accuracies) {
      add(measure_of(small_task(findings.settings)), at.length, at.accuracy);
      all.back().distance = at.distance;
      all.back().seeds = method.pairs.size();
    }
  }
  std::erase_if(all, [](const Summary& row) { return std::isnan(row.value.mean); });  // not kept
  return all;
}

std::string summary_csv(const Findings& findings) {
  std::string csv = "method,measure,length,distance,seeds,mean,half_interval95\n";
  for (const Summary& row : summary(findings))
    csv += fmt::format("{},{},{},{},{},{},{}\n", chart::csv_field(row.method), row.measure,
                       row.length, row.distance ? std::to_string(*row.distance) : "", row.seeds,
                       row.value.mean, row.value.half ? fmt::format("{}", *row.value.half) : "");
  return csv;
}

}  // namespace sextant::lab
