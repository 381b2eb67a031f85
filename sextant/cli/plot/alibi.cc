// ALiBi (Press, Smith and Lewis 2021): a penalty that grows linearly with distance, with one slope
// per head.
#include <fmt/format.h>

#include "sextant/cli/plot/figures.h"
#include "sextant/position/slopes.h"

namespace sextant::cli {
namespace {

constexpr size_t kMostLines = 12;  // the line chart skips further heads, the map does not

double bias(double slope, int64_t distance) { return -slope * static_cast<double>(distance); }

chart::HeatMap head_map(const PlotSubject& subject, const std::vector<double>& slopes) {
  chart::HeatMap map;
  map.title = subject.title + ": bias of each head";
  map.subtitle = subject.settings;
  map.y = {.label = "head"};
  map.x = {.label = "distance", .unit = "tokens"};
  map.value = {.label = "bias"};
  map.rows = {.count = static_cast<int64_t>(slopes.size()), .first = 1};
  map.columns = {.count = static_cast<int64_t>(subject.positions.list.size()),
                 .step = static_cast<double>(subject.positions.step)};
  for (const double slope : slopes) {
    for (const int64_t distance : subject.positions.list) {
      map.values.push_back(bias(slope, distance));
    }
  }
  return map;
}

std::vector<Figure> alibi_figures(const PlotValues& values) {
  const std::vector<double> slopes =
      alibi_slopes(values.integer("heads", 1, 1024), values.number("max-bias", 0, 1e6));
  PlotSubject subject = {
      "ALiBi", fmt::format("{} heads, max_bias {}", slopes.size(), values.text("max-bias")),
      positions_of(values)};
  const DistanceView view = {.value = {.label = "bias"}};

  std::vector<chart::Series> lines;
  const size_t every = (slopes.size() + kMostLines - 1) / kMostLines;
  for (size_t head = 0; head < slopes.size(); head += every) {
    lines.push_back(
        distance_series(subject, view, fmt::format("head {}: slope {:.4g}", head + 1, slopes[head]),
                        [&](int64_t distance) { return bias(slopes[head], distance); }));
  }
  const std::vector<Figure> by_head = {{"heads", head_map(subject, slopes)},
                                       {"distance", distance_chart(subject, view, lines)}};
  subject.settings += fmt::format("; head 1, slope {:.4g}", slopes[0]);
  const auto first = [&](int64_t distance) { return bias(slopes[0], distance); };
  return {by_head[0], {"bias", pair_map(subject, view, first)}, by_head[1]};
}

}  // namespace

PlottedMethod alibi_plot() {
  return {"alibi", "Biases linear in distance (Press, Smith and Lewis 2021)",
          with_positions({{"heads", "number of heads", "8"},
                          {"max-bias", "the last head has slope 2^-max_bias", "8"}}),
          alibi_figures};
}

}  // namespace sextant::cli
