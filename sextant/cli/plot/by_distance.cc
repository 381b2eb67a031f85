// Encodings drawn as a value by distance: the biases of ALiBi and Sandwich, the rows of Shaw's
// tables, T5's buckets, the keys of a local window and the weights without any. Each is a map of
// queries and keys and a line by distance; ALiBi has a map of its heads, too.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numbers>

#include "sextant/cli/plot/figures.h"
#include "sextant/position/buckets.h"
#include "sextant/position/position_products.h"
#include "sextant/position/row_map.h"
#include "sextant/position/sandwich.h"
#include "sextant/position/sinusoid.h"
#include "sextant/position/slopes.h"

namespace sextant::cli {
namespace {

constexpr int64_t kWindow = 32;       // of window, and beside ALiBi's weights
constexpr int64_t kWeightsTo = 1024;  // distances, at least
constexpr size_t kMostLines = 12;     // the line chart skips further heads, the map does not

// `name` is that of the map's file.
std::vector<Figure> value_figures(const std::string& name, const PlotSubject& subject,
                                  const DistanceView& view, const ByDistance& value) {
  return {{name, pair_map(subject, view, value)},
          {"distance", distance_chart(subject, view, {distance_series(subject, view, "", value)})}};
}

chart::LineChart on_logarithmic_axis(const std::string& title, const PlotSubject& subject,
                                     const chart::Axis& value, std::vector<chart::Series> lines) {
  chart::LineChart chart = distance_chart(subject, {.value = value}, std::move(lines));
  chart.title = title;
  chart.x.scale = chart::Scale::kLog2;
  chart.y.low = 0;
  return chart;
}

// A logarithmic axis has no distance 0.
PlotSubject without_zero(PlotSubject subject) {
  subject.positions.list.erase(subject.positions.list.begin());
  return subject;
}

// ALiBi (Press, Smith and Lewis 2021): a penalty that grows linearly with distance, with one slope
// per head. For keys on both sides of the query it is symmetric unless future_scale is not 1. A
// Slope is that of a head for keys before and after the query.
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

// The weight of a key at a distance, of that of the query's own position, when all scores without
// the bias are equal: exp(-m d), half at ln 2 / m. A window has the weights 1 and 0.
chart::LineChart weights_chart(const PlotSubject& subject, const std::vector<Slope>& slopes,
                               size_t every, int64_t window) {
  PlotSubject far = subject;
  far.positions = {.step = 1};
  const int64_t length = std::max(subject.positions.list.back() + 1, kWeightsTo);
  for (int64_t distance = 1; distance <= length; distance += (length - 1) / kWeightsTo + 1)
    far.positions.list.push_back(distance);
  const DistanceView view = {.value = {.label = "weight", .unit = "of that at distance 0"}};
  std::vector<chart::Series> lines;
  for (size_t head = 0; head < slopes.size(); head += every)
    lines.push_back(distance_series(
        far, view,
        fmt::format("head {}: half at {:.3g}", head + 1, std::numbers::ln2 / slopes[head].past),
        [&](int64_t distance) { return std::exp(slopes[head].bias(distance)); }));
  lines.push_back(stairs(distance_series(far, view, fmt::format("window {}", window),
                                         [&](int64_t distance) { return distance < window; })));
  lines.back().emphasis = true;
  far.settings += ". Weights of equal scores; half at ln 2 / slope";
  return on_logarithmic_axis("ALiBi: each head is a soft window", far, view.value,
                             std::move(lines));
}

std::vector<Figure> alibi_figures(const PlotValues& values) {
  const bool both = values.choice("direction", {"causal", "both"}) == 1;
  const double future_scale = values.number("future-scale", 0, 1e6);
  if (!both && future_scale != 1)
    values.refuse("future-scale", "1 without --direction both, as no key after the query is seen");
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
  for (size_t head = 0; head < slopes.size(); head += every)
    lines.push_back(distance_series(
        subject, view, fmt::format("head {}: slope {:.4g}", head + 1, slopes[head].past),
        [&](int64_t distance) { return slopes[head].bias(distance); }));
  const std::vector<Figure> by_head = {{"heads", head_map(subject, view, slopes)},
                                       {"distance", distance_chart(subject, view, lines)}};
  chart::LineChart weights =
      weights_chart(subject, slopes, every, values.integer("window", 1, int64_t{1} << 40));
  subject.settings += fmt::format("; head 1, slope {:.4g}", slopes[0].past);
  const auto first = [&](int64_t distance) { return slopes[0].bias(distance); };
  return {by_head[0],
          {"bias", pair_map(subject, view, first)},
          by_head[1],
          {"weights", std::move(weights)}};
}

PlottedMethod alibi_plot() {
  return {"alibi",
          "Biases linear in distance (Press, Smith and Lewis 2021)",
          with_positions({{"heads", "number of heads", "8"},
                          {"max-bias", "the last head has slope 2^-max_bias", "8"},
                          {"direction", "causal: the past only; both: encoders", "causal"},
                          {"future-scale", "slope of keys after the query, as a multiple", "1"},
                          {"window", "of the box beside the weights", std::to_string(kWindow)}}),
          alibi_figures,
          {{.name = "max_bias", .option = "max-bias"},
           {.name = "future_scale", .option = "future-scale"}}};
}

// Sandwich (Chi et al. 2022): the product of sinusoidal positions, c(d), as a bias. Between 1 and
// 10000 the sum over i is close to an integral of cos(u) / u, and c to w/2 (1 - (ln d + gamma) / ln
// 10000) with Euler's gamma.
chart::LineChart logarithm_chart(const PlotSubject& past, int64_t width, double first,
                                 const ByDistance& curve) {
  chart::Series products = {.name = "p_m . p_n of sinusoids"};  // points, with gaps between
  const Sinusoid sinusoid({.width = width});
  const int64_t last = past.positions.list.back();
  for (int64_t distance = 1; distance <= last; distance *= 2) {
    const std::vector<double> rows = sinusoid.rows(std::vector<int64_t>{0, distance});
    products.x.insert(products.x.end(), 2, static_cast<double>(distance));
    products.y.insert(products.y.end(), {position_products(rows, 2)[1], std::nan("")});
  }
  const double half = static_cast<double>(width) / 2;
  const double slope = (first - curve(last)) / static_cast<double>(last);
  const auto logarithm = [&](int64_t d) {
    const double sum = std::log(static_cast<double>(d)) + std::numbers::egamma;
    return half * (1 - sum / std::log(10000.0));
  };
  const auto line = [&](int64_t d) { return first - slope * static_cast<double>(d); };
  return on_logarithmic_axis(
      "Sandwich is the product of sinusoids: a logarithm of distance, not a line", past,
      {.label = "c(d)"},
      {distance_series(past, {}, "sandwich, c(d)", curve), products,
       distance_series(past, {}, "logarithm of d", logarithm),
       distance_series(past, {}, fmt::format("line, as ALiBi: slope {:.2g}", slope), line)});
}

std::vector<Figure> sandwich_figures(const PlotValues& values) {
  const bool both = values.choice("direction", {"causal", "both"}) == 1;
  const int64_t width = values.integer("width", 2, 1 << 20);
  if (width % 2 != 0) values.refuse("width", "an even number");
  const int64_t first = values.integer("first-index", 0, 1);
  const std::vector<double> factors =
      sandwich_slopes(values.integer("heads", 1, 64), values.number("ratio", 1e-6, 1e6));
  PlotSubject subject = {"Sandwich",
                         fmt::format("{} heads, width {}, first_index {}, ratio {}", factors.size(),
                                     width, first, values.text("ratio")),
                         positions_of(values)};
  const std::vector<double> all = sandwich_curve(subject.positions.list, width, first);
  const auto curve = [&](int64_t distance) {
    return all[static_cast<size_t>(std::abs(distance) / subject.positions.step)];
  };
  const DistanceView view = {.value = {.label = "bias"}, .future = both};
  std::vector<chart::Series> lines;
  for (const double factor : factors)
    lines.push_back(distance_series(subject, view, fmt::format("head {}", lines.size() + 1),
                                    [&](int64_t d) { return factor * curve(d); }));
  std::vector<Figure> figures = {
      {"score", pair_map(subject, view, [&](int64_t d) { return factors[0] * curve(d); })},
      {"distance", distance_chart(subject, view, std::move(lines))}};
  PlotSubject past = without_zero(subject);
  past.settings = fmt::format("width {}, first_index {}", width, first);
  if (first != 0) past.settings += "; equal to p_m . p_n with first_index 0";
  if (past.positions.list.empty()) return figures;
  figures.push_back({"logarithm", logarithm_chart(past, width, all[0], curve)});
  return figures;
}

PlottedMethod sandwich_plot() {
  return {"sandwich",
          "Products of sinusoids as a bias (Chi et al. 2022)",
          with_positions(
              {{"heads", "number of heads", "4"},
               {"width", "of the sinusoids", "128"},
               {"first-index", "of the sum: 1, or 0 as in a product of sinusoids", "1"},
               {"ratio", "compression ratio of the last head", fmt::format("{}", kSandwichRatio)},
               {"direction", "causal: the past only; both: encoders", "causal"}},
              64),
          sandwich_figures,
          {{.name = "sinusoid_width", .option = "width"},
           {.name = "first_index", .option = "first-index"},
           {.name = "ratio", .option = "ratio"}}};
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
  std::vector<Figure> figures = value_figures("bucket", subject, view, bucket);
  const PlotSubject past = without_zero(subject);
  if (past.positions.list.empty()) return figures;
  figures.push_back(
      {"steps", on_logarithmic_axis(
                    "T5: a bucket for each near distance, then steps of the same width", past,
                    {.label = "bucket"}, {stairs(distance_series(past, {}, "", bucket))})});
  return figures;
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

// No positions: where all scores are equal, a query shares its weight among the keys that the
// causal mask lets it see.
std::vector<Figure> none_figures(const PlotValues& values) {
  const PlotSubject subject = {"No positions", "equal scores, causal", positions_of(values)};
  chart::HeatMap map = square_map(subject, "order comes from the causal mask alone");
  map.value = {.label = "weight", .scale = chart::Scale::kLog10};
  for (const int64_t query : subject.positions.list) {
    for (const int64_t key : subject.positions.list)
      map.values.push_back(key > query ? std::nan("") : 1 / static_cast<double>(query + 1));
  }
  const auto weight = [](int64_t query) { return 1 / static_cast<double>(query + 1); };
  const DistanceView view = {.value = map.value};
  chart::LineChart line =
      distance_chart(subject, view, {distance_series(subject, view, "", weight)});
  line.title = "No positions: weight of each key against the position of the query";
  line.x = {.label = "query position", .unit = "tokens"};
  return {{"weights", std::move(map)}, {"position", std::move(line)}};
}

PlottedMethod none_plot() {
  return {"none", "No positions behind a causal mask", with_positions({}, 64), none_figures};
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
          with_positions({{"window", "keys less than this many positions away are seen",
                           std::to_string(kWindow)},
                          {"direction", "causal: the past only; both: encoders", "causal"}}),
          window_figures,
          {{.name = "window", .option = "window", .nullable = true}}};
}

}  // namespace

std::vector<PlottedMethod> distance_plots() {
  return {alibi_plot(), none_plot(), sandwich_plot(), shaw_plot(), t5_plot(), window_plot()};
}

}  // namespace sextant::cli
