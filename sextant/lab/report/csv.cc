#include "sextant/lab/report/csv.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <utility>

namespace sextant::lab {
namespace {

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
  const std::string arm = fmt::format("{},{}", csv_field(result.arm.label), result.arm.seed);
  std::string csv;
  for (const AtLength& at : result.lengths) {
    for (const LossMeasure& measure : kMeasures) {
      const Mean& mean = at.*measure.of_arm;
      if (std::isnan(mean.value)) continue;  // not kept
      csv += fmt::format("{},{},{},,{}\n", arm, measure.name, at.length, mean.value);
      csv += fmt::format("{},{}_standard_error,{},,{}\n", arm, measure.name, at.length, mean.error);
    }
  }
  for (size_t bin = 0; bin < result.loss_at.size(); ++bin) {
    csv += fmt::format("{},loss_at,{},{},{}\n", arm, settings.test.longest(),
                       static_cast<int64_t>(bin) * settings.test.bin, result.loss_at[bin]);
  }
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

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + '"';
}

std::string results_csv(const Findings& findings) {
  std::string csv = "method,seed,measure,length,position,value\n";
  for (const ArmResult& result : findings.results) csv += arm_csv(result, findings.settings);
  return csv;
}

std::optional<MeanInterval LossMeans::*> loss_measure(const std::string& name) {
  for (const LossMeasure& one : kMeasures) {
    if (name == one.name) return one.of_method;
  }
  return {};
}

std::vector<Summary> summary(const Findings& findings) {
  std::vector<Summary> all;
  for (const MethodResult& method : findings.methods) {
    for (const LossMeans& at : method.losses) {
      for (const LossMeasure& measure : kMeasures) {
        all.push_back({.method = method.label,
                       .measure = measure.name,
                       .length = at.length,
                       .distance = {},
                       .seeds = method.seeds.size(),
                       .value = at.*measure.of_method});
      }
    }
    for (size_t n = 0; !method.base.empty() && n < method.changes.size(); ++n) {
      all.push_back({.method = method.label,
                     .measure = kBaseChange,
                     .length = method.losses[n].length,
                     .distance = {},
                     .seeds = method.seeds.size(),
                     .value = method.changes[n]});
    }
    if (method.to_reference) {
      all.push_back({.method = method.label,
                     .measure = "sliding_minus_reference",
                     .length = findings.settings.training.length,
                     .distance = {},
                     .seeds = method.seeds.size(),
                     .value = *method.to_reference});
    }
    if (method.lost) {
      all.push_back({.method = method.label,
                     .measure = "lost",
                     .length = findings.settings.training.length,
                     .distance = {},
                     .seeds = method.seeds.size(),
                     .value = *method.lost});
    }
    for (const AccuracyMean& at : method.accuracies) {
      all.push_back({.method = method.label,
                     .measure = measure_of(small_task(findings.settings)),
                     .length = at.length,
                     .distance = at.distance,
                     .seeds = method.pairs.size(),
                     .value = at.accuracy});
    }
  }
  std::erase_if(all, [](const Summary& row) { return std::isnan(row.value.mean); });  // not kept
  return all;
}

std::string summary_csv(const Findings& findings) {
  std::string csv = "method,measure,length,distance,seeds,mean,half_interval95\n";
  for (const Summary& row : summary(findings)) {
    csv += fmt::format("{},{},{},{},{},{},{}\n", csv_field(row.method), row.measure, row.length,
                       row.distance ? std::to_string(*row.distance) : "", row.seeds, row.value.mean,
                       row.value.half ? fmt::format("{}", *row.value.half) : "");
  }
  return csv;
}

}  // namespace sextant::lab
