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

std::vector<size_t> column_order(const ResultTable& found) {
  std::vector<size_t> order(found.columns.size());
  for (size_t n = 0; n < order.size(); ++n) order[n] = n;
  std::ranges::stable_partition(order, [&](size_t n) { return found.columns[n].sign; });
  return order;
}

}  // namespace

void fill(ResultTable& table, const std::vector<const MethodResult*>& methods,
          const std::vector<ValueColumn>& columns, bool with_verdicts,
          const std::function<std::string(const MethodResult&)>& remark) {
  for (const MethodResult* const method : methods) {
    table.rows.push_back({.label = method->label, .values = {}, .remark = remark(*method)});
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
  for (const size_t n : order) {
    table.columns.push_back({.name = found.columns[n].name, .unit = found.columns[n].unit});
  }
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

}  // namespace sextant::lab
