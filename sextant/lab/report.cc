#include "sextant/lab/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>

#include "sextant/chart/report.h"
#include "sextant/error.h"
#include "sextant/files/write_file.h"
#include "sextant/lab/advice.h"
#include "sextant/lab/claims.h"
#include "sextant/lab/pair_task.h"
#include "sextant/lab/progress.h"
#include "sextant/lab/report_pictures.h"
#include "sextant/version.h"

namespace sextant::lab {
namespace {

namespace fs = std::filesystem;
using chart::LineChart;
using chart::Scale;
using chart::Series;

constexpr std::array<std::string_view, 11> kKinds = {"sliding-by-length",
                                                     "loss-by-length",
                                                     "loss-by-position",
                                                     "retrieval-by-distance",
                                                     "retrieval-by-length",
                                                     "training",
                                                     "stretches-by-length",
                                                     "stretches-by-position",
                                                     "stretches-retrieval-by-distance",
                                                     "scores-by-distance",
                                                     "stretches-scores-by-distance"};

// Where maps lie: their names hold those of methods.
constexpr const char* kMapsFolder = "maps";

// Lines that can still be told apart in one chart.
constexpr size_t kLinesPerChart = 10;

using Part = std::vector<MethodResult>;

// In several parts of nearly equal size, from those that hold to those that break, if they are too many for
// one chart.
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

// One line: the mean over seeds at each x, with its 95 % interval as a band.
Series series(const std::string& name, std::span<const ArmResult> seeds, std::vector<double> x,
              const auto& values_at) {
  Series line{.name = name, .x = std::move(x)};
  for (size_t n = 0; n < line.x.size(); ++n) {
    std::vector<double> values;
    for (const ArmResult& seed : seeds) values.push_back(values_at(seed, n));
    const Spread over_seeds = spread(values);
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
                  .x = {.label = "length of the text", .unit = "bytes", .scale = Scale::kLog2},
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

// Of an arm, at the n-th of `asked`.
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
      .subtitle = fmt::format("trained to find pairs in texts of {} tokens; {:.2f} by chance",
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
  return retrieval_chart(methods, settings, "Retrieval at the beginning of texts, by length",
                         {.label = "length of the text", .unit = "tokens", .scale = Scale::kLog2},
                         asked, [](const AtDistance& at) { return at.length; });
}

chart::Tone tone(const std::string& verdict) {
  if (verdict == "holds") return chart::Tone::kGood;
  return verdict == "drifts" ? chart::Tone::kPlain : chart::Tone::kBad;
}

chart::Cell cell(const Spread& spread, const FoundTable::Column& column) {
  chart::Cell cell = chart::number(spread.mean, column.decimals);
  if (column.sign && !cell.text.starts_with('-') && !cell.text.starts_with("−")) {
    cell.text = fmt::format("+{}", cell.text);
  }
  if (spread.half) cell.text += fmt::format(" ±{:.{}f}", *spread.half, column.decimals);
  return cell;
}

chart::Table html_table(const FoundTable& found) {
  chart::Table table{.caption = found.caption, .columns = {{.name = "method", .unit = ""}}};
  for (const FoundTable::Column& column : found.columns) {
    table.columns.push_back({.name = column.name, .unit = column.unit});
  }
  const bool words =
      std::ranges::any_of(found.rows, [](const FoundTable::Row& row) { return !row.word.empty(); });
  if (words) table.columns.push_back({.name = "past its length", .unit = ""});
  for (const FoundTable::Row& row : found.rows) {
    std::vector<chart::Cell> cells{
        chart::words(row.remark.empty() ? row.label : row.label + " " + row.remark)};
    for (size_t n = 0; n < row.values.size(); ++n) {
      cells.push_back(row.values[n] ? cell(*row.values[n], found.columns[n])
                                    : chart::words("", chart::Tone::kQuiet));
    }
    if (words) cells.push_back(chart::words(row.word, tone(row.word)));
    table.rows.push_back(std::move(cells));
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

std::string results_text(const nlohmann::json& manifest, std::span<const ArmResult> results) {
  return results_json(manifest, results).dump(2) + "\n";
}

chart::Report report(const nlohmann::json& manifest, std::span<const ArmResult> results,
                     std::span<const MethodResult> methods, const Settings& settings,
                     const std::string& command) {
  const int64_t length = settings.training.length;
  chart::Report report;
  report.title = fmt::format("Trained at {}, read at {}", length, settings.test.longest());
  report.lead = fmt::format(
      "A small transformer was trained on texts of {} bytes once with each position encoding, and "
      "then read texts of up to {}. Loss is in nats per byte; lower is better.",
      length, settings.test.longest());
  const Advice advised = advice(methods, settings);
  for (const std::string& words : {advised.train, advised.stretch, advised.trust}) {
    if (!words.empty()) report.lead += "\n\n" + words;
  }
  chart::Section found{.heading = "What came out", .blocks = {}};
  for (const FoundTable& one : tables(methods, settings))
    found.blocks.emplace_back(html_table(one));
  found.blocks.emplace_back(chart::Prose{fmt::format(
      "**How to read this.** In pieces the bytes at the start of each piece lack context, so "
      "longer pieces look a little better even for a method that gains nothing; the first "
      "table has no such effect. A method **holds** if its change there is at most {}, and "
      "**breaks** above {}.{}\n\n{}",
      kHoldsBelow, kBreaksAbove,
      advised.seeds > 1 ? " Numbers are means over seeds, ± half of the 95 % interval." : "",
      kCaveat)});
  report.sections.push_back(std::move(found));

  const chart::Table literature = claims_table(claims(methods, settings));
  if (!literature.rows.empty()) {
    report.sections.push_back(
        {.heading = "What the literature says, here", .blocks = {literature}});
  }

  chart::Section pictures{.heading = "Charts", .blocks = {}};
  const std::vector<NamedChart> drawn = charts(methods, settings);
  if (std::ranges::any_of(drawn, [](const NamedChart& one) { return one.file.ends_with("-2"); })) {
    pictures.blocks.emplace_back(chart::Prose{
        "The methods are parted over several charts of a kind, sorted by their change: "
        "those that hold first. Each chart has its own scale."});
  }
  for (const NamedChart& named : drawn) pictures.blocks.emplace_back(named.chart);
  report.sections.push_back(std::move(pictures));

  chart::Section looks{.heading = "What the encodings do", .blocks = {}};
  for (NamedMap& named : maps(methods, settings)) looks.blocks.emplace_back(std::move(named.map));
  if (!looks.blocks.empty()) {
    looks.blocks.insert(
        looks.blocks.begin(),
        chart::Prose{fmt::format(
            "Of the models of seed 0. Maps of attention begin at the upper left corner; the "
            "diagonal is "
            "the query's own place. Rows below {} are longer than any text of the training.",
            length)});
    report.sections.push_back(std::move(looks));
  }

  chart::Section how{.heading = "How it was done", .blocks = {}};
  chart::Settings items;
  flatten(manifest, "", items);
  if (!results.empty()) items.items.emplace_back("machine", results.front().machine);
  items.items.emplace_back("training", speed(results, settings));
  how.blocks.emplace_back(std::move(items));
  how.blocks.emplace_back(chart::Download{
      .file = "results.csv", .media_type = "text/csv", .content = results_csv(results, settings)});
  how.blocks.emplace_back(chart::Download{
      .file = "summary.csv", .media_type = "text/csv", .content = summary_csv(methods)});
  how.blocks.emplace_back(chart::Download{.file = "results.json",
                                          .media_type = "application/json",
                                          .content = results_text(manifest, results)});
  report.sections.push_back(std::move(how));
  report.footer = fmt::format("sextant {}: {}", version(), command);
  return report;
}

// A survey of fewer methods in the same folder would leave some of the last one's.
void remove_charts(const fs::path& directory) {
  for (const std::string_view kind : kKinds) {
    for (int n = 1; n == 1 || fs::exists(directory / fmt::format("{}-{}.svg", kind, n)); ++n) {
      const std::string stem = n == 1 ? std::string(kind) : fmt::format("{}-{}", kind, n);
      for (const char* ending : {"svg", "png"}) fs::remove(directory / (stem + "." + ending));
    }
  }
  fs::remove_all(directory / kMapsFolder);
}

// A chart or a map.
void write_picture(const auto& picture, const fs::path& stem, bool& can_png) {
  constexpr std::array<chart::Format, 1> kSvg{chart::Format::kSvg}, kPng{chart::Format::kPng};
  chart::write_figure(picture, stem, kSvg);
  if (!can_png) return;
  try {
    chart::write_figure(picture, stem, kPng);
  } catch (const CannotWrite&) {
    throw;  // nor could what comes after it be written
  } catch (const Error& error) {
    can_png = false;
    note(fmt::format("charts are written as SVG only: {}", error.what()));
  }
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

  // Every way to read weights that were trained, beside the way they were trained.
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

nlohmann::json results_json(const nlohmann::json& manifest, std::span<const ArmResult> results) {
  nlohmann::json json = manifest;
  json["arms"] = nlohmann::json::array();
  for (const ArmResult& result : results) json["arms"].push_back(result);
  json["summary"] = nlohmann::json::array();
  for (const Summary& row : summary(by_method(results))) {
    nlohmann::json line{{"method", row.method},
                        {"measure", row.measure},
                        {"length", row.length},
                        {"seeds", row.seeds},
                        {"mean", row.value.mean}};
    if (row.distance) line["distance"] = *row.distance;
    if (row.value.half) line["half_interval95"] = *row.value.half;
    json["summary"].push_back(std::move(line));
  }
  return json;
}

void write_results(const fs::path& directory, const nlohmann::json& manifest,
                   std::span<const ArmResult> results, const Settings& settings,
                   const std::string& command) {
  const std::vector<MethodResult> methods = by_method(results);
  write_file(directory / "results.csv", results_csv(results, settings));
  write_file(directory / "summary.csv", summary_csv(methods));
  remove_charts(directory);
  bool can_png = true;
  for (const NamedChart& named : charts(methods, settings)) {
    if (!named.chart.series.empty()) write_picture(named.chart, directory / named.file, can_png);
  }
  for (const NamedMap& named : maps(methods, settings)) {
    write_picture(named.map, directory / kMapsFolder / named.file, can_png);
  }
  chart::write_report(report(manifest, results, methods, settings, command),
                      directory / "report.html");
  // Last: what it says is complete.
  write_file(directory / "results.json", results_text(manifest, results));
}

}  // namespace sextant::lab
