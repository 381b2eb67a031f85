// The numbers of a survey as CSV.
#include <fmt/format.h>

#include <array>
#include <utility>

#include "sextant/lab/report/table.h"

namespace sextant::lab {
namespace {

constexpr std::array<std::pair<const char*, Mean AtLength::*>, 4> kMeasures = {{
    {"loss", &AtLength::loss},
    {"sliding", &AtLength::sliding},
    {"loss_change", &AtLength::loss_change},
    {"sliding_change", &AtLength::sliding_change},
}};

}  // namespace

std::string results_csv(std::span<const ArmResult> results, const Settings& settings) {
  std::string csv = "method,seed,measure,length,position,value\n";
  for (const ArmResult& result : results) {
    const std::string arm = fmt::format("{},{}", result.arm.label, result.arm.seed);
    for (const AtLength& at : result.lengths) {
      for (const auto& [measure, what] : kMeasures) {
        csv += fmt::format("{},{},{},,{}\n", arm, measure, at.length, (at.*what).value);
        csv +=
            fmt::format("{},{}_standard_error,{},,{}\n", arm, measure, at.length, (at.*what).error);
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
    for (const AtDistance& at : result.retrieval) {
      csv += fmt::format("{},retrieval,{},{},{}\n", arm, at.length, at.distance, at.accuracy.value);
      csv += fmt::format("{},retrieval_standard_error,{},{},{}\n", arm, at.length, at.distance,
                         at.accuracy.error);
    }
    const TrainingOptions training = training_of(settings, result.arm);
    const char* const measure = result.arm.task == Task::kPairs ? "retrieval_training" : "training";
    for (size_t n = 0; n < result.train_loss.size(); ++n) {
      const int64_t bytes =
          static_cast<int64_t>(n + 1) * kTrainLossSteps * training.batch * training.length;
      csv += fmt::format("{},{},{},{},{}\n", arm, measure, training.length, bytes,
                         result.train_loss[n]);
    }
  }
  return csv;
}

std::vector<Summary> summary(std::span<const MethodResult> methods) {
  std::vector<Summary> all;
  for (const MethodResult& method : methods) {
    for (size_t n = 0; !method.seeds.empty() && n < method.seeds.front().lengths.size(); ++n) {
      for (const auto& [measure, what] : kMeasures) {
        all.push_back({.method = method.label,
                       .measure = measure,
                       .length = method.seeds.front().lengths[n].length,
                       .distance = {},
                       .seeds = method.seeds.size(),
                       .value = method.at(what, n)});
      }
    }
    if (method.pairs.empty()) continue;
    for (const AtDistance& at : method.pairs.front().retrieval) {
      all.push_back({.method = method.label,
                     .measure = "retrieval",
                     .length = at.length,
                     .distance = at.distance,
                     .seeds = method.pairs.size(),
                     .value = method.found(at.length, at.distance).value_or(SeedMean{})});
    }
  }
  return all;
}

std::string summary_csv(std::span<const MethodResult> methods) {
  std::string csv = "method,measure,length,distance,seeds,mean,half_interval95\n";
  for (const Summary& row : summary(methods)) {
    csv += fmt::format("{},{},{},{},{},{},{}\n", row.method, row.measure, row.length,
                       row.distance ? std::to_string(*row.distance) : "", row.seeds, row.value.mean,
                       row.value.half ? fmt::format("{}", *row.value.half) : "");
  }
  return csv;
}

std::string speed(std::span<const ArmResult> results, const Settings& settings) {
  double seconds = 0, bytes = 0;
  for (const ArmResult& result : results) {
    if (result.train_seconds <= 0 || result.diverged || result.arm.task != Task::kText) continue;
    seconds += result.train_seconds;
    bytes += static_cast<double>(settings.training.steps() * settings.training.batch *
                                 settings.training.length);
  }
  return seconds > 0
             ? fmt::format("{:.1f} thousand bytes per second and worker", bytes / seconds / 1e3)
             : "";
}

}  // namespace sextant::lab
