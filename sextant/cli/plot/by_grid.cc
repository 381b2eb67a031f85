// Methods whose rows are places of a grid are drawn by what they add to a score at each pair of a
// vertical and a horizontal distance: their scores of one vector as query and key everywhere, minus
// those of attention without positions. Tables that start from zeros are drawn at random, since
// their form is what the picture shows.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "sextant/base/error.h"
#include "sextant/cli/plot/method_options.h"

namespace sextant::cli {
namespace {

// A map of what the first head adds to a score, by both distances. Two places of the grid are at
// each pair of distances, and any two such places have the same value.
std::vector<Figure> grid_figures(const PlotValues& values) {
  const lab::KnownMethod method = *known_on_grid(values.method());
  const int64_t side = values.integer("side", 2, 32);
  nlohmann::json options = nlohmann::json::parse(values.text("options"));
  if (options.contains(method.grid_option))
    fail(fmt::format("plot {}: {}: expected the sizes of the grid as --side, but got {}",
                     method.name, method.grid_option, options[method.grid_option].dump()));
  const nlohmann::json own = options;
  options[method.grid_option] = {side, side};
  lab::EncodingRequest request = {.method = values.method(),
                                  .options = options.dump(),
                                  .heads = values.integer("heads", 1, 64),
                                  .head_dim = values.integer("head-dim", 1, 1024),
                                  .length = method.rows_before_grid + side * side,
                                  .causal = false,
                                  .draws_zeros = true};
  const auto probed = [&] { return lab::open_plugin(1).probe_encoding(request); };
  const lab::ProbedEncoding all = probed();
  request.method = "none";  // with the same queries and keys
  request.options = "{}";
  const lab::ProbedEncoding alone = probed();

  chart::HeatMap map;
  map.title = fmt::format("{}: what head 1 adds to a score", method.name);
  map.subtitle =
      fmt::format("{}grid of {} x {}{}", own.empty() ? "" : own.dump() + "; ", side, side,
                  all.trains ? ", random tables, one vector as query everywhere" : "");
  map.y = {.label = "vertical distance"};
  map.x = {.label = "horizontal distance"};
  map.value = {.label = "added to the score"};
  map.rows = {.count = 2 * side - 1, .first = static_cast<double>(1 - side)};
  map.columns = map.rows;
  map.colours = chart::Colours::kDiverging;
  for (int64_t y = 1 - side; y < side; ++y) {
    for (int64_t x = 1 - side; x < side; ++x) {
      const int64_t query =
          method.rows_before_grid + std::max<int64_t>(y, 0) * side + std::max<int64_t>(x, 0);
      const int64_t key = query - y * side - x;
      const auto cell = static_cast<size_t>(query * request.length + key);
      map.values.push_back(all.scores[cell] - alone.scores[cell]);
    }
  }
  return {{"grid", std::move(map)}};
}

}  // namespace

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
