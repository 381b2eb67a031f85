// T5 (Raffel et al. 2019): the bucket, and thus the trained bias, of each distance.
#include <fmt/format.h>

#include "sextant/cli/plot/figures.h"
#include "sextant/position/buckets.h"

namespace sextant::cli {
namespace {

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
  return {
      {"bucket", pair_map(subject, view, bucket)},
      {"distance", distance_chart(subject, view, {distance_series(subject, view, "", bucket)})}};
}

}  // namespace

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

}  // namespace sextant::cli
