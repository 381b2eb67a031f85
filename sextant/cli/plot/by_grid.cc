// Methods whose rows are places of a grid are drawn by what they add to a score at each pair of a
// vertical and a horizontal distance: their scores of one vector as query and key everywhere, minus
// those of attention without positions. Tables that start from zeros are drawn at random, since
// their form is what the picture shows.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sextant/base/error.h"
#include "sextant/cli/plot/method_options.h"

namespace sextant::cli {
namespace {

// Methods whose rows are places of a grid.
struct GridMethod {
  std::string_view name;
  const char* option = "grid";  // that has the sizes of the grid
  int64_t first = 0;            // rows before the grid's
  bool trained = true;
};
constexpr GridMethod kGridMethods[] = {{.name = "alibi-2d", .trained = false},
                                       {.name = "beit", .first = 1},
                                       {.name = "layoutlm"},
                                       {.name = "sam"},
                                       {.name = "swin", .option = "window"}};

// A map of what the first head adds to a score, by both distances. Two places of the grid are at
// each pair of distances, and any two such places have the same value.
std::vector<Figure> grid_figures(const PlotValues& values) {
  const GridMethod& method = *std::ranges::find(kGridMethods, values.method(), &GridMethod::name);
  const int64_t side = values.integer("side", 2, 32);
  nlohmann::json options = nlohmann::json::parse(values.text("options"));
  if (options.contains(method.option))
    fail(fmt::format("plot {}: {}: expected the sizes of the grid as --side, but got {}",
                     method.name, method.option, options[method.option].dump()));
  const nlohmann::json own = options;
  options[method.option] = {side, side};
  lab::EncodingRequest request = {.method = values.method(),
                                  .options = options.dump(),
                                  .heads = values.integer("heads", 1, 64),
                                  .head_dim = values.integer("head-dim", 1, 1024),
                                  .length = method.first + side * side,
                                  .causal = false,
                                  .draws_zeros = true};
  const auto scores = [&] { return lab::open_plugin(1).probe_encoding(request).scores; };
  const std::vector<double> all = scores();
  request.method = "none";  // with the same queries and keys
  request.options = "{}";
  const std::vector<double> alone = scores();

  chart::HeatMap map;
  map.title = fmt::format("{}: what head 1 adds to a score", method.name);
  map.subtitle =
      fmt::format("{}grid of {} x {}{}", own.empty() ? "" : own.dump() + "; ", side, side,
                  method.trained ? ", random tables, one vector as query everywhere" : "");
  map.y = {.label = "vertical distance"};
  map.x = {.label = "horizontal distance"};
  map.value = {.label = "added to the score"};
  map.rows = {.count = 2 * side - 1, .first = static_cast<double>(1 - side)};
  map.columns = map.rows;
  map.colours = chart::Colours::kDiverging;
  for (int64_t y = 1 - side; y < side; ++y) {
    for (int64_t x = 1 - side; x < side; ++x) {
      const int64_t query = method.first + std::max<int64_t>(y, 0) * side + std::max<int64_t>(x, 0);
      const int64_t key = query - y * side - x;
      const auto cell = static_cast<size_t>(query * request.length + key);
      map.values.push_back(all[cell] - alone[cell]);
    }
  }
  return {{"grid", std::move(map)}};
}

}  // namespace

bool on_grid(const std::string& method) {
  return std::ranges::find(kGridMethods, method, &GridMethod::name) != std::end(kGridMethods);
}

PlottedMethod plot_by_grid(const std::string& method) {
  return {method,
          "By what it adds to scores, by both distances on a grid",
          {{"heads", "number of heads", "4"},
           {"head-dim", "head size", "32"},
           {"side", "height and width of the grid", "9"},
           {"options", "", "{}"}},
          grid_figures};
}

}  // namespace sextant::cli
