// The far decay of RoPE. The score of equal vectors is the mean of cos(d theta_f) over the pairs:
// the terms of fast pairs cancel one another, those of slow ones have hardly changed. The upper
// bound of Su et al. 2021 (section 3.4.3) falls with the distance, too, and is drawn as a share of
// its value at distance 0. A query that is its key rotated by the distance between them has the
// score 1 wherever the key is, so nothing in RoPE itself decays. The gain of a stretch is in the
// query and in the key, and thus squared in the scores and the bound; the terms are without it.
#include <fmt/format.h>

#include "sextant/cli/plot/rope.h"
#include "sextant/position/far_decay.h"

namespace sextant::cli {

chart::Panels terms_chart(const PlotSubject& subject, const TwoSpectra& spectra) {
  const Rotation now = rotation(spectra.stretched);
  const std::vector<int64_t>& distances = subject.positions.list;
  chart::HeatMap map = {.title = "",
                        .subtitle = "cos(d theta_f), the term of pair f at distance d",
                        .x = {},
                        .y = {.label = "pair f, fastest first"},
                        .value = {.label = "term"},
                        .columns = {.count = static_cast<int64_t>(distances.size()),
                                    .step = static_cast<double>(subject.positions.step)},
                        .rows = {.count = static_cast<int64_t>(now.pairs.size())},
                        .values = {},
                        .colours = chart::Colours::kDiverging};
  map.height = 340;
  for (const Rotation::Pair& pair : now.pairs) {
    for (const int64_t distance : distances) {
      map.values.push_back(cos_sin(pair.frequency * distance).cos);
    }
  }
  const double half = map.columns.step / 2;
  chart::LineChart mean = distance_chart(
      subject, {.value = {.label = "mean"}},
      {distance_series(subject, {}, "mean",
                       [&](int64_t distance) { return score_of_equal_vectors(now, distance); })});
  mean.subtitle = "their mean, the score of equal vectors";
  mean.x.low = -half;
  mean.x.high = static_cast<double>(distances.back()) + half;
  mean.y.high = 1;
  mean.height = 230;
  return {.title = subject.title + ": fast pairs cancel one another, slow ones still agree",
          .subtitle = subject.settings,
          .parts = {std::move(map), std::move(mean)}};
}

chart::LineChart bound_chart(const PlotSubject& subject, const TwoSpectra& spectra) {
  PlotSubject far = subject;
  for (int64_t d = far.positions.list.back(); (d += far.positions.step) < 1024;) {
    far.positions.list.push_back(d);
  }
  const DistanceView view = {
      .value = {.label = "score", .unit = "of unit vectors with the same share in each pair"}};
  const Rotation plain = rotation(spectra.plain), now = rotation(spectra.stretched);
  const auto bound = [&](const std::string& name, const Rotation& rotation) {
    const double first = mean_partial_sum(rotation, 0), gain = rotation.gain * rotation.gain;
    return distance_series(far, view, fmt::format("{} / {:.4g}", name, first),
                           [&, first, gain](int64_t distance) {
                             return gain * mean_partial_sum(rotation, distance) / first;
                           });
  };
  const double largest = now.gain * now.gain;
  std::vector<chart::Series> series = {
      bound(largest == 1 ? "bound: mean |S|" : fmt::format("bound: {:.4g} mean |S|", largest), now),
      distance_series(
          far, view, "equal vectors",
          [&](int64_t distance) { return largest * score_of_equal_vectors(now, distance); }),
      distance_series(far, view, fmt::format("largest: {:.4g}", largest),
                      [&](int64_t) { return largest; })};
  if (!spectra.stretch.empty()) series.push_back(bound("bound, unstretched", plain));
  chart::LineChart chart = distance_chart(far, view, std::move(series));
  chart.title = subject.title + ": the bound of the far decay against distance";
  chart.subtitle += "; the bound as a share of its value at 0";
  if (largest != 1) chart.subtitle += ", times the squared gain";
  return chart;
}

}  // namespace sextant::cli
