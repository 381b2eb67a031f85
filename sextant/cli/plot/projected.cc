#include "sextant/cli/plot/projected.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "sextant/base/random.h"
#include "sextant/position/position_products.h"

namespace sextant::cli {
namespace {

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
  for (const Product& product : products) {
    table.rows.push_back(
        {product.name,
         {variance_explained_by_distance(product.matrix, count, PairsOfPositions::kPast),
          variance_explained_by_distance(product.matrix, count, PairsOfPositions::kAll)}});
  }
  return table;
}

}  // namespace

std::vector<PlotOption> with_projections(std::vector<PlotOption> options) {
  options.push_back({"heads", "heads with random W_q and W_k", "4"});
  options.push_back({"head-dim", "columns of W_q and W_k", "16"});
  options.push_back({"seed", "of random W_q and W_k", "1"});
  return options;
}

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

std::vector<Figure> added_figures(const PlotValues& values, const PlotSubject& subject,
                                  std::span<const double> rows) {
  std::vector<Figure> all =
      vector_figures(subject, rows, cosines(rows, subject.positions.list.size()),
                     {.label = "similarity", .unit = "cosine"});
  std::ranges::move(projected_figures(values, subject, rows), std::back_inserter(all));
  return all;
}

}  // namespace sextant::cli
