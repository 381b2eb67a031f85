#include "sextant/lab/report/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "sextant/lab/report/advice.h"
#include "sextant/lab/report/csv.h"
#include "sextant/lab/report/pictures.h"
#include "sextant/lab/report/report.h"
#include "sextant/lab/report/tables.h"
#include "sextant/lab/result/machines.h"
#include "sextant/version.h"

namespace sextant::lab {
namespace {

chart::Tone tone(Verdict verdict) {
  if (verdict == Verdict::kNotLearned) return chart::Tone::kQuiet;
  if (verdict == Verdict::kHolds) return chart::Tone::kGood;
  return verdict == Verdict::kDrifts ? chart::Tone::kPlain : chart::Tone::kBad;
}

chart::Cell cell(const std::optional<MeanInterval>& found, const ResultTable::Column& column) {
  if (!found) return chart::words("", chart::Tone::kQuiet);
  chart::Cell cell = chart::number(found->mean, column.decimals);
  if (column.sign && !cell.text.starts_with('-') && !cell.text.starts_with("−")) {
    cell.text = fmt::format("+{}", cell.text);
  }
  if (found->half) cell.text += fmt::format(" ±{:.{}f}", *found->half, column.decimals);
  return cell;
}

chart::Cell verdict_cell(std::optional<Verdict> verdict) {
  return verdict ? chart::words(name(*verdict), tone(*verdict))
                 : chart::words("", chart::Tone::kBad);
}

// Signed columns such as the change come first, so that a narrow screen shows them.
std::vector<size_t> column_order(const ResultTable& found) {
  std::vector<size_t> order(found.columns.size());
  for (size_t n = 0; n < order.size(); ++n) order[n] = n;
  std::ranges::stable_partition(order, [&](size_t n) { return found.columns[n].sign; });
  return order;
}

chart::Table html_table(const ResultTable& found) {
  chart::Table table{.caption = found.caption + (found.unit.empty() ? "" : ", in " + found.unit),
                     .columns = {{.name = "method", .unit = ""}}};
  const bool verdicts = std::ranges::any_of(
      found.rows, [](const ResultTable::Row& row) { return row.verdict.has_value(); });
  if (verdicts) table.columns.push_back({.name = "verdict", .unit = ""});
  const std::vector<size_t> order = column_order(found);
  for (const size_t n : order) {
    table.columns.push_back({.name = found.columns[n].name, .unit = found.columns[n].unit});
  }
  for (const ResultTable::Row& row : found.rows) {
    std::vector<chart::Cell> cells{chart::words(row.label)};
    cells.front().note = row.remark;
    if (verdicts) cells.push_back(verdict_cell(row.verdict));
    for (const size_t n : order) {
      cells.push_back(cell(n < row.values.size() ? row.values[n] : std::nullopt, found.columns[n]));
    }
    table.rows.push_back(std::move(cells));
  }
  return table;
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
  chart::Section section{.heading = "Tables", .blocks = {}};
  for (const ResultTable& one : tables(findings)) {
    section.blocks.emplace_back(html_table(one));
  }
  section.blocks.emplace_back(chart::Details{
      .summary = "How to read the tables",
      .text = fmt::format(
          "- A method **holds** if the change in the first table is at most {}, and **breaks** "
          "above {}; in between it drifts.\n{}"
          "- The first table scores the same bytes with ever more context. In pieces, the bytes at "
          "the {} of each piece lack context, so longer pieces look a little better even for a "
          "method that gains nothing.\n{}"
          "- {}",
          kHoldsBelow, kBreaksAbove, rule_of_learning(findings),
          findings.settings.objective == Objective::kMasked ? "start and the end" : "start",
          seeds > 1 ? "- Numbers are means over seeds, ± half of the 95 % interval.\n" : "",
          caveat(findings.settings))});
  return section;
}

chart::Cell outcome_cell(Outcome outcome) {
  const chart::Tone tone = outcome == Outcome::kHolds        ? chart::Tone::kGood
                           : outcome == Outcome::kFails      ? chart::Tone::kBad
                           : outcome == Outcome::kNotLearned ? chart::Tone::kQuiet
                                                             : chart::Tone::kPlain;
  return chart::words(name(outcome), tone);
}

chart::Section claims_section(std::span<const CheckedClaim> claims) {
  chart::Table table{.caption = "Claims, and what was measured here with its 95 % interval",
                     .columns = {{.name = "claim", .unit = ""},
                                 {.name = "here", .unit = ""},
                                 {.name = "measured", .unit = ""},
                                 {.name = "claimed", .unit = ""},
                                 {.name = "source", .unit = ""}}};
  table.stacks = true;
  const auto count = [&](Outcome outcome) {
    return std::ranges::count(claims, outcome, &CheckedClaim::outcome);
  };
  const auto unlearned = count(Outcome::kNotLearned);
  for (const CheckedClaim& checked : claims) {
    const ClaimWords said = words(checked);
    std::vector<chart::Cell> cells{chart::words(checked.claim.text), outcome_cell(checked.outcome),
                                   chart::words(said.value), chart::words(said.bound),
                                   chart::words(checked.claim.source)};
    cells[0].note = said.measure;
    cells[1].note = said.reason;
    cells[2].note = said.over;
    table.rows.push_back(std::move(cells));
  }
  return {
      .heading = "Claims of the literature",
      .blocks = {
          chart::Prose{fmt::format(
              "Claims: {}. Held here: {}; failed: {}; undecided, with the claimed bound "
              "inside the interval: {}{}. Intervals are over seeds if there are several, "
              "else over the test text, which does not show how much another seed would "
              "move them.",
              claims.size(), count(Outcome::kHolds), count(Outcome::kFails),
              count(Outcome::kUndecided),
              unlearned == 0 ? ""
                             : fmt::format("; not decided, as a method has not learned the task: "
                                           "{}",
                                           unlearned))},
          std::move(table)}};
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
  chart::Section section{.heading = "Charts", .blocks = {}};
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
  chart::Section section{.heading = "Inside the encodings", .blocks = {}};
  for (NamedMap& named : maps(findings)) section.blocks.emplace_back(std::move(named.map));
  if (section.blocks.empty()) return section;
  section.blocks.insert(
      section.blocks.begin(),
      chart::Prose{
          fmt::format("These are the models of seed 0. Maps of attention begin at the upper "
                      "left corner; the diagonal is the query's own position. Positions from {} "
                      "on lie past any sequence of the training.",
                      findings.settings.training.length)});
  return section;
}

chart::Section data_section(const nlohmann::json& manifest, const Findings& findings) {
  chart::Section section{.heading = "Settings and data", .blocks = {}};
  chart::NamedValues items;
  for (const auto& [path, value] : leaves_of(manifest)) {
    items.items.emplace_back(path, value.is_string() ? value.get<std::string>() : value.dump());
  }
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

}  // namespace

std::string status_of(size_t done, size_t arms) {
  return done < arms ? fmt::format("{} of {} arms so far", done, arms) : "";
}

std::string speed(const Findings& findings) {
  return findings.bytes_per_second > 0 ? fmt::format("{:.1f} thousand bytes per second and worker",
                                                     findings.bytes_per_second / 1e3)
                                       : "";
}

chart::Report report_page(const nlohmann::json& manifest, const Findings& findings,
                          const std::string& command, const std::string& status) {
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
  if (!findings.claims.empty()) report.sections.push_back(claims_section(findings.claims));
  report.sections.push_back(charts_section(findings, std::move(drawn), split));
  if (chart::Section inside = maps_section(findings); !inside.blocks.empty()) {
    report.sections.push_back(std::move(inside));
  }
  report.sections.push_back(data_section(manifest, findings));
  report.footer = fmt::format("sextant {}: {}", version(), command);
  return report;
}

}  // namespace sextant::lab
