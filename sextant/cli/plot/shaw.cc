// Shaw et al. 2018 (arXiv 1803.02155): the row of the trained tables for each distance.
#include <fmt/format.h>

#include "sextant/cli/plot/figures.h"
#include "sextant/position/row_map.h"

namespace sextant::cli {
namespace {

std::vector<Figure> shaw_figures(const PlotValues& values) {
  const int64_t clip = values.integer("clip", 0, 1 << 20);
  const bool both = values.choice("direction", {"causal", "both"}) == 1;
  const PlotSubject subject = {"Shaw",
                               fmt::format("clipped at {}, {} rows, {}", clip, 2 * clip + 1,
                                           both ? "bidirectional" : "causal"),
                               positions_of(values)};
  const DistanceView view = {.value = {.label = "row"}, .future = both};
  const auto row = [&](int64_t distance) {
    const Diagonals one = {.farthest = distance, .count = 1};
    return static_cast<double>(clipped_row_map(one, clip, RowOrder::kKeyMinusQuery)[0]);
  };
  return {{"row", pair_map(subject, view, row)},
          {"distance", distance_chart(subject, view, {distance_series(subject, view, "", row)})}};
}

}  // namespace

PlottedMethod shaw_plot() {
  return {"shaw",
          "Tables by clipped distance (Shaw et al. 2018)",
          with_positions({{"clip", "distances beyond share a row", "16"},
                          {"direction", "causal: the past only; both: encoders", "both"}},
                         64),
          shaw_figures,
          {{.name = "clip", .option = "clip"}}};
}

}  // namespace sextant::cli
