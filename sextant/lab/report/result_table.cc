// A column is a function of a method. Differences are paired, by compare.h; fill() leaves out a
// column of which no number was kept.
#include "sextant/lab/report/result_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

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
  if (column.sign && !cell.text.starts_with('-') && !cell.text.starts_with("−"))
    cell.text = fmt::format("+{}", cell.text);
  if (found->half) cell.text += fmt::format(" ±{:.{}f}", *found->half, column.decimals);
  return cell;
}

chart::Cell verdict_cell(std::optional<Verdict> verdict) {
  return verdict ? chart::words(name(*verdict), tone(*verdict))
                 : chart::words("", chart::Tone::kBad);
}

std::vector<size_t> column_order(const ResultTable& found) {
  std::vector<size_t> order(found.columns.size());
  for (size_t n = 0; n < order.size(); ++n) order[n] = n;
  std::ranges::stable_partition(order, [&](size_t n) { return found.columns[n].sign; });
  return order;
}

constexpr const char* kKnown = "rope";  // the method that readers compare others with

using Value = std::optional<MeanInterval>;

const MethodResult* find(const Findings& findings, const std::string& label) {
  const auto found = std::ranges::find_if(findings.methods, [&](const MethodResult& method) {
    return method.label == label && !method.losses.empty();
  });
  return found == findings.methods.end() ? nullptr : &*found;
}

// The best of the methods that are ranked together, or null.
const MethodResult* best_of(const Findings& findings, const std::string& base) {
  for (const Ranking& ranking : findings.rankings) {
    if ((ranking.base ? ranking.base->label : "") != base || ranking.chosen().empty()) continue;
    return find(findings, ranking.chosen().front().label);
  }
  return nullptr;
}

std::vector<const MethodResult*> compared(const Findings& findings, const std::string& base) {
  std::vector<const MethodResult*> methods;
  for (const MethodResult& method : findings.methods) {
    if (method.base == base && method.drop_channels == 0 && !method.losses.empty())
      methods.push_back(&method);
  }
  std::ranges::stable_sort(methods, {}, [&](const MethodResult* method) {
    return std::pair(method->verdict == Verdict::kNotLearned,
                     method->losses_at(findings.settings.test.longest()).sliding.mean);
  });
  const MethodResult* const last = base.empty() ? nullptr : find(findings, base);
  if (last != nullptr) methods.push_back(last);
  return methods;
}

ValueColumn minus(const MethodResult& other, const std::string& name, int64_t length,
                  Measure measure, const Settings& settings) {
  return {.column = {.name = name, .unit = fmt::format("at {}", length), .sign = true},
          .value = [&, measure](const MethodResult& method) {
            return &method == &other ? Value() : behind(method, other, settings, measure);
          }};
}

std::optional<MeanInterval> seconds_of(const MethodResult& method) {
  double sum = 0;
  for (const ArmResult& seed : method.seeds) sum += seed.train_seconds;
  if (sum == 0) return MeanInterval{.mean = NAN};  // not kept
  return MeanInterval{.mean = sum / static_cast<double>(method.seeds.size())};
}

ValueColumn pairs_column(const char* name, int64_t length, int64_t distance) {
  return {
      .column = {.name = fmt::format("{} {}", name, length),
                 .unit = fmt::format("{} back", distance),
                 .decimals = 2},
      .value = [=](const MethodResult& method) { return method.accuracy_at(length, distance); }};
}

}  // namespace

void fill(ResultTable& table, const std::vector<const MethodResult*>& methods,
          const std::vector<ValueColumn>& columns, bool with_verdicts,
          const std::function<std::string(const MethodResult&)>& remark) {
  for (const MethodResult* const method : methods) {
    table.rows.push_back({.label = method->label, .remark = remark(*method)});
    if (with_verdicts && !method->losses.empty()) table.rows.back().verdict = method->verdict;
  }
  for (const ValueColumn& one : columns) {
    std::vector<std::optional<MeanInterval>> values;
    bool has_number = false, lacks_number = false;
    for (const MethodResult* const method : methods) {
      std::optional<MeanInterval>& value = values.emplace_back(one.value(*method));
      if (!value) continue;
      const bool is_kept = !std::isnan(value->mean);
      (is_kept ? has_number : lacks_number) = true;
      if (!is_kept) value.reset();
    }
    if (lacks_number && !has_number) continue;
    table.columns.push_back(one.column);
    for (size_t n = 0; n < methods.size(); ++n) {
      table.rows[n].values.push_back(values[n]);
      table.rows[n].notes.push_back(one.note ? one.note(*methods[n]) : "");
    }
  }
}

std::string remark_of(const MethodResult& method) {
  if (method.diverged == 0) return "";
  if (method.seeds.empty()) return "diverged: its loss was no longer a number";
  return fmt::format("({} of {} diverged)", method.diverged,
                     method.diverged + static_cast<int64_t>(method.seeds.size()));
}

