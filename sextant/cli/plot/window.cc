// A local window: a query attends to the keys less than `window` positions away.
#include <fmt/format.h>

#include <cstdlib>

#include "sextant/cli/plot/figures.h"

namespace sextant::cli {
namespace {

std::vector<Figure> window_figures(const PlotValues& values) {
  const int64_t window = values.integer("window", 1, int64_t{1} << 40);
  const bool both = values.choice("direction", {"causal", "both"}) == 1;
  const PlotSubject subject = {"Local window",
                               fmt::format("window {}, {}", window, both ? "both sides" : "causal"),
                               positions_of(values)};
  const DistanceView view = {.value = {.label = "visible", .unit = "1: yes, 0: no"},
                             .future = both};
  const auto visible = [&](int64_t distance) { return std::abs(distance) < window ? 1.0 : 0.0; };
  return {
      {"visible", pair_map(subject, view, visible)},
      {"distance", distance_chart(subject, view, {distance_series(subject, view, "", visible)})}};
}

}  // namespace

PlottedMethod window_plot() {
  return {"window",
          "A local window of keys",
          with_positions({{"window", "keys less than this many positions away are seen", "32"},
                          {"direction", "causal: the past only; both: encoders", "causal"}}),
          window_figures,
          {{.name = "window", .option = "window", .nullable = true}}};
}

}  // namespace sextant::cli
