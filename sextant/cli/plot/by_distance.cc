// Encodings drawn as a value by distance: ALiBi's bias, the rows of Shaw's tables, T5's buckets and
// the keys of a local window. Each is a map of queries and keys and a line by distance; ALiBi has a
// map of its heads, too.
#include <fmt/format.h>

#include <cstdlib>

#include "sextant/cli/plot/figures.h"
#include "sextant/position/buckets.h"
#include "sextant/position/row_map.h"
#include "sextant/position/slopes.h"

namespace sextant::cli {
namespace {

// `name` is that of the map's file.
std::vector<Figure> value_figures(const std::string& name, const PlotSubject& subject,
                                  const DistanceView& view, const ByDistance& value) {
  return {{name, pair_map(subject, view, value)},
          {"distance", distance_chart(subject, view, {distance_series(subject, view, "", value)})}};
}

// ALiBi (Press, Smith and Lewis 2021): a penalty that grows linearly with distance, with one slope
// per head. For keys on both sides of the query it is symmetric unless future_scale is not 1.
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

// Shaw et al. 2018 (arXiv 1803.02155): the row of the trained tables for each distance.
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
  return value_figures("row", subject, view, row);
}

PlottedMethod shaw_plot() {
  return {"shaw",
          "Tables by clipped distance (Shaw et al. 2018)",
          with_positions({{"clip", "distances beyond share a row", "16"},
                          {"direction", "causal: the past only; both: encoders", "both"}},
                         64),
          shaw_figures,
          {{.name = "clip", .option = "clip"}}};
}

// T5 (Raffel et al. 2019): the bucket, and thus the trained bias, of each distance.
std::vector<Figure> t5_figures(const PlotValues& values) {
  const T5Buckets::Options options = {
      .buckets = values.integer("buckets", 2, 1 << 20),
      .max_distance = values.integer("max-distance", 2, int64_t{1} << 30),
      .bidirectional = values.choice("direction", {"causal", "both"}) == 1};
  const T5Buckets buckets(options);
  const PlotSubject subject = {
      "T5",
      fmt::format("{} buckets, max_distance {}, {}", options.buckets, options.max_distance,
                  options.bidirectional ? "bidirectional" : "causal"),
      positions_of(values)};
  const DistanceView view = {.value = {.label = "bucket"}, .future = options.bidirectional};
  const auto bucket = [&](int64_t distance) {
    return static_cast<double>(buckets.bucket(distance));
  };
  return value_figures("bucket", subject, view, bucket);
}

PlottedMethod t5_plot() {
  return {"t5",
          "Biases by logarithmic bucket of distance (Raffel et al. 2019)",
          with_positions({{"buckets", "number of buckets", "32"},
                          {"max-distance", "farther distances share the last bucket", "128"},
                          {"direction", "causal: the past only; both: encoders", "causal"}},
                         256),
          t5_figures,
          {{.name = "buckets", .option = "buckets"},
           {.name = "max_distance", .option = "max-distance"},
           {.name = "bidirectional",
            .option = "direction",
            .nullable = true,
            .values = {{"true", "both"}, {"false", "causal"}}}}};
}

// A local window: a query attends to the keys less than `window` positions away.
std::vector<Figure> window_figures(const PlotValues& values) {
  const int64_t window = values.integer("window", 1, int64_t{1} << 40);
  const bool both = values.choice("direction", {"causal", "both"}) == 1;
  const PlotSubject subject = {"Local window",
                               fmt::format("window {}, {}", window, both ? "both sides" : "causal"),
                               positions_of(values)};
  const DistanceView view = {.value = {.label = "visible", .unit = "1: yes, 0: no"},
                             .future = both};
  const auto visible = [&](int64_t distance) { return std::abs(distance) < window ? 1.0 : 0.0; };
  return value_figures("visible", subject, view, visible);
}

PlottedMethod window_plot() {
  return {"window",
          "A local window of keys",
          with_positions({{"window", "keys less than this many positions away are seen", "32"},
                          {"direction", "causal: the past only; both: encoders", "causal"}}),
          window_figures,
          {{.name = "window", .option = "window", .nullable = true}}};
}

}  // namespace

std::vector<PlottedMethod> distance_plots() {
  return {alibi_plot(), shaw_plot(), t5_plot(), window_plot()};
}

}  // namespace sextant::cli
