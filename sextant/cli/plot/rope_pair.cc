// One pair of channels as a point of the plane: the vector (1, 0) rotated by each position.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "sextant/cli/plot/rope.h"

namespace sextant::cli {
namespace {

constexpr double kCircle = 2 * std::numbers::pi;
constexpr int kOnePanel = 460;       // width of a picture with one panel, in pixels
constexpr int64_t kMostPoints = 32;  // per series; more would cover one another

double frequency_of(const Spectrum& spectrum, size_t pair) {
  return static_cast<double>(spectrum.pairs[pair].frequency);
}

// The fastest pair with at most this share of a rotation within `length`, else the slowest.
size_t slow_pair(const Spectrum& spectrum, int64_t length, double share) {
  for (size_t pair = 0; pair < spectrum.pairs.size(); ++pair) {
    if (frequency_of(spectrum, pair) * static_cast<double>(length) <= share * kCircle) return pair;
  }
  return spectrum.pairs.size() - 1;
}

// The points of the positions from `low` to below `high`, every so many.
chart::PlaneChart::Series points(const Turns& frequency, const std::vector<int64_t>& positions,
                                 int64_t low, int64_t high) {
  chart::PlaneChart::Series out;
  std::vector<int64_t> inside;
  for (const int64_t position : positions) {
    if (position >= low && position < high) inside.push_back(position);
  }
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

}  // namespace

chart::PlaneChart pair_chart(const PlotValues& values, const PlotSubject& subject,
                             const TwoSpectra& spectra) {
  const bool stretched = !spectra.stretch.empty();
  const std::vector<int64_t>& list = subject.positions.list;
  const int64_t end = list.back() + 1;
  const auto pairs = static_cast<int64_t>(spectra.plain.pairs.size());
  const size_t pair =
      values.text("pair") == "auto"
          ? slow_pair(spectra.plain, stretched ? spectra.trained : end, stretched ? 1.0 / 3 : 1)
          : static_cast<size_t>(values.integer("pair", 0, pairs - 1));
  const Spectrum::Pair& channels = spectra.plain.pairs[pair];
  chart::PlaneChart chart = {
      .title = fmt::format("{}: pair {} of 0 to {} in the plane", subject.title, pair, pairs - 1),
      .subtitle = subject.settings + (spectra.stretched.gain == 1 ? "" : "; gain left out"),
      .x = fmt::format("channel {}", channels.first),
      .y = fmt::format("channel {}", channels.second),
      .arc_name = "",
      .panels = {}};
  const auto add = [&](const std::string& name, const Spectrum& spectrum) {
    const Turns frequency = rotation(spectrum).pairs[pair].frequency;
    chart::PlaneChart::Panel panel = {.name = panel_name(name, frequency_of(spectrum, pair)),
                                      .series = {}};
    const int64_t trained = stretched ? std::min(spectra.trained, end) : end;
    panel.series.push_back(points(frequency, list, 0, trained));
    if (trained < end) panel.series.push_back(points(frequency, list, trained, end));
    if (stretched) {
      const auto last = static_cast<double>(spectra.trained - 1);
      panel.arc = std::min(last * std::abs(frequency_of(spectra.plain, pair)), kCircle);
    }
    chart.panels.push_back(std::move(panel));
  };
  add(stretched ? "As trained" : "Rotated", spectra.plain);
  if (!stretched) chart.width = kOnePanel;
  if (stretched) {
    add(spectra.stretch, spectra.stretched);
    chart.arc_name = fmt::format("angles of training, positions 0 to {}", spectra.trained - 1);
  }
  return chart;
}

}  // namespace sextant::cli
