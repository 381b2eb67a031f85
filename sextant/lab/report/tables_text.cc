#include "sextant/lab/report/tables_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "sextant/lab/report/tables.h"
#include "sextant/lab/result/format_number.h"

namespace sextant::lab {
namespace {

constexpr size_t kLine = 100;

std::string shown(const MeanInterval& mean, const ResultTable::Column& column) {
  std::string text =
      column.sign ? signed_fixed(mean.mean, column.decimals) : fixed(mean.mean, column.decimals);
  if (mean.half) text += fmt::format(" ±{:.{}f}", *mean.half, column.decimals);
  return text;
}

// fmt counts bytes, and ± takes two.
std::string right(const std::string& text, size_t width) {
  const auto extra = static_cast<size_t>(std::ranges::count(text, '\xc2'));
  return fmt::format("{:>{}}", text, width + extra);
}

// Breaks the text into lines of at most kLine bytes.
std::string wrapped(std::string text) {
  for (size_t begin = 0; text.size() - begin > kLine;) {
    const size_t space = text.rfind(' ', begin + kLine);
    text[space] = '\n';
    begin = space + 1;
  }
  return text;
}

// A longer name of a column, as "direction 512", still stands apart from its neighbour.
size_t width_of(const ResultTable::Column& column, size_t width) {
  return std::max(width + (column.sign ? 2 : 0), column.name.size() + 2);
}

std::string text_of(const ResultTable& table, size_t labels, size_t width) {
  std::string text = wrapped(table.caption) + ":\n" + fmt::format("{:<{}}", "method", labels);
  for (const ResultTable::Column& column : table.columns) {
    text += fmt::format("{:>{}}", column.name, width_of(column, width));
  }
  text += "\n";
  for (const ResultTable::Row& row : table.rows) {
    text += fmt::format("{:<{}}", row.label, labels);
    const bool empty = std::ranges::none_of(
        row.values, [](const std::optional<MeanInterval>& value) { return value.has_value(); });
    for (size_t n = 0; n < row.values.size() && !empty; ++n) {
      const ResultTable::Column& column = table.columns[n];
      text += right(row.values[n] ? shown(*row.values[n], column) : "", width_of(column, width));
    }
    if (row.verdict) text += fmt::format("  {}", name(*row.verdict));
    if (!row.remark.empty()) text += "  " + row.remark;
    text += "\n";
  }
  return text;
}

}  // namespace

std::string tables_text(const Findings& findings) {
  size_t labels = 10;
  for (const MethodResult& method : findings.methods) {
    labels = std::max(labels, method.label.size());
  }
  const Settings& settings = findings.settings;
  const int64_t length = settings.training.length;
  std::string text = fmt::format(
      "Trained at {} bytes. Loss in nats per {}; change: at {} minus at {}, on the same "
      "bytes.{}\n",
      length,
      settings.objective == Objective::kMasked ? "masked byte, with attention in both directions"
                                               : "byte",
      settings.test.longest(), length,
      findings.has_intervals ? "\n±: half of the 95 % interval over seeds." : "");
  for (const ResultTable& one : tables(findings)) {
    if (one.in_report_only) continue;
    text += "\n" + text_of(one, labels, findings.has_intervals ? 15 : 9);
  }
  return text + "\n" + wrapped(caveat(settings)) + "\n";
}

}  // namespace sextant::lab
