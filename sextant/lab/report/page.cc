// Each section is made by a function of its own, from findings alone; report_page() orders them.
#include "sextant/lab/report/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "sextant/chart/text.h"
#include "sextant/lab/report/advice.h"
#include "sextant/lab/report/result_table.h"
#include "sextant/lab/result/result.h"
#include "sextant/lab/run/print.h"
#include "sextant/version.h"

namespace sextant::lab {
namespace {

// A list item on the pairs of the small task.
std::string far_and_near(const Settings& settings) {
  const RetrievalOptions& small = settings.retrieval;
  if (small.steps == 0 || small_task(settings) != Task::kPairs) return "";
  return fmt::format(
      "- Far pairs are at the beginning of a sequence, near ones {} tokens back. In training, in "
      "sequences of {}, the farthest are {} tokens back.\n",
      near_distance(small), small.length, far_distance(small.length, small));
}

// A list item on methods that are not judged.
std::string rule_of_learning(const Findings& findings) {
  if (!findings.reference) return "";
  const Settings& settings = findings.settings;
  return fmt::format(
      "- A method is **not learned**, and not judged, if its loss at {} is {}: it has nothing to "
      "lose on longer sequences.{}\n",
      settings.training.length, shortfall(*findings.reference),
      settings.retrieval.steps == 0
          ? ""
          : fmt::format(" In {}: {}.",
                        small_task(settings) == Task::kPairs ? "retrieval" : "the direction task",
                        small_task_shortfall(settings)));
}

chart::Section tables_section(const Findings& findings, size_t seeds) {
  chart::Section section{.heading = "Tables"};
  const auto add = [&](const ResultTable& one) {
    if (!one.rows.empty()) section.blocks.emplace_back(report_table(one));
  };
  add(comparison(findings, ""));
  for (const MethodResult& method : findings.methods)
    if (method.is_base && !method.losses.empty()) add(comparison(findings, method.label));
  for (const ResultTable& one : tables(findings)) add(one);
  section.blocks.emplace_back(chart::Details{
      .summary = "How to read the tables",
      .text = fmt::format(
          "- A method **holds** if the change in the first table is at most {}, and **breaks** "
          "above {}; in between it drifts.\n{}- The first table scores the same bytes with ever "
          "more context. In pieces, the bytes at the {} of each piece lack context, so longer "
          "pieces look a little better even for a method that gains nothing.\n{}{}- {}",
          kHoldsBelow, kBreaksAbove, rule_of_learning(findings),
          findings.settings.objective == Objective::kMasked ? "start and the end" : "start",
          far_and_near(findings.settings),
          seeds > 1 ? "- Numbers are means over seeds, ± half of the 95 % interval.\n" : "",
          caveat(findings.settings))});
  return section;
}

const char* small_task_words(const Settings& settings) {
  if (settings.retrieval.steps == 0) return "";
  return small_task(settings) == Task::kPairs
             ? ", and another to find the value of a key in noise"
             : ", and another to tag marks by what stands on their left";
}

std::string about(const Settings& settings) {
  const bool is_masked = settings.objective == Objective::kMasked;
  return fmt::format(
      "Each position encoding trained a small transformer on sequences of {} bytes, which was then "
      "tested on up to {}{}. Loss is in nats per {}byte; lower is better.{}",
      settings.training.length, settings.test.longest(), small_task_words(settings),
      is_masked ? "masked " : "",
      is_masked ? " Attention is in both directions, except in arms with `causal=true`." : "");
}

// The first chart of the report: the loss by length of the trained encodings, or of the stretches
// if only one encoding was trained. The chart is removed from `drawn`.
std::optional<chart::LineChart> opening_chart(std::vector<NamedChart>& drawn) {
  const auto by_length = [&](std::string_view file, size_t lines) {
    return std::ranges::find_if(drawn, [&](const NamedChart& one) {
      return one.file == file && one.chart.series.size() >= lines;
    });
  };
  auto found = by_length("sliding-by-length", 2);
  if (found == drawn.end()) found = by_length("stretches-by-length", 2);
  if (found == drawn.end()) found = by_length("sliding-by-length", 1);
  if (found == drawn.end()) return {};
  chart::LineChart chart = std::move(found->chart);
  drawn.erase(found);
  return chart;
}

bool any_not_learned(const Findings& findings) {
  return std::ranges::any_of(
      findings.methods, [](const MethodResult& method) { return method.text == Learned::kNo; });
}

chart::Section charts_section(const Findings& findings, std::vector<NamedChart> drawn, bool split) {
  chart::Section section{.heading = "Charts"};
  if (split) {
    section.blocks.emplace_back(chart::Prose{
        std::string("The methods are split over several charts of a kind, sorted by their change: "
                    "those that hold first") +
        (any_not_learned(findings) ? ", those that have not learned the text last" : "") +
        ". Each chart has its own scale."});
  }
  for (NamedChart& named : drawn) section.blocks.emplace_back(std::move(named.chart));
  return section;
}

chart::Section maps_section(const Findings& findings) {
  chart::Section section{.heading = "Inside the encodings"};
  for (NamedMap& named : maps(findings)) section.blocks.emplace_back(std::move(named.map));
  if (section.blocks.empty()) return section;
  section.blocks.insert(
      section.blocks.begin(),
      chart::Prose{fmt::format("These are the models of seed 0. Maps of attention begin at the "
                               "upper left corner; the diagonal is the query's own position. "
                               "Positions from {} on lie past any sequence of the training.",
                               findings.settings.training.length)});
  return section;
}

chart::Section data_section(const nlohmann::json& manifest, const Findings& findings) {
  chart::Section section{.heading = "Settings and data"};
  chart::NamedValues items;
  add_settings(manifest, items);
  const std::vector<Machine> machines = machines_of(findings.results);
  for (const Machine& machine : machines) {
    const std::string arms = machines.size() == 1 ? "" : fmt::format(" ({} arms)", machine.arms);
    items.items.emplace_back("machine", machine.name + arms);
  }
  const std::string trained = speed(findings);
  if (!trained.empty()) items.items.emplace_back("training", trained);
  section.blocks.emplace_back(std::move(items));
  const auto add = [&](const char* file, const char* media_type, std::string content) {
    section.blocks.emplace_back(
        chart::Download{.file = file, .media_type = media_type, .content = std::move(content)});
  };
  add("results.csv", "text/csv", results_csv(findings));
  add("summary.csv", "text/csv", summary_csv(findings));
  add("results.json", "application/json", results_text(manifest, findings));
  return section;
}

std::string grouped(int64_t count) { return chart::pretty_fixed(static_cast<double>(count), 0); }

// ", 623 488 to 919 424 parameters" of the models that were trained on a task; empty if unknown.
std::string parameters_words(const Findings& findings, Task task) {
  int64_t low = std::numeric_limits<int64_t>::max(), high = 0;
  for (const ArmResult& result : findings.results) {
    if (result.arm.task != task || !result.arm.trains() || result.weights == 0) continue;
    low = std::min(low, result.weights);
    high = std::max(high, result.weights);
  }
  if (high == 0) return "";
  return fmt::format(", {}{} parameters", low == high ? "" : grouped(low) + " to ", grouped(high));
}

std::string conditions_text(const Findings& findings, const std::string& command,
                            const std::string& sextant, const std::string& date) {
  const Settings& settings = findings.settings;
  const RetrievalOptions& small = settings.retrieval;
  const std::string time = time_words(findings);
  std::string text = command.empty() ? "" : fmt::format("- `{}`\n", command);
  text += fmt::format("- Sextant {}{}; arms: {}{}; threads of each: {}\n", sextant,
                      date.empty() ? "" : ", the newest result of " + date, findings.results.size(),
                      time.empty() ? "" : ", which took " + time + " in all", settings.threads);
  for (const Machine& machine : machines_of(findings.results)) text += "- " + machine.name + "\n";
  text += fmt::format("- Text: {}; trained on {} bytes in sequences of {}, tested on {} blocks\n",
                      size_words(findings), grouped(settings.training.bytes),
                      settings.training.length, settings.test.blocks);
  if (small.steps == 0) return text;
  const Task task = small_task(settings);
  return text + fmt::format(
                    "- {}: layers: {}, width: {}{}; trained by {} steps of {} sequences of {}, "
                    "tested on {} sequences of each length and distance\n",
                    task == Task::kPairs ? "Retrieval" : "Direction", small.layers, small.width,
                    parameters_words(findings, task), small.steps, small.batch, small.length,
                    small.texts);
}

std::string limits_text(const Findings& findings) {
  const Settings& settings = findings.settings;
  return fmt::format(
      "- Models of {} layers of width {} that read bytes are small. A larger model may rank the "
      "methods differently, and where a claim of the literature is about such a model, an outcome "
      "here does not refute it.\n- {}\n"
      "- Each method has the options of its label, else its defaults, and the same schedule of "
      "training. None is tuned, and a method that learns slowly counts as worse, or as not "
      "learned.\n- Seeds: {}. {}\n",
      settings.model.layers, settings.model.width, caveat(settings), findings.fewest_seeds,
      findings.fewest_seeds > 1 ? "Their interval is wide where trainings differ, and a method "
                                  "that is not told apart from another one is not thereby equal."
                                : "An interval over the test text does not show how much another "
                                  "seed would move a number.");
}

}  // namespace

std::string size_words(const Findings& findings) {
  const DecoderOptions& model = findings.settings.model;
  return fmt::format("layers: {}, width: {}, heads: {}{}", model.layers, model.width, model.heads,
                     parameters_words(findings, text_task(findings.settings)));
}

std::string time_words(const Findings& findings) {
  double seconds = 0;
  for (const ArmResult& one : findings.results) seconds += one.train_seconds + one.test_seconds;
  return seconds == 0 ? "" : duration(seconds);
}

std::string status_of(size_t done, size_t arms) {
  return done < arms ? fmt::format("{} of {} arms so far", done, arms) : "";
}

std::string speed(const Findings& findings) {
  return findings.bytes_per_second > 0 ? fmt::format("{:.1f} thousand bytes per second and worker",
                                                     findings.bytes_per_second / 1e3)
                                       : "";
}

void add_settings(const nlohmann::json& object, chart::NamedValues& out) {
  for (const auto& [path, value] : leaves_of(object)) {
    if (value.is_null()) continue;
    out.items.emplace_back(path, value.is_string() ? value.get<std::string>() : value.dump());
  }
}

chart::Report report_page(const nlohmann::json& manifest, const Findings& findings,
                          const std::string& command, const std::string& status,
                          const std::string& date) {
  const Settings& settings = findings.settings;
  const Advice advised = advice(findings);
  const std::string answer = advised.answer();
  chart::Report report;
  report.title = fmt::format("Trained at {} bytes, tested at up to {}", settings.training.length,
                             settings.test.longest());
  report.status = status;
  report.lead = answer.empty() ? about(settings) : (status.empty() ? "" : "So far: ") + answer;

  std::vector<NamedChart> drawn = charts(findings);
  const bool split =
      std::ranges::any_of(drawn, [](const NamedChart& one) { return one.file.ends_with("-2"); });
  if (auto chart = opening_chart(drawn)) report.opening.blocks.emplace_back(std::move(*chart));
  if (!answer.empty()) {
    report.opening.blocks.emplace_back(chart::Prose{about(settings)});
    report.opening.blocks.emplace_back(
        chart::Details{.summary = "How this was chosen", .text = advised.details});
  }
  const std::string unlike = unlike_machines_text(machines_of(findings.results));
  if (!unlike.empty()) report.opening.blocks.emplace_back(chart::Prose{unlike});
  report.sections.push_back(tables_section(findings, advised.seeds));
  const Findings* const all = &findings;
  if (!findings.claims.empty()) report.sections.push_back(claims_section(std::span(&all, 1)));
  report.sections.push_back(charts_section(findings, std::move(drawn), split));
  if (chart::Section inside = maps_section(findings); !inside.blocks.empty())
    report.sections.push_back(std::move(inside));
  report.sections.push_back({"Limits", {chart::Prose{limits_text(findings)}}});
  const std::string sextant(manifest.contains("sextant") ? manifest.at("sextant").get<std::string>()
                                                         : version());
  report.sections.push_back(
      {"Conditions", {chart::Prose{conditions_text(findings, command, sextant, date)}}});
  report.sections.push_back(data_section(manifest, findings));
  report.footer = fmt::format("sextant {}: {}", version(), command);
  return report;
}

}  // namespace sextant::lab
