// Each table chooses its methods and its columns; fill() makes the rows.
#include "sextant/lab/report/result_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "sextant/lab/data/retrieval_task.h"
#include "sextant/lab/result/interval.h"

namespace sextant::lab {
namespace {

constexpr const char* kLossUnit = "nats per byte";

using Value = std::optional<MeanInterval>;
using Columns = std::vector<ValueColumn>;
using Methods = std::vector<const MethodResult*>;

Methods chosen(const Findings& findings, const auto& wanted) {
  Methods methods;
  for (const MethodResult& method : findings.methods)
    if (wanted(method)) methods.push_back(&method);
  return methods;
}

std::string no_remark(const MethodResult& /*method*/) { return ""; }

// A column with a loss of every length.
Columns loss_columns(const Settings& settings, MeanInterval LossMeans::*loss) {
  Columns columns;
  for (size_t n = 0; n < settings.test.lengths.size(); ++n) {
    columns.push_back({.column = {.name = std::to_string(settings.test.lengths[n])},
                       .value = [=](const MethodResult& method) {
                         return method.losses.empty() ? Value() : method.losses.at(n).*loss;
                       }});
  }
  return columns;
}

ResultTable loss_table(const Findings& findings, ResultTable table, MeanInterval LossMeans::*loss,
                       MeanInterval LossMeans::*change) {
  const Settings& settings = findings.settings;
  const int64_t longest = settings.test.longest();
  table.unit = kLossUnit;
  Columns columns = loss_columns(settings, loss);
  columns.push_back(
      {.column = {.name = "change",
                  .unit = fmt::format("{} minus {}", longest, settings.training.length),
                  .sign = true},
       .value = [=](const MethodResult& method) {
         return method.losses.empty() ? Value() : method.losses_at(longest).*change;
       }});
  const Methods methods = chosen(findings, [](const MethodResult& method) {
    return method.base.empty() && (!method.losses.empty() || method.diverged > 0);
  });
  fill(table, methods, columns, loss == &LossMeans::sliding, remark_of);
  return table;
}

// Retrieval or direction of the trained methods.
ResultTable small_task_table(const Findings& findings) {
  const Settings& settings = findings.settings;
  const RetrievalOptions& options = settings.retrieval;
  ResultTable table{
      .name = "retrieval",
      .caption = fmt::format("Retrieval, trained at {} tokens: share of pairs found; far: at the "
                             "beginning of the text, near: {} tokens back; {:.2f} by chance",
                             options.length, near_distance(options), 1.0 / kPairValues)};
  Columns columns;
  if (settings.objective == Objective::kMasked) {
    table = {.name = "direction",
             .caption = fmt::format(
                 "Direction, trained at {} tokens: share of marks tagged by what stands on their "
                 "left, with a cue on either side; at most 0.50 without a sense of direction",
                 options.length)};
    for (const int64_t length : options.lengths) {
      columns.push_back(direction_column(length));
      columns.back().column.name = std::to_string(length);
    }
  } else {
    for (const int64_t length : options.lengths) columns.push_back(far_column(settings, length));
    columns.push_back(near_column(settings, options.longest()));
  }
  const Methods methods = chosen(findings, [](const MethodResult& method) {
    return method.base.empty() && !method.pairs.empty();
  });
  fill(table, methods, columns, false, [](const MethodResult& method) {
    return method.retrieval == Learned::kNo ? "(not learned)" : "";
  });
  return table;
}

// The accuracies of sequences of this length in a table of losses, if a method has some.
void add_accuracies(const Settings& settings, int64_t length, const Methods& methods,
                    Columns& columns) {
  if (std::ranges::all_of(methods, [](const auto* method) { return method->pairs.empty(); }))
    return;
  if (small_task(settings) == Task::kDirection) {
    columns.push_back(direction_column(length));
    return;
  }
  columns.push_back(far_column(settings, length));
  columns.back().column.name = "far";
  columns.push_back(near_column(settings, length));
  columns.back().column.name = "near";
}

// The base and its stretches, by change.
ResultTable stretch_table(const MethodResult& base, const Findings& findings) {
  const Settings& settings = findings.settings;
  const int64_t trained = settings.training.length;
  Methods methods = chosen(findings, [&](const MethodResult& method) {
    const bool stretches = method.base == base.label && method.drop_channels == 0;
    return (&method == &base || stretches) && !method.losses.empty();
  });
  std::ranges::stable_sort(methods, {}, [](const auto* method) { return method->change.mean; });
  const bool tuned = std::ranges::any_of(methods, [&](const MethodResult* method) {
    return method != &base && method->seeds.front().arm.tune > 0;
  });
  ResultTable table{
      .name = "stretches-of-" + base.label,
      .caption = fmt::format(
          "How to stretch the trained {}{}: the {} of a window, change against {} itself at {}",
          base.label,
          tuned ? " (tune=N: after N steps of more training)" : " without more training",
          scored_bytes(settings), base.label, trained),
      .unit = kLossUnit};
  Columns columns = loss_columns(settings, &LossMeans::sliding);
  columns.push_back({.column = {.name = "change",
                                .unit = fmt::format("{} at {}", base.label, trained),
                                .sign = true},
                     .value = [](const MethodResult& method) { return method.change; }});
  add_accuracies(settings, settings.retrieval.longest(), methods, columns);
  fill(table, methods, columns, true,
       [&](const MethodResult& method) { return &method == &base ? "(as it is)" : ""; });
  return table;
}

// Each method that lost channels, after the method with all of them.
ResultTable dropped_table(const Findings& findings) {
  const Settings& settings = findings.settings;
  const int64_t trained = settings.training.length;
  ResultTable table{.name = "lost-channels",
                    .caption = fmt::format(
                        "Channels of the added position vector set to zero, with the weights "
                        "trained with all: the {} of a window; lost: against all channels, at {}",
                        scored_bytes(settings), trained),
                    .unit = kLossUnit};
  Methods methods;
  for (const MethodResult& base : findings.methods) {
    const Methods lost = chosen(findings, [&](const MethodResult& method) {
      return method.drop_channels > 0 && method.base == base.label && !method.losses.empty();
    });
    if (!lost.empty()) methods.push_back(&base);
    methods.insert(methods.end(), lost.begin(), lost.end());
  }
  Columns columns = loss_columns(settings, &LossMeans::sliding);
  columns.push_back(
      {.column = {.name = "lost", .unit = fmt::format("at {}", trained), .sign = true},
       .value = [](const MethodResult& method) { return method.lost; }});
  Columns accuracies;
  add_accuracies(settings, settings.retrieval.length, methods, accuracies);
  if (!accuracies.empty()) {
    columns.push_back(accuracies.front());
    if (small_task(settings) == Task::kPairs)
      columns.back().column.name += fmt::format(" {}", settings.retrieval.length);
  }
  fill(table, methods, columns, false, [](const MethodResult& method) {
    return method.drop_channels == 0 ? "(all channels)" : "";
  });
  return table;
}

const char* pieces_caption(const Settings& settings) {
  return settings.objective == Objective::kMasked
             ? "One byte of seven, the text cut into pieces of each length (short pieces lack "
               "context at both ends)"
             : "All bytes, the text cut into pieces of each length (short pieces lack context at "
               "their start)";
}

ResultTable attention_table(const Findings& findings) {
  const Settings& settings = findings.settings;
  ResultTable table{
      .name = "attention",
      .caption = fmt::format("How widely the {} of a window attend: mean distance of what they "
                             "attend to, and entropy; means over layers and heads",
                             scored_bytes(settings)),
      .in_report_only = true};
  Columns columns;
  const auto add = [&](const char* name, const char* unit, int decimals,
                       MeanInterval AttentionMeans::*what) {
    for (const size_t n : {size_t{0}, size_t{1}}) {  // at L and at the longest length
      const int64_t length = n == 0 ? settings.training.length : settings.test.longest();
      columns.push_back(
          {.column = {.name = fmt::format("{} {}", name, length),
                      .unit = unit,
                      .decimals = decimals},
           .value = [=](const MethodResult& method) { return method.attention.at(n).*what; }});
    }
  };
  add("span", "bytes", 1, &AttentionMeans::span);
  add("entropy", "nats", 2, &AttentionMeans::entropy);
  fill(table,
       chosen(findings, [](const MethodResult& method) { return !method.attention.empty(); }),
       columns, false, no_remark);
  return table;
}

// The mean of a share over the seeds that have one.
Value mean_over(const MethodResult& method, const auto& share_of) {
  std::vector<double> shares;
  for (const ArmResult& seed : method.seeds) {
    const double share = share_of(seed);
    if (!std::isnan(share)) shares.push_back(share);
  }
  if (shares.empty()) return {};
  return interval95(shares);
}

// The means over heads, and in the notes the smallest and the largest head.
ValueColumn products_column(const std::string& name, double HeadProducts::*share,
                            std::optional<int64_t> layer) {
  return {.column = {.name = name, .decimals = 2},
          .value =
              [=](const MethodResult& method) {
                return mean_over(
                    method, [=](const ArmResult& seed) { return mean_share(seed, share, layer); });
              },
          .note = [=](const MethodResult& method) -> std::string {
            double low = INFINITY, high = -INFINITY;
            for (const ArmResult& seed : method.seeds) {
              for (const HeadProducts& head : seed.positions.heads) {
                if (layer && head.layer != *layer) continue;
                low = std::fmin(low, head.*share);
                high = std::fmax(high, head.*share);
              }
            }
            return low <= high ? fmt::format("{:.2f} to {:.2f}", low, high) : "";
          }};
}

ResultTable products_table(const Findings& findings) {
  const Settings& settings = findings.settings;
  ResultTable table{
      .name = "products",
      .caption = fmt::format(
          "Share of the variance of p_i W_q W_k^T p_j that the distance i - j explains, for the "
          "vectors p added to the input at positions below {}: without W, with the random W before "
          "training, and with the trained W of each layer; means over heads, and below them the "
          "smallest and the largest head",
          settings.training.length),
      .in_report_only = true};
  Columns columns{
      {.column = {.name = "no W", .decimals = 2}, .value = [](const MethodResult& method) {
         return mean_over(method, [](const ArmResult& seed) { return seed.positions.plain; });
       }}};
  columns.push_back(products_column("random W", &HeadProducts::untrained, {}));
  for (int64_t layer = 0; layer < settings.model.layers; ++layer)
    columns.push_back(
        products_column(fmt::format("layer {}", layer + 1), &HeadProducts::trained, layer));
  fill(table, chosen(findings, has_products), columns, false, no_remark);
  return table;
}

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
  for (const ResultTable::Column& column : table.columns)
    text += fmt::format("{:>{}}", column.name, width_of(column, width));
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

const char* caveat(const Settings& settings) {
  return settings.objective == Objective::kMasked
             ? "Loss on text shows where a method breaks past its training length. It does not "
               "show whether a method tells left from right, which the direction task tests."
             : "Loss on text shows where a method breaks past its training length, not long-range "
               "use: a model this small gains nothing beyond a few words of context. Retrieval "
               "tests long-range use.";
}

std::vector<ResultTable> tables(const Findings& findings) {
  const Settings& settings = findings.settings;
  std::vector<ResultTable> all{
      loss_table(findings,
                 {.name = "sliding",
                  .caption = fmt::format("The {} of a window of each length (sliding)",
                                         scored_bytes(settings))},
                 &LossMeans::sliding, &LossMeans::sliding_change),
      loss_table(findings, {.name = "pieces", .caption = pieces_caption(settings)},
                 &LossMeans::loss, &LossMeans::loss_change),
      small_task_table(findings)};
  for (const MethodResult& base : findings.methods)
    if (base.is_base && !base.losses.empty()) all.push_back(stretch_table(base, findings));
  all.push_back(dropped_table(findings));
  all.push_back(products_table(findings));
  all.push_back(attention_table(findings));
  std::erase_if(
      all, [](const ResultTable& table) { return table.rows.empty() || table.columns.empty(); });
  return all;
}

std::string tables_text(const Findings& findings) {
  size_t labels = 10;
  for (const MethodResult& method : findings.methods)
    labels = std::max(labels, method.label.size());
  const Settings& settings = findings.settings;
  const int64_t length = settings.training.length;
  std::string text = fmt::format(
      "Trained at {} bytes. Loss in nats per {}; change: at {} minus at {}, on the same bytes.{}\n",
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
