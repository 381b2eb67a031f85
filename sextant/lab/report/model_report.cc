// One model, then the candidates of an extension: charts, a table in text, and JSON, each from the
// same measured values.
#include "sextant/lab/report/model_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sextant/lab/result/interval.h"

namespace sextant::lab {
namespace {

using chart::LineChart;
using chart::Series;
using nlohmann::json;

// A chart with more lines is hard to read.
constexpr size_t kLines = 10;

json mean_json(const Mean& mean) { return {{"mean", mean.value}, {"standard_error", mean.error}}; }

json loss_json(const Mean& mean) {
  json object = mean_json(mean);
  object["perplexity"] = std::exp(mean.value);
  return object;
}

// whole: with the change of the loss in pieces.
json lengths_json(const std::vector<AtLength>& lengths, bool whole) {
  json all = json::array();
  for (const AtLength& at : lengths) {
    json& one = all.emplace_back(json{{"length", at.length},
                                      {"loss", loss_json(at.loss)},
                                      {"sliding", loss_json(at.sliding)},
                                      {"sliding_change", mean_json(at.sliding_change)}});
    if (whole) one["loss_change"] = mean_json(at.loss_change);
  }
  return all;
}

// A line with a band of two standard errors on each side.
Series series(const std::string& name, const std::vector<AtLength>& lengths, Mean AtLength::*what) {
  Series line{.name = name};
  for (const AtLength& at : lengths) {
    const Mean& mean = at.*what;
    line.x.push_back(static_cast<double>(at.length));
    line.y.push_back(mean.value);
    line.low.push_back(mean.value - 2 * mean.error);
    line.high.push_back(mean.value + 2 * mean.error);
  }
  return line;
}

std::string unit_of(const ModelEvaluation& model) {
  return fmt::format("nats per {}{}", model.masked ? "masked " : "", model.unit);
}

// The training length, if it is known.
std::vector<chart::Marker> markers(const ModelEvaluation& model) {
  if (model.train_length == 0) return {};
  return {{.x = static_cast<double>(model.train_length), .label = "training length"}};
}

LineChart by_length(const ModelEvaluation& model, const std::string& title) {
  return {.title = title,
          .subtitle = fmt::format("{}, {} weights, {} blocks of {} {}s; bands: two standard errors",
                                  model.method, model.weights, model.blocks,
                                  model.lengths.back().length, model.unit),
          .x = {.label = "length of the sequence",
                .unit = model.unit + "s",
                .scale = chart::Scale::kLog2},
          .y = {.label = "loss", .unit = unit_of(model)},
          .markers = markers(model)};
}

std::string sliding_words(const ModelEvaluation& model) {
  if (model.masked)
    return fmt::format(
        "the middle {} bytes of each block, each masked once, in a window of each "
        "length around them",
        model.stride);
  return fmt::format("the last {} {}s of each block, at the end of a window of each length",
                     model.stride, model.unit);
}

bool is_checkpoint(const ModelEvaluation& model) { return model.unit == "token"; }

// A line on nats per byte, which models with other tokens are compared by; empty for models of
// bytes.
std::string per_byte(const ModelEvaluation& model) {
  if (!is_checkpoint(model)) return "";
  return fmt::format(
      "a token has {:.3f} bytes in the sliding windows: nats per byte are nats per token / "
      "{:.3f}.\n",
      model.bytes_per_token, model.bytes_per_token);
}

// The losses by position in the longest sequences; null if they were not measured.
json by_position_json(const ByPosition& positions) {
  if (positions.loss.empty()) return nullptr;
  json loss = json::array();
  for (const Mean& mean : positions.loss) loss.push_back(mean_json(mean));
  return {{"bin", positions.bin}, {"loss", loss}};
}

// Indices of the candidates, sorted by loss at the longest length, lowest first.
std::vector<size_t> by_loss(const Extension& extension) {
  std::vector<size_t> order(extension.candidates.size());
  for (size_t n = 0; n < order.size(); ++n) order[n] = n;
  std::ranges::stable_sort(
      order, {}, [&](size_t n) { return extension.candidates[n].lengths.back().sliding.value; });
  return order;
}

// Indices of the candidates to draw, sorted by loss at the longest length: the lowest ones, and
// always the recommended candidate and candidate 0, the unchanged model, for comparison.
std::vector<size_t> drawn(const Extension& extension, size_t best) {
  size_t others = kLines - (best == 0 ? 1 : 2);
  std::vector<size_t> candidates;
  for (const size_t n : by_loss(extension)) {
    const bool kept = n == 0 || n == best;
    if (!kept && others == 0) continue;
    if (!kept) --others;
    candidates.push_back(n);
  }
  return candidates;
}

}  // namespace

std::string table(const ModelEvaluation& model) {
  std::string text = fmt::format(
      "{}, {}; {} weights{}{}. Nats per {} ± standard error over {} blocks of {} {}s.\n\n",
      model.method,
      model.train_length > 0
          ? fmt::format("trained on sequences of {} {}s", model.train_length, model.unit)
          : "of an unknown length of training",
      model.weights,
      model.memory > 0 ? fmt::format(", a memory of {} positions", model.memory) : "",
      model.drop_channels > 0
          ? fmt::format("; channels of the added vector set to zero: {}", model.drop_channels)
          : "",
      model.unit, model.blocks, model.lengths.back().length, model.unit);
  text += fmt::format("{:>8} |{:>16}{:>12} |{:>16}{:>12}{:>10}\n", "", "whole text", "", "sliding",
                      "", "");
  text += fmt::format("{:>8} |{:>16}{:>12} |{:>16}{:>12}{:>10}\n", "length", "loss", "perplexity",
                      "loss", "perplexity", "change");
  for (const AtLength& at : model.lengths) {
    const auto cell = [](const Mean& mean) {
      return fmt::format("{:.3f} ± {:.3f}", mean.value, mean.error);
    };
    text += fmt::format("{:>8} |{:>17}{:>12.3f} |{:>17}{:>12.3f}{:>10}\n", at.length, cell(at.loss),
                        std::exp(at.loss.value), cell(at.sliding), std::exp(at.sliding.value),
                        signed_fixed(at.sliding_change.value));
  }
  text += is_checkpoint(model)
              ? std::string("\nwhole text: all tokens of the window of each length.\n")
              : fmt::format(
                    "\nwhole text: cut into pieces of each length that do not overlap, {} "
                    "scored.\n",
                    model.masked ? "one byte of seven" : "every byte");
  return text +
         fmt::format("sliding: {} (stride {}); change: against {}.\n", sliding_words(model),
                     model.stride, model.reference) +
         per_byte(model);
}

std::string json_text(const ModelEvaluation& model) {
  json out = {{"method", model.method},
              {"options", json::parse(model.options)},
              {"train_length", model.train_length},
              {"memory", model.memory},
              {"weights", model.weights},
              {"blocks", model.blocks},
              {"stride", model.stride},
              {"reference", model.reference},
              {"unit", unit_of(model)},
              {"lengths", lengths_json(model.lengths, true)}};
  if (is_checkpoint(model)) {
    out["bytes_per_token"] = model.bytes_per_token;
    out["by_position"] = by_position_json(model.by_position);
  }
  if (model.drop_channels > 0) {
    out["drop_channels"] = model.drop_channels;
    out["drop_seed"] = model.drop_seed;
  }
  return out.dump(2) + "\n";
}

LineChart chart_of(const ModelEvaluation& model) {
  LineChart chart = by_length(model, "Loss by length");
  chart.series = {series("whole text", model.lengths, &AtLength::loss),
                  series("sliding", model.lengths, &AtLength::sliding)};
  return chart;
}

std::string table(const Extension& extension) {
  const ModelEvaluation& model = extension.model;
  std::string text = fmt::format("Nats per {} on {} (stride {}), {} blocks.\n\n{:<18}", model.unit,
                                 sliding_words(model), model.stride, model.blocks, "candidate");
  for (const AtLength& at : model.lengths) text += fmt::format("{:>8}", at.length);
  text += fmt::format("{:>18}  {}\n", "behind the best", "config.json");
  for (const size_t n : by_loss(extension)) {
    const MeasuredCandidate& candidate = extension.candidates[n];
    text += fmt::format("{:<18}", candidate.candidate.name);
    for (const AtLength& at : candidate.lengths) text += fmt::format("{:>8.3f}", at.sliding.value);
    text += fmt::format(
        "{:>19}  {:<4} {}\n",
        fmt::format("{} ± {:.3f}", signed_fixed(candidate.behind.value), candidate.behind.error),
        candidate.candidate.in_hugging_face ? "yes" : "no", candidate.candidate.summary);
  }
  return text +
         fmt::format(
             "\nconfig.json: whether transformers has words for it. behind: at the longest "
             "length, on the same {}s.\nin each layer streaming and window see no further "
             "back than the training length.\n",
             model.unit) +
         per_byte(model);
}

std::string json_text(const Extension& extension, const Recommendation& recommendation) {
  json candidates = json::array();
  for (const size_t n : by_loss(extension)) {
    const MeasuredCandidate& candidate = extension.candidates[n];
    candidates.push_back({{"name", candidate.candidate.name},
                          {"summary", candidate.candidate.summary},
                          {"method", candidate.candidate.method},
                          {"options", json::parse(candidate.candidate.options)},
                          {"hugging_face", candidate.candidate.in_hugging_face},
                          {"behind", mean_json(candidate.behind)},
                          {"lengths", lengths_json(candidate.lengths, false)}});
    if (is_checkpoint(extension.model)) {
      candidates.back()["by_position"] = by_position_json(candidate.by_position);
      candidates.back()["seconds"] = candidate.seconds;
    }
  }
  json ties = json::array();
  for (const Recommendation::Tie& tie : recommendation.ties)
    ties.push_back({{"name", extension.candidates.at(tie.candidate).candidate.name},
                    {"behind", tie.behind.mean},
                    {"half_interval95", tie.behind.half.value()}});
  json out = {{"train_length", extension.model.train_length},
              {"weights", extension.model.weights},
              {"blocks", extension.model.blocks},
              {"stride", extension.model.stride},
              {"unit", unit_of(extension.model)},
              {"candidates", candidates},
              {"recommended", extension.candidates.at(recommendation.best).candidate.name},
              {"not_told_apart", ties},
              {"reason", recommendation.reason},
              {"recommended_hugging_face", nullptr}};
  if (is_checkpoint(extension.model)) out["bytes_per_token"] = extension.model.bytes_per_token;
  if (recommendation.writable)
    out["recommended_hugging_face"] =
        extension.candidates.at(*recommendation.writable).candidate.name;
  return out.dump(2) + "\n";
}

LineChart chart_of(const Extension& extension, const Recommendation& recommendation) {
  const ModelEvaluation& model = extension.model;
  LineChart chart = by_length(model, "A trained rope, read past its length");
  chart.subtitle = fmt::format("{}{} blocks, {}",
                               model.weights > 0 ? fmt::format("{} weights; ", model.weights) : "",
                               model.blocks, sliding_words(model));
  for (const size_t n : drawn(extension, recommendation.best)) {
    const MeasuredCandidate& candidate = extension.candidates[n];
    chart.series.push_back(series(candidate.candidate.name, candidate.lengths, &AtLength::sliding));
    // Block losses vary alike for all candidates: bands of this shared variation would hide that
    // the lines do not cross.
    chart.series.back().low.clear();
    chart.series.back().high.clear();
    chart.series.back().emphasis = n == recommendation.best;
  }
  return chart;
}

LineChart chart_by_position(const Extension& extension, const Recommendation& recommendation) {
  const ModelEvaluation& model = extension.model;
  LineChart chart{.title = "Loss by position",
                  .subtitle = fmt::format("sequences of {} {}s; {} blocks, means of {} positions",
                                          model.lengths.back().length, model.unit, model.blocks,
                                          model.by_position.bin),
                  .x = {.label = "position", .unit = model.unit + "s"},
                  .y = {.label = "loss", .unit = unit_of(model)},
                  .markers = markers(model)};
  for (const size_t n : drawn(extension, recommendation.best)) {
    const MeasuredCandidate& candidate = extension.candidates[n];
    Series line{.name = candidate.candidate.name, .emphasis = n == recommendation.best};
    for (size_t bin = 0; bin < candidate.by_position.loss.size(); ++bin) {
      line.x.push_back((static_cast<double>(bin) + 0.5) *
                       static_cast<double>(candidate.by_position.bin));
      line.y.push_back(candidate.by_position.loss[bin].value);
    }
    chart.series.push_back(std::move(line));
  }
  return chart;
}

}  // namespace sextant::lab
