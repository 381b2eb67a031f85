#include "sextant/lab/report/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sextant/lab/data/retrieval_task.h"
#include "sextant/lab/report/format_number.h"

namespace sextant::lab {
namespace {

constexpr size_t kLine = 100;
constexpr const char* kLossUnit = "nats per byte";

size_t index_of(int64_t length, const Settings& settings) {
  return static_cast<size_t>(std::ranges::find(settings.test.lengths, length) -
                             settings.test.lengths.begin());
}

std::string shown(const SeedMean& mean, const FoundTable::Column& column) {
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

std::string text_of(const FoundTable& table, size_t labels, size_t width) {
  std::string text = wrapped(table.caption) + ":\n" + fmt::format("{:<{}}", "method", labels);
  for (const FoundTable::Column& column : table.columns) {
    text += fmt::format("{:>{}}", column.name, width + (column.sign ? 2 : 0));
  }
  text += "\n";
  for (const FoundTable::Row& row : table.rows) {
    text += fmt::format("{:<{}}", row.label, labels);
    const bool empty = std::ranges::none_of(
        row.values, [](const std::optional<SeedMean>& value) { return value.has_value(); });
    for (size_t n = 0; n < row.values.size() && !empty; ++n) {
      const FoundTable::Column& column = table.columns[n];
      text +=
          right(row.values[n] ? shown(*row.values[n], column) : "", width + (column.sign ? 2 : 0));
    }
    if (!row.word.empty()) text += "  " + row.word;
    if (!row.remark.empty()) text += "  " + row.remark;
    text += "\n";
  }
  return text;
}

FoundTable::Column change_column(const std::string& unit) {
  return {.name = "change", .unit = unit, .sign = true};
}

std::vector<FoundTable::Column> length_columns(const Settings& settings) {
  std::vector<FoundTable::Column> columns;
  for (const int64_t length : settings.test.lengths) {
    columns.push_back({.name = std::to_string(length), .unit = ""});
  }
  return columns;
}

std::string remark_of(const MethodResult& method) {
  if (method.diverged == 0) return "";
  if (method.seeds.empty()) return "diverged: its loss was no longer a number";
  return fmt::format("({} of {} diverged)", method.diverged,
                     method.diverged + static_cast<int64_t>(method.seeds.size()));
}

// A row with `what` at every length.
FoundTable::Row row_of(const MethodResult& method, Mean AtLength::*what, const Settings& settings) {
  FoundTable::Row row{.label = method.label, .values = {}, .word = "", .remark = remark_of(method)};
  for (size_t n = 0; n < settings.test.lengths.size(); ++n) {
    row.values.emplace_back();
    if (!method.seeds.empty()) row.values.back() = method.at(what, n);
  }
  return row;
}

FoundTable losses(std::span<const MethodResult> methods, const Settings& settings,
                  Mean AtLength::*loss, Mean AtLength::*change, std::string caption) {
  FoundTable table{.caption = std::move(caption),
                   .unit = kLossUnit,
                   .columns = length_columns(settings),
                   .rows = {}};
  table.columns.push_back(
      change_column(fmt::format("{} minus {}", settings.test.longest(), settings.training.length)));
  for (const MethodResult& method : methods) {
    if (!method.reads.empty() || (method.seeds.empty() && method.diverged == 0)) continue;
    FoundTable::Row row = row_of(method, loss, settings);
    row.values.emplace_back();
    if (!method.seeds.empty()) {
      row.values.back() = method.at(change, settings.test.lengths.size() - 1);
      if (loss == &AtLength::sliding) row.word = verdict(method, methods, settings);
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

FoundTable retrieval(std::span<const MethodResult> methods, const Settings& settings) {
  const RetrievalOptions& options = settings.retrieval;
  FoundTable table{
      .caption = fmt::format("Retrieval, trained at {} tokens: share of pairs found; far: at the "
                             "beginning of the text, "
                             "near: {} tokens back; {:.2f} by chance",
                             options.length, near_distance(options), 1.0 / kPairValues),
      .unit = "",
      .columns = {},
      .rows = {}};
  for (const int64_t length : options.lengths) {
    table.columns.push_back({.name = fmt::format("far {}", length),
                             .unit = fmt::format("{} back", far_distance(length, options)),
                             .decimals = 2});
  }
  table.columns.push_back({.name = fmt::format("near {}", options.longest()),
                           .unit = fmt::format("{} back", near_distance(options)),
                           .decimals = 2});
  for (const MethodResult& method : methods) {
    if (!method.reads.empty() || method.pairs.empty()) continue;
    FoundTable::Row row{.label = method.label, .values = {}, .word = "", .remark = ""};
    for (const int64_t length : options.lengths) {
      row.values.push_back(method.found(length, far_distance(length, options)));
    }
    row.values.push_back(method.found(options.longest(), near_distance(options)));
    table.rows.push_back(std::move(row));
  }
  return table;
}

// Stretches of the weights of `base`, sorted by change, smallest first.
FoundTable readings(const MethodResult& base, std::span<const MethodResult> methods,
                    const Settings& settings) {
  const RetrievalOptions& options = settings.retrieval;
  const bool tuned = std::ranges::any_of(methods, [&](const MethodResult& method) {
    return method.reads == base.label && !method.seeds.empty() && method.seeds.front().arm.tune > 0;
  });
  const char* how = tuned ? " (tune=N: after N steps of more training)" : " without more training";
  FoundTable table{.caption = fmt::format("How to stretch the trained {}{}: the last {} bytes of a "
                                          "window, change against {} itself at {}",
                                          base.label, how, settings.training.length / 2, base.label,
                                          settings.training.length),
                   .unit = kLossUnit,
                   .columns = length_columns(settings),
                   .rows = {}};
  table.columns.push_back(
      change_column(fmt::format("{} at {}", base.label, settings.training.length)));
  std::vector<const MethodResult*> rows;
  for (const MethodResult& method : methods) {
    if ((&method == &base || method.reads == base.label) && !method.seeds.empty())
      rows.push_back(&method);
  }
  const bool asked = std::ranges::any_of(rows, [](const auto* row) { return !row->pairs.empty(); });
  for (const auto& [name, distance] : {std::pair("far", far_distance(options.longest(), options)),
                                       std::pair("near", near_distance(options))}) {
    if (!asked) break;
    table.columns.push_back(
        {.name = name, .unit = fmt::format("{} back", distance), .decimals = 2});
  }
  std::ranges::stable_sort(rows, {}, [&](const MethodResult* method) {
    return change(*method, methods, settings).mean;
  });
  for (const MethodResult* const method : rows) {
    FoundTable::Row row = row_of(*method, &AtLength::sliding, settings);
    row.values.emplace_back(change(*method, methods, settings));
    for (const int64_t distance :
         {far_distance(options.longest(), options), near_distance(options)}) {
      if (asked) row.values.push_back(method->found(options.longest(), distance));
    }
    row.word = verdict(*method, methods, settings);
    if (method == &base) row.remark = "(as it is)";
    table.rows.push_back(std::move(row));
  }
  return table;
}

FoundTable attention(std::span<const MethodResult> methods, const Settings& settings) {
  FoundTable table{.caption = fmt::format(
                       "How widely the last {} bytes of a window attend: mean distance of what "
                       "they attend to, and entropy; means over layers and heads",
                       settings.training.length / 2),
                   .unit = "",
                   .columns = {},
                   .rows = {},
                   .in_report_only = true};
  const size_t trained = index_of(settings.training.length, settings);
  const size_t longest = settings.test.lengths.size() - 1;
  for (const size_t at : {trained, longest}) {
    table.columns.push_back({.name = fmt::format("span {}", settings.test.lengths[at]),
                             .unit = "bytes",
                             .decimals = 1});
  }
  for (const size_t at : {trained, longest}) {
    table.columns.push_back({.name = fmt::format("entropy {}", settings.test.lengths[at]),
                             .unit = "nats",
                             .decimals = 2});
  }
  for (const MethodResult& method : methods) {
    if (method.seeds.empty() || method.seeds.front().attention.empty()) continue;
    FoundTable::Row row{.label = method.label, .values = {}, .word = "", .remark = ""};
    for (const auto what : {&AttentionAt::span, &AttentionAt::entropy}) {
      for (const size_t at : {trained, longest}) row.values.push_back(method.attention(what, at));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace

const char* const kCaveat =
    "Loss on text shows where a method breaks past its training length, not long-range use: a "
    "model this small gains nothing beyond a few words of context. Retrieval tests long-range use.";

SeedMean MethodResult::at(Mean AtLength::*what, size_t index) const {
  std::vector<double> values;
  for (const ArmResult& seed : seeds) values.push_back((seed.lengths.at(index).*what).value);
  return seed_mean(values);
}

SeedMean MethodResult::attention(double AttentionAt::*what, size_t index) const {
  std::vector<double> values;
  for (const ArmResult& seed : seeds) {
    double sum = 0, layers = 0;
    for (const AttentionAt& at : seed.attention) {
      if (at.length != seed.lengths.at(index).length) continue;
      sum += at.*what;
      ++layers;
    }
    values.push_back(sum / layers);
  }
  return seed_mean(values);
}

std::optional<SeedMean> MethodResult::found(int64_t length, int64_t distance) const {
  std::vector<double> values;
  for (const ArmResult& seed : pairs) {
    for (const AtDistance& at : seed.retrieval) {
      if (at.length == length && at.distance == distance) values.push_back(at.accuracy.value);
    }
  }
  if (values.empty()) return {};
  return seed_mean(values);
}

std::vector<MethodResult> by_method(std::span<const ArmResult> results) {
  std::vector<MethodResult> methods;
  for (const ArmResult& result : results) {
    auto found = std::ranges::find(methods, result.arm.label, &MethodResult::label);
    if (found == methods.end()) {
      found = methods.insert(methods.end(), {.label = result.arm.label});
    }
    for (const ArmResult& other : results) {
      if (other.arm.name() == result.arm.weights_from) found->reads = other.arm.label;
    }
    const bool pairs = result.arm.task == Task::kPairs;
    if (!result.diverged) {
      (pairs ? found->pairs : found->seeds).push_back(result);
    } else if (!pairs) {
      ++found->diverged;
    }
  }
  return methods;
}

const MethodResult* find_method(std::span<const MethodResult> methods, const std::string& label) {
  const auto found = std::ranges::find(methods, label, &MethodResult::label);
  return found == methods.end() || found->seeds.empty() ? nullptr : &*found;
}

SeedMean change(const MethodResult& method, std::span<const MethodResult> methods,
                const Settings& settings) {
  const size_t longest = settings.test.lengths.size() - 1;
  const MethodResult* const base = find_method(methods, method.reads);
  if (base == nullptr) return method.at(&AtLength::sliding_change, longest);
  std::vector<double> values;
  for (const ArmResult& seed : method.seeds) {
    const auto theirs = std::ranges::find_if(
        base->seeds, [&](const ArmResult& other) { return other.arm.seed == seed.arm.seed; });
    if (theirs == base->seeds.end()) continue;
    values.push_back(
        seed.lengths.at(longest).sliding.value -
        theirs->lengths.at(index_of(settings.training.length, settings)).sliding.value);
  }
  return seed_mean(values);
}

std::string verdict(const MethodResult& method, std::span<const MethodResult> methods,
                    const Settings& settings) {
  if (method.seeds.empty()) return "diverged";
  const double found = change(method, methods, settings).mean;
  return found > kBreaksAbove ? "breaks" : found > kHoldsBelow ? "drifts" : "holds";
}

int64_t near_distance(const RetrievalOptions& options) {
  // The largest tested distance up to half of the training length.
  const std::vector<int64_t> distances = distances_in(options.length, options);
  return distances.size() > 1 ? distances[distances.size() - 2] : distances.back();
}

int64_t far_distance(int64_t length, const RetrievalOptions& options) {
  return distances_in(length, options).back();
}

std::vector<FoundTable> tables(std::span<const MethodResult> methods, const Settings& settings) {
  std::vector<FoundTable> all{
      losses(methods, settings, &AtLength::sliding, &AtLength::sliding_change,
             fmt::format("The last {} bytes of a window of each length (sliding)",
                         settings.training.length / 2)),
      losses(methods, settings, &AtLength::loss, &AtLength::loss_change,
             "All bytes, the text cut into pieces of each length (short pieces lack context at "
             "their start)"),
      retrieval(methods, settings)};
  for (const MethodResult& base : methods) {
    if (std::ranges::find(methods, base.label, &MethodResult::reads) != methods.end() &&
        !base.seeds.empty()) {
      all.push_back(readings(base, methods, settings));
    }
  }
  all.push_back(attention(methods, settings));
  std::erase_if(all, [](const FoundTable& table) { return table.rows.empty(); });
  return all;
}

std::string table(std::span<const MethodResult> methods, const Settings& settings) {
  const bool spreads = std::ranges::any_of(methods, [](const MethodResult& method) {
    return std::max(method.seeds.size(), method.pairs.size()) > 1;
  });
  size_t labels = 10;
  for (const MethodResult& method : methods) labels = std::max(labels, method.label.size());
  const int64_t length = settings.training.length;
  std::string text = fmt::format(
      "Trained at {} bytes. Loss in nats per byte; change: at {} minus at {}, on the same "
      "bytes.{}\n",
      length, settings.test.longest(), length,
      spreads ? "\n±: half of the 95 % interval over seeds." : "");
  for (const FoundTable& one : tables(methods, settings)) {
    if (!one.in_report_only) text += "\n" + text_of(one, labels, spreads ? 15 : 9);
  }
  return text + "\n" + wrapped(kCaveat) + "\n";
}

}  // namespace sextant::lab
