#include "sextant/cli/plot/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>

#include "sextant/base/error.h"
#include "sextant/base/random.h"
#include "sextant/position/position_products.h"

namespace sextant::cli {
namespace {

constexpr int64_t kMostPositions = 2048;  // per side of a matrix; 34 MB of .npy
constexpr int64_t kLongestAxis = int64_t{1} << 40;

const chart::Axis kDistance = {.label = "distance: query position − key position",
                               .unit = "tokens"};

chart::HeatMap empty_map(const PlotSubject& subject, const std::string& title) {
  chart::HeatMap map;
  map.title = subject.title + ": " + title;
  map.subtitle = subject.settings;
  map.rows = {.count = static_cast<int64_t>(subject.positions.list.size()),
              .step = static_cast<double>(subject.positions.step)};
  map.y = {.label = "position"};
  return map;
}

chart::HeatMap row_map_of(const PlotSubject& subject, std::span<const double> rows) {
  chart::HeatMap map = empty_map(subject, "the vector of each position");
  map.columns.count = static_cast<int64_t>(rows.size()) / map.rows.count;
  map.x = {.label = "dimension"};
  map.value = {.label = "value"};
  map.values.assign(rows.begin(), rows.end());
  map.colours = chart::Colours::kDiverging;
  return map;
}

// Adds the mean, minimum and maximum of one diagonal, if it has values other than NaN.
void add_diagonal(chart::Series& to, const Positions& positions, std::span<const double> matrix,
                  int64_t apart) {
  const auto count = static_cast<int64_t>(positions.list.size());
  double sum = 0, least = INFINITY, greatest = -INFINITY;
  int64_t seen = 0;
  for (int64_t i = std::max<int64_t>(apart, 0); i < std::min(count, count + apart); ++i) {
    const double value = matrix[static_cast<size_t>(i * count + i - apart)];
    if (std::isnan(value)) continue;
    sum += value;
    ++seen;
    least = std::min(least, value);
    greatest = std::max(greatest, value);
  }
  if (seen == 0) return;
  to.x.push_back(static_cast<double>(apart * positions.step));
  to.y.push_back(sum / static_cast<double>(seen));
  to.low.push_back(least);
  to.high.push_back(greatest);
}

struct Product {
  std::string name;  // "no W"; "random W, head 1"
  std::vector<double> matrix;
};

std::vector<double> random_matrix(uint64_t seed, const std::string& stream, size_t width,
                                  size_t columns) {
  const CounterRandom random(seed, stream);
  const double deviation = 1 / std::sqrt(static_cast<double>(width));
  std::vector<double> out(width * columns);
  for (size_t n = 0; n < out.size(); ++n) out[n] = deviation * random.normal(n);
  return out;
}

std::vector<Product> products_of(const PlotValues& values, std::span<const double> rows,
                                 int64_t count) {
  const int64_t heads = values.integer("heads", 1, 64);
  const auto columns = static_cast<size_t>(values.integer("head-dim", 1, 1024));
  const auto seed = static_cast<uint64_t>(values.integer("seed", 0, int64_t{1} << 53));
  const size_t width = rows.size() / static_cast<size_t>(count);
  std::vector<Product> out = {{"no W", position_products(rows, count)}};
  for (int64_t head = 1; head <= heads; ++head) {
    const std::vector<double> query =
        random_matrix(seed, fmt::format("plot/query/{}", head), width, columns);
    const std::vector<double> key =
        random_matrix(seed, fmt::format("plot/key/{}", head), width, columns);
    out.push_back({fmt::format("random W, head {}", head),
                   position_products(rows, count, {.query = query, .key = key})});
  }
  return out;
}

chart::HeatMap map_of(const PlotSubject& subject, const std::string& title, const Product& product,
                      const std::string& formula) {
  chart::HeatMap map = square_map(subject, title);
  map.value = {.label = formula};
  map.values = product.matrix;
  return map;
}

// Products without W above, and behind the W of each head below.
chart::Panels distance_panels(const PlotSubject& subject, const std::vector<Product>& products,
                              const NumberTable& explained) {
  const DistanceView view = {.value = {.label = "product", .unit = "standard deviations"},
                             .future = true};
  std::vector<chart::Series> without, behind;
  for (size_t n = 0; n < products.size(); ++n) {
    chart::Series line =
        by_distance(subject.positions, standardised(products[n].matrix), view.future);
    const std::string name = n == 0 ? products[0].name : fmt::format("head {}", n);
    const double share = explained.rows[n].second[0];  // of the past
    line.name = std::isnan(share) ? name : fmt::format("{}: {:.0f} %", name, 100 * share);
    if (n > 1) {
      line.low.clear();
      line.high.clear();
    }
    (n == 0 ? without : behind).push_back(std::move(line));
  }
  const auto part = [&](std::vector<chart::Series> series, const std::string& words) {
    chart::LineChart chart = distance_chart(subject, view, std::move(series));
    chart.subtitle = words;
    chart.height = 250;
    return chart;
  };
  return {.title = subject.title + ": products with and without W against distance",
          .subtitle = subject.settings,
          .parts = {part(std::move(without),
                         "Without W. Percent: how much of the product's variance among earlier "
                         "keys distance explains"),
                    part(std::move(behind), "Behind random W; the band is that of head 1")}};
}

NumberTable explained_by_distance(const std::vector<Product>& products, int64_t count) {
  NumberTable table = {.title = "share of the variance of p_i W_q W_k^T p_j that distance explains",
                       .columns = {"past", "all"},
                       .rows = {}};
  for (const Product& product : products)
    table.rows.push_back(
        {product.name,
         {variance_explained_by_distance(product.matrix, count, PairsOfPositions::kPast),
          variance_explained_by_distance(product.matrix, count, PairsOfPositions::kAll)}});
  return table;
}

// "product": p_i . p_j. "random-w": p_i W_q W_k^T p_j of the first head, W_q and W_k [width,
// head_dim] of independent normal numbers of variance 1 / width, as a model begins its training.
// "explained-distance": both by distance in two panels, in standard deviations of their matrix,
// with a band from the minimum to the maximum, and the means of the other heads; the names of the
// lines have the share of keys before the query. "explained": the share of the variance that
// distance explains, of keys before the query and of all.
std::vector<Figure> projected_figures(const PlotValues& values, const PlotSubject& subject,
                                      std::span<const double> rows) {
  const auto count = static_cast<int64_t>(subject.positions.list.size());
  const std::vector<Product> products = products_of(values, rows, count);
  const NumberTable explained = explained_by_distance(products, count);
  PlotSubject random = subject;
  random.settings += fmt::format("; W_q, W_k random, {} columns, seed {}", values.text("head-dim"),
                                 values.text("seed"));
  return {{"product", map_of(subject, "products without W", products[0], "p_i . p_j")},
          {"random-w", map_of(random, "products with random W", products[1], "p_i W_q W_k^T p_j")},
          {"explained-distance", distance_panels(random, products, explained)},
          {"explained", explained}};
}

}  // namespace

chart::HeatMap square_map(const PlotSubject& subject, const std::string& title) {
  chart::HeatMap map = empty_map(subject, title);
  map.columns = map.rows;
  map.y = {.label = "query position"};
  map.x = {.label = "key position"};
  return map;
}

std::vector<double> cosines(std::span<const double> rows, size_t count) {
  std::vector<double> out = position_products(rows, static_cast<int64_t>(count));
  std::vector<double> length(count);
  for (size_t i = 0; i < count; ++i) length[i] = std::sqrt(out[i * count + i]);
  for (size_t i = 0; i < count; ++i) {
    for (size_t j = 0; j < count; ++j) {
      const double norm = length[i] * length[j];
      out[i * count + j] = norm > 0 ? out[i * count + j] / norm : std::nan("");
    }
  }
  return out;
}

chart::Series by_distance(const Positions& positions, std::span<const double> matrix, bool future) {
  const auto count = static_cast<int64_t>(positions.list.size());
  chart::Series out;
  for (int64_t apart = future ? 1 - count : 0; apart < count; ++apart)
    add_diagonal(out, positions, matrix, apart);
  return out;
}

std::vector<PlotOption> with_positions(std::vector<PlotOption> options, int64_t length) {
  options.push_back({"length", "draw positions below this", std::to_string(length)});
  options.push_back({"step", "every so many positions", "1"});
  return options;
}

Positions positions_of(const PlotValues& values) {
  const int64_t length = values.integer("length", 1, kLongestAxis);
  Positions out = {.step = values.integer("step", 1, kLongestAxis)};
  const int64_t count = (length - 1) / out.step + 1;
  if (count > kMostPositions) {
    fail(
        fmt::format("plot {}: --length {} with --step {}: expected at most {} positions, but got "
                    "{}; --step {} would do",
                    values.method(), length, out.step, kMostPositions, count,
                    (length - 1) / kMostPositions + 1));
  }
  for (int64_t i = 0; i < count; ++i) out.list.push_back(i * out.step);
  return out;
}

std::vector<Figure> vector_figures(const PlotSubject& subject, std::span<const double> rows,
                                   std::vector<double> similarity, const chart::Axis& label) {
  chart::HeatMap map = square_map(subject, label.label + " between positions");
  map.value = label;
  map.values = std::move(similarity);
  const chart::LineChart line = distance_chart(
      subject, {.value = label}, {by_distance(subject.positions, map.values, /*future=*/false)});
  return {
      {"vectors", row_map_of(subject, rows)}, {label.label, std::move(map)}, {"distance", line}};
}

std::vector<Figure> score_figures(const PlotSubject& subject, std::span<const double> scores) {
  const size_t cells = subject.positions.list.size() * subject.positions.list.size();
  const size_t heads = scores.size() / cells;
  chart::HeatMap map = square_map(subject, "scores of head 1");
  map.value = {.label = "score"};
  map.values.assign(scores.begin(), scores.begin() + static_cast<std::ptrdiff_t>(cells));

  std::vector<chart::Series> lines;
  for (size_t head = 0; head < heads; ++head) {
    lines.push_back(by_distance(subject.positions, scores.subspan(head * cells, cells), true));
    if (heads == 1) break;
    lines.back().name = fmt::format("head {}", head + 1);
    lines.back().low.clear();
    lines.back().high.clear();
  }
  const bool future = !lines[0].x.empty() && lines[0].x[0] < 0;
  const DistanceView view = {.value = map.value, .future = future};
  return {{"score", map}, {"distance", distance_chart(subject, view, lines)}};
}

chart::HeatMap pair_map(const PlotSubject& subject, const DistanceView& view,
                        const ByDistance& value) {
  chart::HeatMap map = square_map(subject, view.value.label + " between positions");
  map.value = view.value;
  for (const int64_t query : subject.positions.list) {
    for (const int64_t key : subject.positions.list) {
      const int64_t distance = query - key;
      map.values.push_back(distance < 0 && !view.future ? std::nan("") : value(distance));
    }
  }
  return map;
}

chart::Series distance_series(const PlotSubject& subject, const DistanceView& view,
                              std::string name, const ByDistance& value) {
  chart::Series out = {.name = std::move(name)};
  const std::vector<int64_t>& list = subject.positions.list;
  const auto add = [&](int64_t distance) {
    out.x.push_back(static_cast<double>(distance));
    out.y.push_back(value(distance));
  };
  if (view.future) {
    for (size_t i = list.size() - 1; i > 0; --i) add(-list[i]);
  }
  for (const int64_t distance : list) add(distance);
  return out;
}

chart::LineChart wavelengths_chart(std::span<const Wavelengths> all, int64_t trained) {
  chart::LineChart chart;
  chart.x = {.label = "pair, fastest first"};
  chart.y = {.label = "wavelength", .unit = "positions", .scale = chart::Scale::kLog10};
  for (const Wavelengths& one : all) {
    chart::Series series = {.name = one.name};
    for (const double frequency : one.frequencies) {
      series.x.push_back(static_cast<double>(series.x.size()));
      series.y.push_back(frequency == 0 ? std::nan("") : 2 * std::numbers::pi / frequency);
    }
    chart.series.push_back(std::move(series));
  }
  if (trained == 0) return chart;
  chart::Series length = {.name = "trained length", .x = chart.series.at(0).x};
  length.y.assign(length.x.size(), static_cast<double>(trained));
  chart.series.push_back(std::move(length));
  return chart;
}

chart::Series stairs(const chart::Series& series) {
  chart::Series out = {.name = series.name};
  for (size_t n = 0; n < series.x.size(); ++n) {
    for (size_t from = n == 0 ? 0 : n - 1; from <= n; ++from) {
      out.x.push_back(series.x[n]);
      out.y.push_back(series.y[from]);
    }
  }
  return out;
}

chart::LineChart distance_chart(const PlotSubject& subject, const DistanceView& view,
                                std::vector<chart::Series> series) {
  chart::LineChart line;
  line.title = subject.title + ": " + view.value.label + " against distance";
  line.subtitle = subject.settings;
  line.x = kDistance;
  line.y = view.value;
  line.series = std::move(series);
  if (view.future) line.markers = {{0, "the query itself"}};
  return line;
}

std::vector<PlotOption> with_projections(std::vector<PlotOption> options) {
  options.push_back({"heads", "heads with random W_q and W_k", "4"});
  options.push_back({"head-dim", "columns of W_q and W_k", "16"});
  options.push_back({"seed", "of random W_q and W_k", "1"});
  return options;
}

std::vector<Figure> added_figures(const PlotValues& values, const PlotSubject& subject,
                                  std::span<const double> rows) {
  std::vector<Figure> all =
      vector_figures(subject, rows, cosines(rows, subject.positions.list.size()),
                     {.label = "similarity", .unit = "cosine"});
  std::ranges::move(projected_figures(values, subject, rows), std::back_inserter(all));
  return all;
}

}  // namespace sextant::cli
