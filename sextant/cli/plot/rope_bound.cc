// The far decay of RoPE as Su et al. 2021 show it: the upper bound of section 3.4.3 falls with the
// distance. Equal vectors of length 1 are one case below it. A query that is its key rotated by the
// distance between them has the score 1 wherever the key is, so nothing in RoPE itself decays. The
// gain of a stretch is in the query and in the key, and thus squared in all of these.
#include <fmt/format.h>

#include "sextant/cli/plot/rope.h"
#include "sextant/position/far_decay.h"

namespace sextant::cli {

chart::LineChart bound_chart(const PlotSubject& subject, const TwoSpectra& spectra) {
  const DistanceView view = {
      .value = {.label = "score", .unit = "of unit vectors with the same share in each pair"}};
  const Rotation plain = rotation(spectra.plain), now = rotation(spectra.stretched);
  const auto bound = [&](std::string name, const Rotation& rotation) {
    return distance_series(subject, view, std::move(name), [&](int64_t distance) {
      return rotation.gain * rotation.gain * mean_partial_sum(rotation, distance);
    });
  };
  const double largest = now.gain * now.gain;
  std::vector<chart::Series> series = {
      bound(largest == 1 ? "bound: mean |S|" : fmt::format("bound: {:.4g} mean |S|", largest), now),
      distance_series(
          subject, view, "equal vectors",
          [&](int64_t distance) { return largest * score_of_equal_vectors(now, distance); }),
      distance_series(subject, view, fmt::format("largest: {:.4g}", largest),
                      [&](int64_t) { return largest; })};
  if (!spectra.stretch.empty()) series.push_back(bound("bound, unstretched", plain));
  chart::LineChart chart = distance_chart(subject, view, std::move(series));
  chart.title = subject.title + ": the bound of the far decay against distance";
  return chart;
}

}  // namespace sextant::cli