chart::Table report_table(const ResultTable& found) {
  chart::Table table{.caption = found.caption + (found.unit.empty() ? "" : ", in " + found.unit),
                     .columns = {{.name = "method", .unit = ""}},
                     .name = found.name};
  const bool verdicts = std::ranges::any_of(
      found.rows, [](const ResultTable::Row& row) { return row.verdict.has_value(); });
  if (verdicts) table.columns.push_back({.name = "verdict", .unit = ""});
  const std::vector<size_t> order = column_order(found);
  for (const size_t n : order)
    table.columns.push_back({.name = found.columns[n].name, .unit = found.columns[n].unit});
  for (const ResultTable::Row& row : found.rows) {
    std::vector<chart::Cell> cells{{.text = row.label, .note = row.remark, .is_code = true}};
    if (verdicts) cells.push_back(verdict_cell(row.verdict));
    for (const size_t n : order) {
      cells.push_back(cell(row.values[n], found.columns[n]));
      cells.back().note = row.notes[n];
    }
    table.rows.push_back(std::move(cells));
  }
  return table;
}

std::optional<MeanInterval> behind(const MethodResult& method, const MethodResult& other,
                                   const Settings& settings, Measure measure) {
  if (method.seeds.front().lengths.empty()) return MeanInterval{.mean = NAN};
  const std::optional<Measured> found = measured(measure, method, &other, settings);
  if (!found) return {};
  MeanInterval interval = found->interval;
  if (std::isnan(interval.half.value())) interval.half.reset();  // a seed without a known error
  return interval;
}

ValueColumn far_column(const Settings& settings, int64_t length) {
  return pairs_column("far", length, far_distance(length, settings.retrieval));
}

ValueColumn near_column(const Settings& settings, int64_t length) {
  return pairs_column("near", length, near_distance(settings.retrieval));
}

ValueColumn direction_column(int64_t length) {
  return {.column = {.name = fmt::format("direction {}", length), .decimals = 2},
          .value = [=](const MethodResult& method) { return method.mean_accuracy_at(length); }};
}

ResultTable comparison(const Findings& findings, const std::string& base) {
  const Settings& settings = findings.settings;
  const int64_t trained = settings.training.length, longest = settings.test.longest();
  const bool stretches = !base.empty(), pairs = small_task(settings) == Task::kPairs;
  const MethodResult* const known = find(findings, stretches ? base : kKnown);
  const MethodResult* const best = best_of(findings, base);

  std::vector<ValueColumn> columns;
  for (const int64_t length : {trained, longest})
    columns.push_back(
        {.column = {.name = "loss", .unit = fmt::format("at {}", length)},
         .value = [=](const MethodResult& method) { return method.losses_at(length).sliding; }});
  if (known != nullptr && known->base.empty())
    columns.push_back(minus(*known, stretches ? "cost" : "minus " + known->label, trained,
                            Measure::kTrained, settings));
  for (size_t n = 0; n < settings.test.lengths.size(); ++n) {
    const int64_t length = settings.test.lengths[n];
    if (length == trained) continue;
    columns.push_back(
        {.column = {.name = "change", .unit = fmt::format("at {}", length), .sign = true},
         .value = [n](const MethodResult& method) { return method.changes.at(n); }});
  }
  if (best != nullptr) {
    columns.push_back(minus(*best, "minus " + best->label, longest, Measure::kLongest, settings));
    columns.back().note = [&settings, best](const MethodResult& method) -> std::string {
      if (&method == best) return "first";
      const Value value = behind(method, *best, settings);
      const bool tied = value && value->half && std::abs(value->mean) <= *value->half;
      return tied ? "not told apart" : "";
    };
  }
  const std::vector<int64_t>& asked = settings.retrieval.lengths;
  for (size_t n = asked.size() - std::min<size_t>(2, asked.size());
       settings.retrieval.steps > 0 && n < asked.size(); ++n) {
    columns.push_back(pairs ? far_column(settings, asked[n]) : direction_column(asked[n]));
    if (pairs && n + 1 == asked.size()) columns.push_back(near_column(settings, asked[n]));
  }
  if (!stretches)
    columns.push_back(
        {.column = {.name = "training", .unit = "seconds", .decimals = 0}, .value = seconds_of});
  ResultTable table{
      .name = stretches ? "compared-with-" + base : "compared",
      .caption = fmt::format(
          "{}, by loss at {}: the {} of a window, in nats per byte; change: against {}{}; "
          "differences are paired, and not told apart are methods with zero in the interval",
          stretches ? "Stretches of " + base : "Trained methods", longest, scored_bytes(settings),
          stretches ? base + " at " : "", trained),
      .in_report_only = true};
  fill(table, compared(findings, base), columns, true, remark_of);
  return table;
}

}  // namespace sextant::lab
