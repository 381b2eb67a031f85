// ALiBi (Press, Smith and Lewis 2021): a penalty that grows linearly with distance, with one slope
// per head. For keys on both sides of the query it is symmetric unless future_scale is not 1.
#include <fmt/format.h>

#include "sextant/cli/plot/figures.h"
#include "sextant/position/slopes.h"

namespace sextant::cli {
namespace {

constexpr size_t kMostLines = 12;  // the line chart skips further heads, the map does not

// The slope of a head for keys before and after the query.
struct Slope {
  double past = 0, future = 0;
  double bias(int64_t distance) const {
    return static_cast<double>(distance) * (distance < 0 ? future : -past);
  }
};

// The bias of each head by distance, from the farthest key after the query if it sees any.
chart::HeatMap head_map(const PlotSubject& subject, const DistanceView& view,
                        const std::vector<Slope>& slopes) {
  const auto count = static_cast<int64_t>(subject.positions.list.size());
  const int64_t after = view.future ? count - 1 : 0, step = subject.positions.step;
  chart::HeatMap map;
  map.title = subject.title + ": bias of each head";
  map.subtitle = subject.settings;
  map.y = {.label = "head"};
  map.x = {.label = "distance", .unit = "tokens"};
  map.value = {.label = "bias"};
  map.rows = {.count = static_cast<int64_t>(slopes.size()), .first = 1};
  map.columns = {.count = after + count,
                 .first = static_cast<double>(-after * step),
                 .step = static_cast<double>(step)};
  for (const Slope& slope : slopes) {
    for (int64_t n = -after; n < count; ++n) map.values.push_back(slope.bias(n * step));
  }
  return map;
}

std::vector<Figure> alibi_figures(const PlotValues& values) {
  const bool both = values.choice("direction", {"causal", "both"}) == 1;
  const double future_scale = values.number("future-scale", 0, 1e6);
  if (!both && future_scale != 1) {
    values.refuse("future-scale", "1 without --direction both, as no key after the query is seen");
  }
  std::vector<Slope> slopes;
  for (const double slope :
       alibi_slopes(values.integer("heads", 1, 1024), values.number("max-bias", 0, 1e6))) {
    slopes.push_back({.past = slope, .future = future_scale * slope});
  }
  PlotSubject subject = {
      "ALiBi", fmt::format("{} heads, max_bias {}", slopes.size(), values.text("max-bias")),
      positions_of(values)};
  if (both) subject.settings += fmt::format(", bidirectional, future_scale {}", future_scale);
  const DistanceView view = {.value = {.label = "bias"}, .future = both};

  std::vector<chart::Series> lines;
  const size_t every = (slopes.size() + kMostLines - 1) / kMostLines;
  for (size_t head = 0; head < slopes.size(); head += every) {
    lines.push_back(distance_series(
        subject, view, fmt::format("head {}: slope {:.4g}", head + 1, slopes[head].past),
        [&](int64_t distance) { return slopes[head].bias(distance); }));
  }
  const std::vector<Figure> by_head = {{"heads", head_map(subject, view, slopes)},
                                       {"distance", distance_chart(subject, view, lines)}};
  subject.settings += fmt::format("; head 1, slope {:.4g}", slopes[0].past);
  const auto first = [&](int64_t distance) { return slopes[0].bias(distance); };
  return {by_head[0], {"bias", pair_map(subject, view, first)}, by_head[1]};
}

}  // namespace

PlottedMethod alibi_plot() {
  return {"alibi",
          "Biases linear in distance (Press, Smith and Lewis 2021)",
          with_positions({{"heads", "number of heads", "8"},
                          {"max-bias", "the last head has slope 2^-max_bias", "8"},
                          {"direction", "causal: the past only; both: encoders", "causal"},
                          {"future-scale", "slope of keys after the query, as a multiple", "1"}}),
          alibi_figures,
          {{.name = "max_bias", .option = "max-bias"},
           {.name = "future_scale", .option = "future-scale"}}};
}

}  // namespace sextant::cli
