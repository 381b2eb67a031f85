#include "sextant/lab/report/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "sextant/lab/data/retrieval_task.h"

namespace sextant::lab {
namespace {

constexpr const char* kLossUnit = "nats per byte";

ResultTable::Column change_column(const std::string& unit) {
  return {.name = "change", .unit = unit, .sign = true};
}

std::vector<ResultTable::Column> length_columns(const Settings& settings) {
  std::vector<ResultTable::Column> columns;
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

// A row with a loss at every length.
ResultTable::Row row_of(const MethodResult& method, MeanInterval LossMeans::*loss,
                        const Settings& settings) {
  ResultTable::Row row{.label = method.label, .values = {}, .remark = remark_of(method)};
  for (size_t n = 0; n < settings.test.lengths.size(); ++n) {
    row.values.emplace_back();
    if (!method.seeds.empty()) row.values.back() = method.losses.at(n).*loss;
  }
  return row;
}

struct LossTable {
  MeanInterval LossMeans::*loss;
  MeanInterval LossMeans::*change;
  std::string caption;
  bool verdicts = false;
};

ResultTable loss_table(const Findings& findings, const LossTable& wanted) {
  const Settings& settings = findings.settings;
  ResultTable table{.caption = wanted.caption,
                    .unit = kLossUnit,
                    .columns = length_columns(settings),
                    .rows = {}};
  table.columns.push_back(
      change_column(fmt::format("{} minus {}", settings.test.longest(), settings.training.length)));
  for (const MethodResult& method : findings.methods) {
    if (!method.base.empty() || (method.seeds.empty() && method.diverged == 0)) continue;
    ResultTable::Row row = row_of(method, wanted.loss, settings);
    row.values.emplace_back();
    if (!method.seeds.empty()) {
      row.values.back() = method.losses_at(settings.test.longest()).*wanted.change;
      if (wanted.verdicts) row.verdict = method.verdict;
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::string small_task_remark(const MethodResult& method) {
  return method.retrieval == Learned::kNo ? "(not learned)" : "";
}

// A column of the accuracy on the small task in a table of losses.
struct AccuracyColumn {
  ResultTable::Column column;
  std::function<std::optional<MeanInterval>(const MethodResult&)> accuracy;
};

// In sequences of this length: pairs at their beginning and near ones, or marks of all distances.
std::vector<AccuracyColumn> accuracy_columns(const Settings& settings, int64_t length) {
  if (small_task(settings) == Task::kDirection) {
    return {{.column = {.name = fmt::format("direction {}", length), .unit = "", .decimals = 2},
             .accuracy = [length](const MethodResult& method) {
               return method.mean_accuracy_at(length);
             }}};
  }
  std::vector<AccuracyColumn> columns;
  const RetrievalOptions& options = settings.retrieval;
  for (const auto& [name, distance] : {std::pair{"far", far_distance(length, options)},
                                       std::pair{"near", near_distance(options)}}) {
    columns.push_back(
        {.column = {.name = name, .unit = fmt::format("{} back", distance), .decimals = 2},
         .accuracy = [length, distance = distance](const MethodResult& method) {
           return method.accuracy_at(length, distance);
         }});
  }
  return columns;
}

ResultTable retrieval_table(const Findings& findings) {
  const RetrievalOptions& options = findings.settings.retrieval;
  ResultTable table{
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
  for (const MethodResult& method : findings.methods) {
    if (!method.base.empty() || method.pairs.empty()) continue;
    ResultTable::Row row{.label = method.label, .values = {}};
    row.remark = small_task_remark(method);
    for (const int64_t length : options.lengths) {
      row.values.push_back(method.accuracy_at(length, far_distance(length, options)));
    }
    row.values.push_back(method.accuracy_at(options.longest(), near_distance(options)));
    table.rows.push_back(std::move(row));
  }
  return table;
}

ResultTable direction_table(const Findings& findings) {
  const RetrievalOptions& options = findings.settings.retrieval;
  ResultTable table{.caption = fmt::format(
                        "Direction, trained at {} tokens: share of marks tagged by what stands "
                        "on their left, with a cue on either side; at most 0.50 without a sense of "
                        "direction",
                        options.length),
                    .unit = "",
                    .columns = {},
                    .rows = {}};
  for (const int64_t length : options.lengths) {
    table.columns.push_back({.name = std::to_string(length), .unit = "", .decimals = 2});
  }
  for (const MethodResult& method : findings.methods) {
    if (!method.base.empty() || method.pairs.empty()) continue;
    ResultTable::Row row{.label = method.label, .values = {}};
    row.remark = small_task_remark(method);
    for (const int64_t length : options.lengths) {
      row.values.push_back(method.mean_accuracy_at(length));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

// The base and its stretches, sorted by change, smallest first.
std::vector<const MethodResult*> stretches_of(const MethodResult& base,
                                              std::span<const MethodResult> methods) {
  std::vector<const MethodResult*> all;
  for (const MethodResult& method : methods) {
    const bool stretches = method.base == base.label && method.drop_channels == 0;
    if ((&method == &base || stretches) && !method.seeds.empty()) {
      all.push_back(&method);
    }
  }
  std::ranges::stable_sort(all, {}, [](const MethodResult* one) { return one->change.mean; });
  return all;
}

ResultTable stretch_table(const MethodResult& base, const Findings& findings) {
  const Settings& settings = findings.settings;
  const RetrievalOptions& options = settings.retrieval;
  const std::vector<const MethodResult*> rows = stretches_of(base, findings.methods);
  const bool tuned = std::ranges::any_of(rows, [&](const MethodResult* row) {
    return row != &base && row->seeds.front().arm.tune > 0;
  });
  const char* how = tuned ? " (tune=N: after N steps of more training)" : " without more training";
  ResultTable table{.caption = fmt::format("How to stretch the trained {}{}: the {} of a "
                                           "window, change against {} itself at {}",
                                           base.label, how, scored_bytes(settings), base.label,
                                           settings.training.length),
                    .unit = kLossUnit,
                    .columns = length_columns(settings),
                    .rows = {}};
  table.columns.push_back(
      change_column(fmt::format("{} at {}", base.label, settings.training.length)));
  const bool asked = std::ranges::any_of(rows, [](const auto* row) { return !row->pairs.empty(); });
  std::vector<AccuracyColumn> accuracies;
  if (asked) accuracies = accuracy_columns(settings, options.longest());
  for (const AccuracyColumn& one : accuracies) table.columns.push_back(one.column);
  for (const MethodResult* const method : rows) {
    ResultTable::Row row = row_of(*method, &LossMeans::sliding, settings);
    row.values.emplace_back(method->change);
    for (const AccuracyColumn& one : accuracies) row.values.push_back(one.accuracy(*method));
    row.verdict = method->verdict;
    if (method == &base) row.remark = "(as it is)";
    table.rows.push_back(std::move(row));
  }
  return table;
}

// Each method that lost channels, after the method with all of them.
ResultTable dropped_table(const Findings& findings) {
  const Settings& settings = findings.settings;
  const RetrievalOptions& options = settings.retrieval;
  const int64_t trained = settings.training.length;
  ResultTable table{
      .caption = fmt::format("Channels of the added position vector set to zero, with the weights "
                             "trained with all: the {} of a window; lost: against all channels, "
                             "at {}",
                             scored_bytes(settings), trained),
      .unit = kLossUnit,
      .columns = length_columns(settings),
      .rows = {}};
  table.columns.push_back({.name = "lost", .unit = fmt::format("at {}", trained), .sign = true});
  const bool asked = std::ranges::any_of(findings.methods, [](const MethodResult& method) {
    return method.drop_channels > 0 && !method.pairs.empty();
  });
  std::vector<AccuracyColumn> accuracies;
  if (asked) accuracies = {accuracy_columns(settings, options.length).front()};
  for (const AccuracyColumn& one : accuracies) {
    table.columns.push_back(one.column);
    if (small_task(settings) == Task::kPairs) {
      table.columns.back().name += fmt::format(" {}", options.length);
    }
  }
  const auto add = [&](const MethodResult& method) {
    ResultTable::Row row = row_of(method, &LossMeans::sliding, settings);
    row.values.push_back(method.lost);
    for (const AccuracyColumn& one : accuracies) row.values.push_back(one.accuracy(method));
    table.rows.push_back(std::move(row));
  };
  for (const MethodResult& base : findings.methods) {
    const auto lost_some = [&](const MethodResult& method) {
      return method.drop_channels > 0 && method.base == base.label && !method.seeds.empty();
    };
    if (std::ranges::none_of(findings.methods, lost_some)) continue;
    add(base);
    table.rows.back().remark = "(all channels)";
    for (const MethodResult& method : findings.methods) {
      if (lost_some(method)) add(method);
    }
  }
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
      .caption = fmt::format("How widely the {} of a window attend: mean distance of "
                             "what they attend to, and entropy; means over layers and heads",
                             scored_bytes(settings)),
      .unit = "",
      .columns = {},
      .rows = {},
      .in_report_only = true};
  const int64_t lengths[] = {settings.training.length, settings.test.longest()};
  for (const int64_t length : lengths) {
    table.columns.push_back(
        {.name = fmt::format("span {}", length), .unit = "bytes", .decimals = 1});
  }
  for (const int64_t length : lengths) {
    table.columns.push_back(
        {.name = fmt::format("entropy {}", length), .unit = "nats", .decimals = 2});
  }
  for (const MethodResult& method : findings.methods) {
    if (method.attention.empty()) continue;
    ResultTable::Row row{.label = method.label, .values = {}};
    for (const auto what : {&AttentionMeans::span, &AttentionMeans::entropy}) {
      for (const AttentionMeans& at : method.attention) row.values.emplace_back(at.*what);
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

ResultTable products_table(const Findings& findings) {
  const Settings& settings = findings.settings;
  ResultTable table{
      .caption = fmt::format(
          "Share of the variance of p_i W_q W_k^T p_j that the distance i - j explains, for the "
          "vectors p added to the input at positions below {}: without W, with the random W before "
          "training, and with the trained W of each layer; means over heads",
          settings.training.length),
      .unit = "",
      .columns = {{.name = "no W", .unit = "", .decimals = 2},
                  {.name = "random W", .unit = "", .decimals = 2}},
      .rows = {},
      .in_report_only = true};
  for (int64_t layer = 0; layer < settings.model.layers; ++layer) {
    table.columns.push_back(
        {.name = fmt::format("layer {}", layer + 1), .unit = "", .decimals = 2});
  }
  for (const MethodResult& method : findings.methods) {
    if (!has_products(method)) continue;
    const auto mean = [&](const auto& share_of) -> std::optional<MeanInterval> {
      std::vector<double> shares;
      for (const ArmResult& seed : method.seeds) {
        const double share = share_of(seed);
        if (!std::isnan(share)) shares.push_back(share);
      }
      if (shares.empty()) return {};
      return interval95(shares);
    };
    ResultTable::Row row{.label = method.label, .values = {}};
    row.values.push_back(mean([](const ArmResult& seed) { return seed.positions.plain; }));
    row.values.push_back(
        mean([](const ArmResult& seed) { return mean_share(seed, &HeadProducts::untrained); }));
    for (int64_t layer = 0; layer < settings.model.layers; ++layer) {
      row.values.push_back(mean([layer](const ArmResult& seed) {
        return mean_share(seed, &HeadProducts::trained, layer);
      }));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace

const char* caveat(const Settings& settings) {
  return settings.objective == Objective::kMasked
             ? "Loss on text shows where a method breaks past its training length. It does not "
               "show "
               "whether a method tells left from right, which the direction task tests."
             : "Loss on text shows where a method breaks past its training length, not long-range "
               "use: a model this small gains nothing beyond a few words of context. Retrieval "
               "tests long-range use.";
}

std::vector<ResultTable> tables(const Findings& findings) {
  std::vector<ResultTable> all{
      loss_table(findings, {.loss = &LossMeans::sliding,
                            .change = &LossMeans::sliding_change,
                            .caption = fmt::format("The {} of a window of each length (sliding)",
                                                   scored_bytes(findings.settings)),
                            .verdicts = true}),
      loss_table(findings, {.loss = &LossMeans::loss,
                            .change = &LossMeans::loss_change,
                            .caption = pieces_caption(findings.settings)}),
      findings.settings.objective == Objective::kMasked ? direction_table(findings)
                                                        : retrieval_table(findings)};
  for (const MethodResult& base : findings.methods) {
    if (base.is_base && !base.seeds.empty()) all.push_back(stretch_table(base, findings));
  }
  all.push_back(dropped_table(findings));
  all.push_back(products_table(findings));
  all.push_back(attention_table(findings));
  std::erase_if(all, [](const ResultTable& table) { return table.rows.empty(); });
  return all;
}

}  // namespace sextant::lab
