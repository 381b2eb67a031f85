// The line charts of a survey.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>
#include <utility>

#include "sextant/lab/data/retrieval_task.h"
#include "sextant/lab/report/report.h"

namespace sextant::lab {
namespace {

using chart::LineChart;
using chart::Scale;
using chart::Series;

// A chart with more lines is hard to read.
constexpr size_t kLinesPerChart = 10;

using Part = std::vector<const MethodResult*>;

// Splits methods that do not fit in one chart into parts of nearly equal size, sorted by change;
// methods that have not learned the text come last.
std::vector<Part> parts_of(Part drawn) {
  const size_t parts = (drawn.size() + kLinesPerChart - 1) / kLinesPerChart;
  if (parts > 1) {
    std::ranges::stable_sort(drawn, {}, [](const MethodResult* one) {
      return std::pair(one->text == Learned::kNo, one->change.mean);
    });
  }
  std::vector<Part> result(parts);
  for (size_t n = 0; n < drawn.size(); ++n) result[n * parts / drawn.size()].push_back(drawn[n]);
  return result;
}

// The methods with results on text that `wanted` accepts.
Part drawn_of(const Findings& findings, const auto& wanted) {
  Part drawn;
  for (const MethodResult& method : findings.methods)
    if (!method.seeds.empty() && wanted(method)) drawn.push_back(&method);
  return drawn;
}

Part only(const Part& methods, const auto& wanted) {
  Part result;
  std::ranges::copy_if(methods, std::back_inserter(result),
                       [&](const MethodResult* method) { return wanted(*method); });
  return result;
}

bool is_asked(const MethodResult& method) { return !method.pairs.empty(); }

// A line: the mean over seeds at each x that has one, with its 95 % interval as a band.
Series series(const std::string& name, const std::vector<double>& x, const auto& mean_at) {
  Series line{.name = name};
  for (size_t n = 0; n < x.size(); ++n) {
    const MeanInterval mean = mean_at(n);
    if (std::isnan(mean.mean)) continue;  // not kept (survey_record.h)
    line.x.push_back(x[n]);
    line.y.push_back(mean.mean);
    if (mean.half) {
      line.low.push_back(mean.low());
      line.high.push_back(mean.high());
    }
  }
  return line;
}

// The name of a line: the method's label, marked if it has not learned the task.
std::string line_name(const MethodResult& method, Learned task) {
  return method.label + (task == Learned::kNo ? " (not learned)" : "");
}

std::string held_fixed(const Settings& settings) {
  return fmt::format("{} layer{} of width {}, trained on {} bytes at length {}",
                     settings.model.layers, settings.model.layers == 1 ? "" : "s",
                     settings.model.width, settings.training.bytes, settings.training.length);
}

LineChart loss_by_length(const Part& methods, const Settings& settings,
                         MeanInterval LossMeans::*loss, const std::string& title) {
  LineChart chart{.title = title,
                  .subtitle = held_fixed(settings),
                  .x = {.label = "length of the sequence", .unit = "bytes", .scale = Scale::kLog2},
                  .y = {.label = "loss", .unit = "nats per byte"},
                  .markers = training_length(settings.training.length)};
  const std::vector<double> lengths(settings.test.lengths.begin(), settings.test.lengths.end());
  for (const MethodResult* const method : methods)
    chart.series.push_back(series(line_name(*method, method->text), lengths,
                                  [&](size_t n) { return method->losses.at(n).*loss; }));
  return chart;
}

LineChart loss_by_position(const Part& methods, const Settings& settings) {
  LineChart chart{
      .title = "Loss by position",
      .subtitle = held_fixed(settings) + fmt::format(", means of {} positions", settings.test.bin),
      .x = {.label = "position in the text", .unit = "bytes"},
      .y = {.label = "loss", .unit = "nats per byte"},
      .markers = training_length(settings.training.length)};
  std::vector<double> middles;
  for (int64_t first = 0; first < settings.test.longest(); first += settings.test.bin)
    middles.push_back(static_cast<double>(first) + static_cast<double>(settings.test.bin) / 2);
  for (const MethodResult* const method : methods) {
    chart.series.push_back(series(line_name(*method, method->text), middles, [&](size_t n) {
      return n < method->loss_at.size() ? method->loss_at[n] : MeanInterval{.mean = NAN};
    }));
  }
  return chart;
}

LineChart training(const Part& methods, const Settings& settings) {
  LineChart chart{
      .title = "Training",
      .subtitle = held_fixed(settings) + fmt::format(", means of {} steps", kTrainLossSteps),
      .x = {.label = "bytes read"},
      .y = {.label = "training loss", .unit = "nats per byte"}};
  const auto bytes_per_mean =
      static_cast<double>(kTrainLossSteps * settings.training.batch * settings.training.length);
  for (const MethodResult* const method : methods) {
    std::vector<double> bytes;
    for (size_t n = 0; n < method->train_loss.size(); ++n)
      bytes.push_back(bytes_per_mean * static_cast<double>(n + 1));
    chart.series.push_back(series(line_name(*method, method->text), bytes,
                                  [&](size_t n) { return method->train_loss[n]; }));
  }
  return chart;
}

// A line of accuracies for each method, at places on a logarithmic axis of tokens.
LineChart small_task_chart(const Part& methods, const Settings& settings, LineChart chart,
                           const std::vector<int64_t>& places, const auto& accuracy_at) {
  chart.x.unit = "tokens";
  chart.x.scale = Scale::kLog2;
  chart.y.low = 0;
  chart.y.high = 1;
  chart.markers = training_length(settings.retrieval.length);
  const std::vector<double> x(places.begin(), places.end());
  for (const MethodResult* const method : methods) {
    chart.series.push_back(series(line_name(*method, method->retrieval), x, [&](size_t n) {
      return accuracy_at(*method, places[n]).value_or(MeanInterval{.mean = NAN});
    }));
  }
  return chart;
}

LineChart retrieval_chart(const Settings& settings, const std::string& title, const char* x) {
  return {
      .title = title,
      .subtitle = fmt::format("trained to find pairs in sequences of {} tokens; {:.2f} by chance",
                              settings.retrieval.length, 1.0 / kPairValues),
      .x = {.label = x},
      .y = {.label = "share of pairs found"}};
}

LineChart retrieval_by_distance(const Part& methods, const Settings& settings) {
  const int64_t length = settings.retrieval.longest();
  return small_task_chart(
      methods, settings,
      retrieval_chart(settings, fmt::format("Retrieval by distance in texts of {} tokens", length),
                      "distance from question to pair"),
      distances_in(length, settings.retrieval), [=](const MethodResult& method, int64_t distance) {
        return method.accuracy_at(length, distance);
      });
}

LineChart retrieval_by_length(const Part& methods, const Settings& settings) {
  const RetrievalOptions& options = settings.retrieval;
  return small_task_chart(
      methods, settings,
      retrieval_chart(settings, "Retrieval at the beginning of texts, by length",
                      "length of the sequence"),
      options.lengths, [&](const MethodResult& method, int64_t length) {
        return method.accuracy_at(length, far_distance(length, options));
      });
}

LineChart direction_by_length(const Part& methods, const Settings& settings) {
  const RetrievalOptions& options = settings.retrieval;
  return small_task_chart(
      methods, settings,
      {.title = "Direction: marks tagged by what stands on their left",
       .subtitle = fmt::format(
           "trained in sequences of {} tokens; at most 0.50 without a sense of direction",
           options.length),
       .x = {.label = "length of the sequence"},
       .y = {.label = "share of marks tagged right"}},
      options.lengths,
      [](const MethodResult& method, int64_t length) { return method.mean_accuracy_at(length); });
}

// Appends a chart of each part of these methods.
void add(std::vector<NamedChart>& charts, const std::string& kind, const Part& drawn,
         const auto& chart_of) {
  const std::vector<Part> parts = parts_of(drawn);
  for (size_t n = 0; n < parts.size(); ++n) {
    NamedChart named{.file = kind, .chart = chart_of(parts[n])};
    if (n > 0) named.file += fmt::format("-{}", n + 1);
    if (parts.size() > 1) named.chart.title += fmt::format(" ({} of {})", n + 1, parts.size());
    charts.push_back(std::move(named));
  }
}

LineChart sliding_by_length(const Part& methods, const Settings& settings) {
  return loss_by_length(methods, settings, &LossMeans::sliding,
                        fmt::format("Loss of the {} by length", scored_bytes(settings)));
}

LineChart loss_in_pieces(const Part& methods, const Settings& settings) {
  return loss_by_length(methods, settings, &LossMeans::loss, "Loss by length, in pieces");
}

// Charts of trained methods, or of stretches with the methods that they stretch.
void add_all(std::vector<NamedChart>& charts, const Part& methods, const Settings& settings,
             bool stretches) {
  const auto add_kind = [&](std::string kind, const Part& drawn, const auto& chart_of) {
    if (kind == "sliding-by-length" && stretches) kind = "by-length";
    if (kind == "loss-by-position" && stretches) kind = "by-position";
    add(charts, (stretches ? "stretches-" : "") + kind, drawn, [&](const Part& part) {
      LineChart chart = chart_of(part, settings);
      if (stretches) chart.title = "Stretches: " + chart.title;
      return chart;
    });
  };
  const Part asked = only(methods, is_asked);
  add_kind("sliding-by-length", methods, sliding_by_length);
  if (!stretches) add_kind("loss-by-length", methods, loss_in_pieces);
  add_kind("loss-by-position", methods, loss_by_position);
  if (settings.objective == Objective::kMasked) {
    add_kind("direction-by-length", asked, direction_by_length);
  } else {
    add_kind("retrieval-by-distance", asked, retrieval_by_distance);
    add_kind("retrieval-by-length", asked, retrieval_by_length);
  }
  add_kind("scores-by-distance", only(methods, has_scores), scores_by_distance);
  if (!stretches) add_kind("training", methods, training);
}

}  // namespace

std::vector<NamedChart> charts(const Findings& findings) {
  std::vector<NamedChart> result;
  const Part trained =
      drawn_of(findings, [](const MethodResult& method) { return method.base.empty(); });
  add_all(result, trained, findings.settings, /*stretches=*/false);
  // Stretches, together with the methods whose weights they use.
  const Part stretches = drawn_of(findings, [](const MethodResult& method) {
    return (!method.base.empty() && method.drop_channels == 0) || method.is_base;
  });
  if (stretches.size() >= 2) add_all(result, stretches, findings.settings, /*stretches=*/true);
  const Part lost = drawn_of(findings, [&](const MethodResult& method) {
    return method.drop_channels > 0 ||
           std::ranges::any_of(findings.methods, [&](const MethodResult& other) {
             return other.drop_channels > 0 && other.base == method.label;
           });
  });
  add(result, "lost-channels-by-length", lost, [&](const Part& part) {
    LineChart chart = sliding_by_length(part, findings.settings);
    chart.title = "Lost channels: " + chart.title;
    return chart;
  });
  for (NamedChart& one : result) {
    one.chart.name = one.file;
    std::erase_if(one.chart.series, [](const Series& line) { return line.y.empty(); });
  }
  std::erase_if(result, [](const NamedChart& one) { return one.chart.series.empty(); });
  return result;
}

}  // namespace sextant::lab
