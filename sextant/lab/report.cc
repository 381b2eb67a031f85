#include "sextant/lab/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <iterator>
#include <nlohmann/json.hpp>

#include "sextant/chart/report.h"
#include "sextant/chart/write_file.h"
#include "sextant/error.h"
#include "sextant/lab/claims.h"

namespace sextant::lab {
namespace {

namespace fs = std::filesystem;
using chart::LineChart;
using chart::Scale;
using chart::Series;

// Lines that can still be told apart in one chart.
constexpr size_t kLinesPerChart = 10;

// Those with something to draw; in several parts of nearly equal size, from those that hold to those that
// break, if they are too many for one.
std::vector<std::vector<MethodResult>> parts_of(std::span<const MethodResult> methods,
                                                const Settings& settings) {
  std::vector<MethodResult> drawn;
  std::ranges::copy_if(methods, std::back_inserter(drawn),
                       [](const MethodResult& method) { return !method.seeds.empty(); });
  const size_t parts = (drawn.size() + kLinesPerChart - 1) / kLinesPerChart;
  const size_t longest = settings.test.lengths.size() - 1;
  if (parts > 1) {
    std::ranges::stable_sort(drawn, {}, [&](const MethodResult& method) {
      return method.at(&AtLength::sliding_change, longest).mean;
    });
  }
  std::vector<std::vector<MethodResult>> result(parts);
  for (size_t n = 0; n < drawn.size(); ++n) result[n * parts / drawn.size()].push_back(drawn[n]);
  return result;
}

// One line: a method's mean over seeds at each x, with a band of one deviation.
Series series(const MethodResult& method, std::vector<double> x, const auto& values_at) {
  Series line{.name = method.label, .x = std::move(x)};
  for (size_t n = 0; n < line.x.size(); ++n) {
    std::vector<double> values;
    for (const ArmResult& seed : method.seeds) values.push_back(values_at(seed, n));
    const Spread over_seeds = spread(values);
    line.y.push_back(over_seeds.mean);
    if (over_seeds.deviation) {
      line.low.push_back(over_seeds.mean - *over_seeds.deviation);
      line.high.push_back(over_seeds.mean + *over_seeds.deviation);
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
                  .x = {.label = "length of the text", .unit = "bytes", .scale = Scale::kLog2},
                  .y = {.label = "loss", .unit = "nats per byte"},
                  .markers = {{.x = static_cast<double>(settings.training.length),
                               .label = "training length"}}};
  const std::vector<double> lengths(settings.test.lengths.begin(), settings.test.lengths.end());
  for (const MethodResult& method : methods) {
    chart.series.push_back(series(method, lengths, [&](const ArmResult& seed, size_t n) {
      return (seed.lengths.at(n).*what).value;
    }));
  }
  return chart;
}

LineChart loss_by_position(std::span<const MethodResult> methods, const Settings& settings) {
  LineChart chart{
      .title = "Loss by position",
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
    chart.series.push_back(series(
        method, middles, [](const ArmResult& seed, size_t n) { return seed.loss_at.at(n); }));
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
    // Those that are tested with another's weights were not trained.
    if (method.seeds.front().train_loss.empty()) continue;
    std::vector<double> bytes;
    for (size_t n = 0; n < method.seeds.front().train_loss.size(); ++n) {
      bytes.push_back(bytes_per_mean * static_cast<double>(n + 1));
    }
    chart.series.push_back(series(
        method, bytes, [](const ArmResult& seed, size_t n) { return seed.train_loss.at(n); }));
  }
  return chart;
}

chart::Tone tone(const std::string& verdict) {
  if (verdict == "holds") return chart::Tone::kGood;
  return verdict == "drifts" ? chart::Tone::kPlain : chart::Tone::kBad;
}

chart::Cell cell(const Spread& spread) {
  chart::Cell cell = chart::number(spread.mean, 3);
  if (spread.deviation) cell.text += fmt::format(" ±{:.3f}", *spread.deviation);
  return cell;
}

chart::Table table_of(std::span<const MethodResult> methods, const Settings& settings,
                      Mean AtLength::*loss, Mean AtLength::*change, std::string caption) {
  chart::Table table{.caption = std::move(caption), .columns = {{.name = "method", .unit = ""}}};
  for (const int64_t length : settings.test.lengths) {
    table.columns.push_back({.name = std::to_string(length), .unit = "nats per byte"});
  }
  table.columns.push_back(
      {.name = "change",
       .unit = fmt::format("{} minus {}", settings.test.longest(), settings.training.length)});
  const bool sliding = loss == &AtLength::sliding;
  if (sliding) table.columns.push_back({.name = "past its length", .unit = ""});
  for (const MethodResult& method : methods) {
    std::vector<chart::Cell> row{chart::words(method.label)};
    const size_t count = settings.test.lengths.size();
    for (size_t n = 0; n < count; ++n) {
      row.push_back(method.seeds.empty() ? chart::words("diverged", chart::Tone::kBad)
                                         : cell(method.at(loss, n)));
    }
    row.push_back(method.seeds.empty() ? chart::words("") : cell(method.at(change, count - 1)));
    const std::string word = verdict(method, settings);
    if (sliding) row.push_back(chart::words(word, tone(word)));
    table.rows.push_back(std::move(row));
  }
  return table;
}

chart::Table claims_table(std::span<const ClaimFound> claims) {
  chart::Table table{
      .caption =
          "Claims held against these numbers, with 95 % intervals: over seeds if there "
          "are several, else over the test text",
      .columns = {{.name = "claim", .unit = ""},
                  {.name = "here", .unit = ""},
                  {.name = "measured", .unit = ""},
                  {.name = "source", .unit = ""}}};
  for (const ClaimFound& claim : claims) {
    const chart::Tone tone = claim.finding == Finding::kHolds   ? chart::Tone::kGood
                             : claim.finding == Finding::kFails ? chart::Tone::kBad
                                                                : chart::Tone::kPlain;
    table.rows.push_back({chart::words(claim.claim), chart::words(name(claim.finding), tone),
                          chart::words(claim.numbers), chart::words(claim.source)});
  }
  return table;
}

void flatten(const nlohmann::json& value, const std::string& path, chart::Settings& out) {
  if (!value.is_object()) {
    out.items.emplace_back(path, value.is_string() ? value.get<std::string>() : value.dump());
    return;
  }
  for (const auto& item : value.items()) {
    flatten(item.value(), path.empty() ? item.key() : path + "." + item.key(), out);
  }
}

chart::Report report(const nlohmann::json& manifest, std::span<const ArmResult> results,
                     std::span<const MethodResult> methods, const Settings& settings,
                     const std::string& command) {
  const int64_t length = settings.training.length;
  chart::Report report;
  report.title = fmt::format("Trained at {}, read at {}", length, settings.test.longest());
  report.lead = fmt::format(
      "A small transformer was trained on texts of {} bytes once with each position encoding, and "
      "then "
      "read texts of up to {}. Loss is in nats per byte; lower is better.",
      length, settings.test.longest());
  chart::Section found{.heading = "What came out", .blocks = {}};
  found.blocks.emplace_back(table_of(
      methods, settings, &AtLength::sliding, &AtLength::sliding_change,
      fmt::format("The last {} bytes of a window of each length: the same bytes, ever more context",
                  length / 2)));
  found.blocks.emplace_back(table_of(methods, settings, &AtLength::loss, &AtLength::loss_change,
                                     "All bytes, the text cut into pieces of each length"));
  found.blocks.emplace_back(chart::Prose{fmt::format(
      "**How to read this.** In pieces the bytes at the start of each piece lack context, so "
      "longer pieces look a little better even for a method that gains nothing; the first "
      "table has no such effect. A method **holds** if its change there is at most 0.1, and "
      "**breaks** above 0.25.\n\n{}",
      kCaveat)});
  report.sections.push_back(std::move(found));

  const chart::Table literature = claims_table(claims(methods, settings));
  if (!literature.rows.empty()) {
    report.sections.push_back(
        {.heading = "What the literature says, here", .blocks = {literature}});
  }

  chart::Section pictures{.heading = "Charts", .blocks = {}};
  if (parts_of(methods, settings).size() > 1) {
    pictures.blocks.emplace_back(chart::Prose{
        "The methods are parted over several charts of a kind, sorted by their change: "
        "those that hold first. Each chart has its own scale."});
  }
  for (NamedChart& named : charts(methods, settings)) {
    pictures.blocks.emplace_back(std::move(named.chart));
  }
  report.sections.push_back(std::move(pictures));

  chart::Section how{.heading = "How it was done", .blocks = {}};
  chart::Settings items;
  flatten(manifest, "", items);
  if (!results.empty()) items.items.emplace_back("machine", results.front().machine);
  items.items.emplace_back("training", speed(results, settings));
  how.blocks.emplace_back(std::move(items));
  how.blocks.emplace_back(chart::Download{
      .file = "results.csv", .media_type = "text/csv", .content = results_csv(results, settings)});
  how.blocks.emplace_back(chart::Download{.file = "results.json",
                                          .media_type = "application/json",
                                          .content = results_json(manifest, results).dump(2)});
  report.sections.push_back(std::move(how));
  report.footer = "sextant " SEXTANT_VERSION ": " + command;
  return report;
}

// A survey of fewer methods in the same folder would leave some of the last one's.
void remove_charts(const fs::path& directory) {
  for (const char* kind : {"sliding-by-length", "loss-by-length", "loss-by-position", "training"}) {
    for (int n = 2; fs::exists(directory / fmt::format("{}-{}.svg", kind, n)); ++n) {
      for (const char* ending : {"svg", "png"})
        fs::remove(directory / fmt::format("{}-{}.{}", kind, n, ending));
    }
  }
}

void write_chart(const NamedChart& named, const fs::path& directory, bool& can_png) {
  constexpr std::array<chart::Format, 1> kSvg{chart::Format::kSvg}, kPng{chart::Format::kPng};
  chart::write_figure(named.chart, directory / named.file, kSvg);
  if (!can_png) return;
  try {
    chart::write_figure(named.chart, directory / named.file, kPng);
  } catch (const Error& error) {
    can_png = false;
    fmt::print(stderr, "charts are written as SVG only: {}\n", error.what());
  }
}

}  // namespace

std::vector<NamedChart> charts(std::span<const MethodResult> methods, const Settings& settings) {
  const std::vector<std::vector<MethodResult>> parts = parts_of(methods, settings);
  std::vector<NamedChart> result;
  const auto add = [&](const std::string& file, const auto& chart_of) {
    for (size_t n = 0; n < parts.size(); ++n) {
      NamedChart named{.file = file, .chart = chart_of(parts[n])};
      if (n > 0) named.file += fmt::format("-{}", n + 1);
      if (parts.size() > 1) named.chart.title += fmt::format(" ({} of {})", n + 1, parts.size());
      result.push_back(std::move(named));
    }
  };
  using Part = std::vector<MethodResult>;
  add("sliding-by-length", [&](const Part& part) {
    return loss_by_length(
        part, settings, &AtLength::sliding,
        fmt::format("Loss of the last {} bytes by length", settings.training.length / 2));
  });
  add("loss-by-length", [&](const Part& part) {
    return loss_by_length(part, settings, &AtLength::loss, "Loss by length, all bytes");
  });
  add("loss-by-position", [&](const Part& part) { return loss_by_position(part, settings); });
  add("training", [&](const Part& part) { return training(part, settings); });
  return result;
}

nlohmann::json results_json(const nlohmann::json& manifest, std::span<const ArmResult> results) {
  nlohmann::json json = manifest;
  json["arms"] = nlohmann::json::array();
  for (const ArmResult& result : results) json["arms"].push_back(result);
  return json;
}

void write_results(const fs::path& directory, const nlohmann::json& manifest,
                   std::span<const ArmResult> results, const Settings& settings,
                   const std::string& command) {
  const std::vector<MethodResult> methods = by_method(results);
  chart::write_file(directory / "results.csv", results_csv(results, settings));
  remove_charts(directory);
  bool can_png = true;
  for (const NamedChart& named : charts(methods, settings)) {
    if (!named.chart.series.empty()) write_chart(named, directory, can_png);
  }
  chart::write_report(report(manifest, results, methods, settings, command),
                      directory / "report.html");
  // Last: what it says is complete.
  chart::write_file(directory / "results.json", results_json(manifest, results).dump(2) + "\n");
}

}  // namespace sextant::lab
