// The line charts of a survey.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>

#include "sextant/lab/data/retrieval_task.h"
#include "sextant/lab/report/pictures.h"
#include "sextant/lab/report/report.h"

namespace sextant::lab {
namespace {

using chart::LineChart;
using chart::Scale;
using chart::Series;

// A chart with more lines is hard to read.
constexpr size_t kLinesPerChart = 10;

using Part = std::vector<MethodResult>;

// Splits methods that do not fit in one chart into parts of nearly equal size, sorted by change.
std::vector<Part> parts_of(Part drawn, std::span<const MethodResult> methods,
                           const Settings& settings) {
  const size_t parts = (drawn.size() + kLinesPerChart - 1) / kLinesPerChart;
  if (parts > 1) {
    std::ranges::stable_sort(drawn, {}, [&](const MethodResult& method) {
      return change(method, methods, settings).mean;
    });
  }
  std::vector<Part> result(parts);
  for (size_t n = 0; n < drawn.size(); ++n) result[n * parts / drawn.size()].push_back(drawn[n]);
  return result;
}

Part those(std::span<const MethodResult> methods, const auto& wanted) {
  Part result;
  std::ranges::copy_if(methods, std::back_inserter(result), [&](const MethodResult& method) {
    return !method.seeds.empty() && wanted(method);
  });
  return result;
}

// A line: the mean over seeds at each x, with its 95 % interval as a band.
Series series(const std::string& name, std::span<const ArmResult> seeds, std::vector<double> x,
              const auto& values_at) {
  Series line{.name = name, .x = std::move(x)};
  for (size_t n = 0; n < line.x.size(); ++n) {
    std::vector<double> values;
    for (const ArmResult& seed : seeds) values.push_back(values_at(seed, n));
    const auto over_seeds = seed_mean(values);
    line.y.push_back(over_seeds.mean);
    if (over_seeds.half) {
      line.low.push_back(over_seeds.mean - *over_seeds.half);
      line.high.push_back(over_seeds.mean + *over_seeds.half);
    }
  }
  return line;
}

std::string held_fixed(const Settings& settings) {
  return fmt::format("{} layer{} of width {}, trained on {} bytes at length {}",
                     settings.model.layers, settings.model.layers == 1 ? "" : "s",
                     settings.model.width, settings.training.bytes, settings.training.length);
}

LineChart loss_by_length(std::span<const MethodResult> methods, const Settings& settings,
                         Mean AtLength::*what, const std::string& title) {
  LineChart chart{.title = title,
                  .subtitle = held_fixed(settings),
                  .x = {.label = "length of the sequence", .unit = "bytes", .scale = Scale::kLog2},
                  .y = {.label = "loss", .unit = "nats per byte"},
                  .markers = {{.x = static_cast<double>(settings.training.length),
                               .label = "training length"}}};
  const std::vector<double> lengths(settings.test.lengths.begin(), settings.test.lengths.end());
  for (const MethodResult& method : methods) {
    chart.series.push_back(
        series(method.label, method.seeds, lengths,
               [&](const ArmResult& seed, size_t n) { return (seed.lengths.at(n).*what).value; }));
  }
  return chart;
}

LineChart loss_by_position(std::span<const MethodResult> methods, const Settings& settings,
                           const std::string& title) {
  LineChart chart{
      .title = title,
      .subtitle = held_fixed(settings) + fmt::format(", means of {} positions", settings.test.bin),
      .x = {.label = "position in the text", .unit = "bytes"},
      .y = {.label = "loss", .unit = "nats per byte"},
      .markers = {
          {.x = static_cast<double>(settings.training.length), .label = "training length"}}};
  std::vector<double> middles;
  for (int64_t first = 0; first < settings.test.longest(); first += settings.test.bin) {
    middles.push_back(static_cast<double>(first) + static_cast<double>(settings.test.bin) / 2);
  }
  for (const MethodResult& method : methods) {
    chart.series.push_back(
        series(method.label, method.seeds, middles,
               [](const ArmResult& seed, size_t n) { return seed.loss_at.at(n); }));
  }
  return chart;
}

LineChart training(std::span<const MethodResult> methods, const Settings& settings) {
  LineChart chart{
      .title = "Training",
      .subtitle = held_fixed(settings) + fmt::format(", means of {} steps", kTrainLossSteps),
      .x = {.label = "bytes read"},
      .y = {.label = "training loss", .unit = "nats per byte"}};
  const auto bytes_per_mean =
      static_cast<double>(kTrainLossSteps * settings.training.batch * settings.training.length);
  for (const MethodResult& method : methods) {
    std::vector<double> bytes;
    for (size_t n = 0; n < method.seeds.front().train_loss.size(); ++n) {
      bytes.push_back(bytes_per_mean * static_cast<double>(n + 1));
    }
    chart.series.push_back(
        series(method.label, method.seeds, bytes,
               [](const ArmResult& seed, size_t n) { return seed.train_loss.at(n); }));
  }
  return chart;
}

// The retrieval accuracy of an arm at this length and distance.
double found_at(const ArmResult& seed, const AtDistance& asked) {
  for (const AtDistance& at : seed.retrieval) {
    if (at.length == asked.length && at.distance == asked.distance) return at.accuracy.value;
  }
  return NAN;
}

LineChart retrieval_chart(std::span<const MethodResult> methods, const Settings& settings,
                          const std::string& title, const chart::Axis& x,
                          const std::vector<AtDistance>& asked, const auto& x_of) {
  const RetrievalOptions& options = settings.retrieval;
  LineChart chart{
      .title = title,
      .subtitle = fmt::format("trained to find pairs in sequences of {} tokens; {:.2f} by chance",
                              options.length, 1.0 / kPairValues),
      .x = x,
      .y = {.label = "share of pairs found", .low = 0, .high = 1},
      .markers = {{.x = static_cast<double>(options.length), .label = "training length"}}};
  std::vector<double> places;
  places.reserve(asked.size());
  for (const AtDistance& at : asked) places.push_back(static_cast<double>(x_of(at)));
  for (const MethodResult& method : methods) {
    chart.series.push_back(
        series(method.label, method.pairs, places,
               [&](const ArmResult& seed, size_t n) { return found_at(seed, asked[n]); }));
  }
  return chart;
}

LineChart retrieval_by_distance(std::span<const MethodResult> methods, const Settings& settings,
                                int64_t length) {
  std::vector<AtDistance> asked;
  for (const int64_t distance : distances_in(length, settings.retrieval)) {
    asked.push_back({.length = length, .distance = distance, .accuracy = {}});
  }
  return retrieval_chart(
      methods, settings, fmt::format("Retrieval by distance in texts of {} tokens", length),
      {.label = "distance from question to pair", .unit = "tokens", .scale = Scale::kLog2}, asked,
      [](const AtDistance& at) { return at.distance; });
}

LineChart retrieval_by_length(std::span<const MethodResult> methods, const Settings& settings) {
  const RetrievalOptions& options = settings.retrieval;
  std::vector<AtDistance> asked;
  for (const int64_t length : options.lengths) {
    asked.push_back({.length = length, .distance = far_distance(length, options), .accuracy = {}});
  }
  return retrieval_chart(
      methods, settings, "Retrieval at the beginning of texts, by length",
      {.label = "length of the sequence", .unit = "tokens", .scale = Scale::kLog2}, asked,
      [](const AtDistance& at) { return at.length; });
}

}  // namespace

std::vector<NamedChart> charts(std::span<const MethodResult> methods, const Settings& settings) {
  std::vector<NamedChart> result;
  const auto add = [&](std::string_view kind, const Part& drawn, const auto& chart_of) {
    const std::vector<Part> parts = parts_of(drawn, methods, settings);
    for (size_t n = 0; n < parts.size(); ++n) {
      NamedChart named{.file = std::string(kind), .chart = chart_of(parts[n])};
      if (n > 0) named.file += fmt::format("-{}", n + 1);
      if (parts.size() > 1) named.chart.title += fmt::format(" ({} of {})", n + 1, parts.size());
      result.push_back(std::move(named));
    }
  };
  const Part trained =
      those(methods, [](const MethodResult& method) { return method.reads.empty(); });
  const Part asked =
      those(trained, [](const MethodResult& method) { return !method.pairs.empty(); });
  const std::string tail =
      fmt::format("Loss of the last {} bytes by length", settings.training.length / 2);
  add("sliding-by-length", trained,
      [&](const Part& part) { return loss_by_length(part, settings, &AtLength::sliding, tail); });
  add("loss-by-length", trained, [&](const Part& part) {
    return loss_by_length(part, settings, &AtLength::loss, "Loss by length, all bytes");
  });
  add("loss-by-position", trained,
      [&](const Part& part) { return loss_by_position(part, settings, "Loss by position"); });
  add("retrieval-by-distance", asked, [&](const Part& part) {
    return retrieval_by_distance(part, settings, settings.retrieval.longest());
  });
  add("retrieval-by-length", asked,
      [&](const Part& part) { return retrieval_by_length(part, settings); });
  add("scores-by-distance", those(trained, has_scores), [&](const Part& part) {
    return scores_by_distance(part, settings, "What distance does to scores");
  });
  add("training", trained, [&](const Part& part) { return training(part, settings); });

  // Methods that read other methods' weights, together with those other methods.
  const Part read = those(methods, [&](const MethodResult& method) {
    return !method.reads.empty() ||
           std::ranges::find(methods, method.label, &MethodResult::reads) != methods.end();
  });
  if (read.size() < 2) return result;
  const Part read_asked =
      those(read, [](const MethodResult& method) { return !method.pairs.empty(); });
  add("stretches-by-length", read, [&](const Part& part) {
    return loss_by_length(part, settings, &AtLength::sliding, "Stretches: " + tail);
  });
  add("stretches-by-position", read, [&](const Part& part) {
    return loss_by_position(part, settings, "Stretches: loss by position");
  });
  add("stretches-scores-by-distance", those(read, has_scores), [&](const Part& part) {
    return scores_by_distance(part, settings, "Stretches: what distance does to scores");
  });
  add("stretches-retrieval-by-distance", read_asked, [&](const Part& part) {
    LineChart chart = retrieval_by_distance(part, settings, settings.retrieval.longest());
    chart.title = "Stretches: " + chart.title;
    return chart;
  });
  return result;
}

}  // namespace sextant::lab
