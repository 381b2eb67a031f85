// Pairs of channels as points of the plane: the vector (1, 0) rotated by each position, and a query
// and a key at two positions.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "sextant/cli/plot/rope.h"
#include "sextant/position/far_decay.h"

namespace sextant::cli {
namespace {

constexpr double kCircle = 2 * std::numbers::pi;
constexpr int kOnePanel = 460;              // width of a picture with one panel, in pixels
constexpr double kQuery = 2.1, kKey = 0.6;  // angles of a query and a key before rotation
constexpr int64_t kMostPoints = 32;         // per series; more would cover one another

double frequency_of(const Spectrum& spectrum, size_t pair) {
  return static_cast<double>(spectrum.pairs[pair].frequency);
}

// The fastest pair with at most this share of a rotation within `length`, else the slowest.
size_t slow_pair(const Spectrum& spectrum, int64_t length, double share) {
  for (size_t pair = 0; pair < spectrum.pairs.size(); ++pair)
    if (frequency_of(spectrum, pair) * static_cast<double>(length) <= share * kCircle) return pair;
  return spectrum.pairs.size() - 1;
}

// The points of the positions from `low` to below `high`, every so many.
chart::PlaneChart::Series points(const Turns& frequency, const std::vector<int64_t>& positions,
                                 int64_t low, int64_t high) {
  chart::PlaneChart::Series out;
  std::vector<int64_t> inside;
  for (const int64_t position : positions)
    if (position >= low && position < high) inside.push_back(position);
  if (inside.empty()) return out;
  const size_t every = (inside.size() + kMostPoints - 1) / kMostPoints;
  for (size_t n = 0; n < inside.size(); n += every) {
    const CosSin angle = cos_sin(frequency * inside[n]);
    out.points.push_back({angle.cos, angle.sin, std::to_string(inside[n])});
  }
  out.name = fmt::format("positions {} to {}", inside.front(), inside.back());
  if (every > 1) out.name += fmt::format(", every {}", inside[every] - inside[0]);
  return out;
}

std::string panel_name(const std::string& name, double frequency) {
  if (frequency == 0) return name + ": not rotated";
  return fmt::format("{}: {:.3g} rad a position, {:.4g} a circle", name, frequency,
                     kCircle / frequency);
}

chart::PlaneChart plane(const PlotSubject& subject, const TwoSpectra& spectra,
                        const std::string& title) {
  return {.title = subject.title + ": " + title,
          .subtitle = subject.settings + (spectra.stretched.gain == 1 ? "" : "; gain left out"),
          .x = "1st channel",
          .y = "2nd",
          .arc_name = spectra.stretch.empty() ? ""
                                              : fmt::format("angles of training, positions 0 to {}",
                                                            spectra.trained - 1)};
}

// The panel of a pair: the positions of training and those after it, and the angles of training.
chart::PlaneChart::Panel panel(std::string name, const TwoSpectra& spectra,
                               const Spectrum& spectrum, size_t pair,
                               const std::vector<int64_t>& list) {
  const bool stretched = !spectra.stretch.empty();
  const Turns frequency = rotation(spectrum).pairs[pair].frequency;
  const int64_t end = list.back() + 1, trained = stretched ? std::min(spectra.trained, end) : end;
  chart::PlaneChart::Panel out = {.name = std::move(name),
                                  .series = {points(frequency, list, 0, trained)}};
  if (trained < end) out.series.push_back(points(frequency, list, trained, end));
  if (stretched) {
    const auto last = static_cast<double>(spectra.trained - 1);
    out.arc = std::min(last * std::abs(frequency_of(spectra.plain, pair)), kCircle);
  }
  return out;
}

chart::PlaneChart pair_chart(const PlotSubject& subject, const TwoSpectra& spectra, size_t pair) {
  const bool stretched = !spectra.stretch.empty();
  const Spectrum::Pair& channels = spectra.plain.pairs[pair];
  chart::PlaneChart chart =
      plane(subject, spectra,
            fmt::format("pair {} of 0 to {} in the plane", pair, spectra.plain.pairs.size() - 1));
  chart.x = fmt::format("channel {}", channels.first);
  chart.y = fmt::format("channel {}", channels.second);
  const std::vector<int64_t>& list = subject.positions.list;
  const auto add = [&](const std::string& name, const Spectrum& spectrum) {
    chart.panels.push_back(
        panel(panel_name(name, frequency_of(spectrum, pair)), spectra, spectrum, pair, list));
  };
  add(stretched ? "As trained" : "Rotated", spectra.plain);
  if (stretched) add(spectra.stretch, spectra.stretched);
  if (!stretched) chart.width = kOnePanel;
  return chart;
}

// The key at a tenth of the positions, the query at three tenths, and both later by four tenths.
chart::PlaneChart shift_chart(const PlotSubject& subject, const TwoSpectra& spectra, size_t pair) {
  chart::PlaneChart chart =
      plane(subject, spectra,
            fmt::format("shifted by the same, the angle between stays (pair {})", pair));
  chart.arc_name = "angle between them";
  const int64_t end = subject.positions.list.back() + 1;
  const Turns frequency = rotation(spectra.stretched).pairs[pair].frequency;
  const auto add = [&](const std::string& name, int64_t query, int64_t key) {
    const auto rotated = [&](double angle, int64_t position, const char* letter) {
      const CosSin turned = cos_sin(turns(Real(angle)) + frequency * position);
      return chart::PlaneChart::Series{
          .name = letter, .points = {{turned.cos, turned.sin, letter}}, .vectors = true};
    };
    chart::PlaneChart::Panel panel = {
        .name = name, .series = {rotated(kQuery, query, "query"), rotated(kKey, key, "key")}};
    const auto& q = panel.series[0].points[0];
    const auto& k = panel.series[1].points[0];
    const double angle = std::atan2(k.x * q.y - k.y * q.x, k.x * q.x + k.y * q.y);  // key to query
    panel.arc = std::abs(angle);
    panel.arc_from = angle < 0 ? std::atan2(q.y, q.x) : std::atan2(k.y, k.x);
    panel.name += fmt::format(": {:.1f}°", 360 / kCircle * panel.arc);
    chart.panels.push_back(std::move(panel));
  };
  const int64_t key = end / 10, query = 3 * end / 10, later = 4 * end / 10;
  add("Not rotated", 0, 0);
  add(fmt::format("Query at {}, key at {}", query, key), query, key);
  add(fmt::format("Query at {}, key at {}", query + later, key + later), query + later,
      key + later);
  return chart;
}

double neighbour_score(const Spectrum& spectrum) {
  return score_of_equal_vectors(rotation(spectrum), 1);
}

chart::PlaneChart neighbours_chart(const PlotSubject& subject, const TwoSpectra& spectra) {
  chart::PlaneChart chart = plane(subject, spectra, "neighbours in the fastest pair");
  chart.arc_name.clear();
  const auto add = [&](const std::string& name, const Spectrum& spectrum) {
    chart.panels.push_back(
        {.name = fmt::format("{}: {:.3g} rad, score of neighbours {:.4f}", name,
                             frequency_of(spectrum, 0), neighbour_score(spectrum)),
         .series = {
             points(rotation(spectrum).pairs[0].frequency, {0, 1, 2, 3, 4, 5, 6, 7, 8}, 0, 9)}});
  };
  add("As trained", spectra.plain);
  add(spectra.stretch, spectra.stretched);
  return chart;
}

// How far each pair is kept: 1 unchanged, 0 as much slower as the slowest.
std::vector<double> kept(const TwoSpectra& spectra) {
  std::vector<double> ratios;
  for (size_t f = 0; f < spectra.plain.pairs.size(); ++f)
    ratios.push_back(frequency_of(spectra.stretched, f) / frequency_of(spectra.plain, f));
  const double least = *std::ranges::min_element(ratios);
  for (double& ratio : ratios) ratio = least == 1 ? 1 : (ratio - least) / (1 - least);
  return ratios;
}

chart::PlaneChart pairs_chart(const PlotSubject& subject, const TwoSpectra& spectra, size_t slow) {
  chart::PlaneChart chart = plane(subject, spectra, "a fast, a middle and a slow pair");
  const std::vector<double> shares = kept(spectra);
  size_t middle = slow / 2;
  for (size_t f = 0; f < shares.size(); ++f)
    if (std::abs(shares[f] - 0.5) < std::abs(shares[middle] - 0.5)) middle = f;
  for (const size_t pair : {size_t{0}, middle, slow}) {
    const double share = shares[pair], frequency = frequency_of(spectra.stretched, pair);
    const std::string words = share > 0.9999   ? "kept"
                              : share < 0.0001 ? "interpolated"
                                               : fmt::format("{:.0f} % kept", 100 * share);
    const std::string name = frequency == 0 ? fmt::format("Pair {}: not rotated", pair)
                                            : fmt::format("Pair {}: {}, {:.4g} a circle", pair,
                                                          words, kCircle / frequency);
    chart.panels.push_back(panel(name, spectra, spectra.stretched, pair, subject.positions.list));
  }
  return chart;
}

}  // namespace

std::vector<Figure> plane_figures(const PlotValues& values, const PlotSubject& subject,
                                  const TwoSpectra& spectra) {
  const bool stretched = !spectra.stretch.empty();
  const auto pairs = static_cast<int64_t>(spectra.plain.pairs.size());
  const size_t slow =
      slow_pair(spectra.plain, stretched ? spectra.trained : subject.positions.list.back() + 1,
                stretched ? 1.0 / 3 : 1);
  const size_t pair = values.text("pair") == "auto"
                          ? slow
                          : static_cast<size_t>(values.integer("pair", 0, pairs - 1));
  std::vector<Figure> figures = {{"pair", pair_chart(subject, spectra, pair)},
                                 {"shift", shift_chart(subject, spectra, pair)}};
  if (!stretched) return figures;
  figures.push_back({"neighbours", neighbours_chart(subject, spectra)});
  figures.push_back({"pairs", pairs_chart(subject, spectra, slow)});
  return figures;
}

double base_of(const Spectrum& spectrum) {
  const size_t pairs = spectrum.pairs.size();
  const auto logarithm = [&](size_t f) { return std::log(frequency_of(spectrum, f)); };
  if (pairs < 2) return std::nan("");
  const double step = (logarithm(0) - logarithm(pairs - 1)) / static_cast<double>(pairs - 1);
  for (size_t f = 0; f < pairs; ++f) {
    const double even = logarithm(0) - step * static_cast<double>(f);
    if (!(std::abs(logarithm(f) - even) < 1e-9)) return std::nan("");
  }
  return std::exp(step * static_cast<double>(pairs));
}

NumberTable numbers_of(const TwoSpectra& spectra) {
  const auto row = [](const std::string& name, const Spectrum& spectrum) {
    return std::pair(name, std::vector<double>{base_of(spectrum), frequency_of(spectrum, 0),
                                               neighbour_score(spectrum)});
  };
  return {.title = "base; radians a position of pair 0; score of equal vectors at distance 1",
          .columns = {"base", "pair 0", "neighbours"},
          .rows = {row("as trained", spectra.plain), row(spectra.stretch, spectra.stretched)}};
}

}  // namespace sextant::cli
