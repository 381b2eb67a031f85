// Each map is rows of cells from the values that arms keep; a map without values is left out.
#include "sextant/lab/report/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "sextant/base/error.h"

namespace sextant::lab {
namespace {

using chart::Cells;
using chart::Colours;
using chart::HeatMap;
using chart::Scale;

const Pictures* pictures_of(const MethodResult& method) {
  return method.seeds.empty() ? nullptr : &method.seeds.front().pictures;
}

// "0", "1", "2–3", "4–7", ...
std::vector<std::string> bin_names(size_t bins) {
  std::vector<std::string> names{"0"};
  for (size_t n = 1; n < bins; ++n) {
    const int64_t first = int64_t{1} << (n - 1);
    names.push_back(first == 1 ? "1" : fmt::format("{}–{}", first, 2 * first - 1));
  }
  return names;
}

// The map, with as many cells as names and room for its rows.
HeatMap by_name(HeatMap map) {
  map.rows.count = std::ssize(map.rows.names);
  map.columns.count = std::ssize(map.columns.names);
  map.width = 760;
  map.height = 130 + 22 * static_cast<int>(map.rows.count);
  return map;
}

HeatMap attention_by_distance(const Findings& findings, int64_t length) {
  const Settings& settings = findings.settings;
  HeatMap map{.title = fmt::format("Attention of the {} by distance, sequences of {}",
                                   scored_bytes(settings), length),
              .subtitle = "shares of the weights of attention, means over layers and heads",
              .x = {.label = "distance",
                    .unit = settings.objective == Objective::kCausal ? "bytes back" : "bytes"},
              .y = {.label = "method"},
              .value = {.label = "share", .low = 0}};
  size_t bins = 0;
  std::vector<std::vector<double>> rows;
  for (const MethodResult& method : findings.methods) {
    const auto at = std::ranges::find(method.attention, length, &AttentionMeans::length);
    if (at == method.attention.end() || at->at_distance.empty()) continue;
    rows.push_back(at->at_distance);
    map.rows.names.push_back(method.label);
    bins = std::max(bins, rows.back().size());
  }
  for (std::vector<double>& row : rows) {
    row.resize(bins, 0);
    map.values.insert(map.values.end(), row.begin(), row.end());
  }
  map.columns.names = bin_names(bins);
  return by_name(std::move(map));
}

// Rows as one row-major array of this many columns; shorter rows are filled with NaN.
std::vector<double> filled(const std::vector<std::vector<double>>& rows, size_t columns) {
  std::vector<double> values;
  for (const std::vector<double>& row : rows) {
    for (size_t n = 0; n < columns; ++n)
      values.push_back(n < row.size() ? row[n] : std::numeric_limits<double>::quiet_NaN());
  }
  return values;
}

Cells cells(size_t count, int64_t step) {
  return {.count = static_cast<int64_t>(count), .first = 0, .step = static_cast<double>(step)};
}

HeatMap attention_map(const MethodResult& method, const Pictures& pictures,
                      const Settings& settings) {
  constexpr double kLeast = 1e-4;
  HeatMap map{.title = fmt::format("{}: attention over a sequence of {}", method.label,
                                   settings.test.longest()),
              .subtitle = fmt::format("trained at {}; means over layers and heads, cells of {} by "
                                      "{} bytes; below {:g} as {:g}",
                                      settings.training.length, pictures.cell, pictures.cell,
                                      kLeast, kLeast),
              .x = {.label = "key", .unit = "position"},
              .y = {.label = "query", .unit = "position"},
              .value = {.label = "share of the query's attention",
                        .scale = Scale::kLog10,
                        .low = kLeast,
                        .high = 1}};
  const size_t count = pictures.attention.size();
  map.rows = map.columns = cells(count, pictures.cell);
  map.values = filled(pictures.attention, count);
  for (double& value : map.values)
    if (std::isfinite(value)) value = std::max(value, kLeast);
  return map;
}

std::string of_positions(const Settings& settings, const Pictures& pictures) {
  return fmt::format("every {}th position below {}, trained below {}", pictures.step,
                     2 * settings.training.length, settings.training.length);
}

HeatMap vector_map(const MethodResult& method, const Pictures& pictures, const Settings& settings) {
  const size_t columns = pictures.vectors.front().size();
  return {.title = method.label + ": what is added at each position",
          .subtitle = of_positions(settings, pictures),
          .x = {.label = "channel"},
          .y = {.label = "position"},
          .value = {.label = "value"},
          .columns = cells(columns, (settings.model.width + static_cast<int64_t>(columns) - 1) /
                                        static_cast<int64_t>(columns)),
          .rows = cells(pictures.vectors.size(), pictures.step),
          .values = filled(pictures.vectors, columns),
          .colours = Colours::kDiverging};
}

HeatMap cosine_map(const MethodResult& method, const Pictures& pictures, const Settings& settings) {
  const size_t count = pictures.cosines.size();
  return {.title = method.label + ": how alike two positions are",
          .subtitle = of_positions(settings, pictures),
          .x = {.label = "position"},
          .y = {.label = "position"},
          .value = {.label = "cosine", .low = -1, .high = 1},
          .columns = cells(count, pictures.step),
          .rows = cells(count, pictures.step),
          .values = filled(pictures.cosines, count),
          .colours = Colours::kDiverging};
}

// "1.1", "1.2", ... for layer and head; the rows are methods.
HeatMap explained_map(const Findings& findings) {
  HeatMap map{.title = "How far distance explains p_i W_q W_k^T p_j after training",
              .subtitle = "p: the vectors added to the input; means over seeds",
              .x = {.label = "layer.head"},
              .y = {.label = "method"},
              .value = {.label = "share of the variance", .low = 0, .high = 1}};
  for (const MethodResult& method : findings.methods) {
    if (!has_products(method)) continue;
    map.rows.names.push_back(method.label);
    const std::vector<HeadProducts>& heads = method.seeds.front().positions.heads;
    map.columns.names.clear();
    for (size_t n = 0; n < heads.size(); ++n) {
      map.columns.names.push_back(fmt::format("{}.{}", heads[n].layer + 1, heads[n].head + 1));
      double sum = 0;
      for (const ArmResult& seed : method.seeds) sum += seed.positions.heads.at(n).trained;
      map.values.push_back(sum / static_cast<double>(method.seeds.size()));
    }
  }
  return by_name(std::move(map));
}

// Cells of tiles with a gap of one cell between them: the middle of each has its number.
Cells tiles(size_t cells, size_t count) {
  const size_t side = (cells + 1) / count;
  if (side * count != cells + 1)
    fail(fmt::format("result: pictures: products: expected {} tiles and gaps, but got {} cells",
                     count, cells));
  Cells out{.count = static_cast<int64_t>(cells), .names = std::vector<std::string>(cells)};
  for (size_t n = 0; n < count; ++n) out.names[n * side + side / 2] = std::to_string(n + 1);
  return out;
}

HeatMap product_map(const MethodResult& method, const Pictures& pictures,
                    const Settings& settings) {
  constexpr double kShown = 3;
  const size_t columns = pictures.products.front().size();
  return {.title = method.label + ": p_i W_q W_k^T p_j after training, by layer and head",
          .subtitle = fmt::format("a tile for each: keys to the right, queries downwards, at every "
                                  "{}th position below {}",
                                  pictures.product_step, settings.training.length),
          .x = {.label = "head"},
          .y = {.label = "layer"},
          .value = {.label = "standard deviations of the head", .low = -kShown, .high = kShown},
          .columns = tiles(columns, static_cast<size_t>(settings.model.heads)),
          .rows = tiles(pictures.products.size(), static_cast<size_t>(settings.model.layers)),
          .values = filled(pictures.products, columns),
          .colours = Colours::kDiverging};
}

}  // namespace

std::vector<NamedMap> maps(const Findings& findings) {
  const Settings& settings = findings.settings;
  std::vector<NamedMap> all;
  if (HeatMap map = explained_map(findings); !map.values.empty())
    all.push_back({"products-by-head", std::move(map)});
  for (const int64_t length : {settings.training.length, settings.test.longest()}) {
    HeatMap map = attention_by_distance(findings, length);
    if (!map.values.empty())
      all.push_back({fmt::format("attention-by-distance-{}", length), std::move(map)});
  }
  for (const MethodResult& method : findings.methods) {
    const Pictures* const pictures = pictures_of(method);
    if (pictures == nullptr || !method.base.empty() || pictures->vectors.empty()) continue;
    all.push_back({"positions-" + method.label, vector_map(method, *pictures, settings)});
    all.push_back({"similarity-" + method.label, cosine_map(method, *pictures, settings)});
    if (!pictures->products.empty())
      all.push_back({"products-" + method.label, product_map(method, *pictures, settings)});
  }
  for (const MethodResult& method : findings.methods) {
    const Pictures* const pictures = pictures_of(method);
    if (pictures == nullptr || !method.base.empty() || pictures->attention.empty()) continue;
    all.push_back({"attention-" + method.label, attention_map(method, *pictures, settings)});
  }
  for (NamedMap& one : all) {
    std::ranges::replace(one.file, '/', '_');
    one.map.name = one.file;
  }
  return all;
}

std::vector<chart::Marker> training_length(int64_t length) {
  return {{.x = static_cast<double>(length), .label = "training length"}};
}

bool has_scores(const MethodResult& method) {
  const Pictures* const pictures = pictures_of(method);
  return pictures != nullptr && !pictures->scores.empty();
}

chart::LineChart scores_by_distance(std::span<const MethodResult* const> methods,
                                    const Settings& settings) {
  constexpr double kLeastShown = 20;  // weights below e^-20 are negligible
  const bool causal = settings.objective == Objective::kCausal;
  chart::LineChart chart{
      .title = "What distance does to scores",
      .subtitle =
          "one vector as query and key everywhere, after training; bands: from the least "
          "to the greatest head",
      .x = {.label = "distance",
            .unit = causal ? "bytes back" : "bytes back; below 0 ahead",
            .scale = causal ? Scale::kLog2 : Scale::kLinear},
      .y = {.label = "score, minus that at distance 0", .low = -kLeastShown},
      .markers = training_length(settings.training.length)};
  for (const MethodResult* const method : methods) {
    if (!has_scores(*method)) continue;
    const Pictures& pictures = *pictures_of(*method);
    chart::Series line{.name = method->label};
    const auto zero =
        static_cast<size_t>(std::ranges::find(pictures.distances, 0) - pictures.distances.begin());
    for (size_t n = 0; n < pictures.distances.size(); ++n) {
      if (n == zero && causal) continue;  // a logarithmic axis has no 0
      double sum = 0, low = INFINITY, high = -INFINITY;
      for (const std::vector<double>& head : pictures.scores) {
        const double score = head.at(n) - head.at(zero);
        sum += score;
        low = std::min(low, score);
        high = std::max(high, score);
      }
      if (!std::isfinite(sum)) continue;  // some head masks this distance
      line.x.push_back(static_cast<double>(pictures.distances[n]));
      line.y.push_back(sum / static_cast<double>(pictures.scores.size()));
      line.low.push_back(low);
      line.high.push_back(high);
    }
    chart.series.push_back(std::move(line));
  }
  return chart;
}

}  // namespace sextant::lab
