// RoPE (Su et al. 2021), applied to one vector at every position. The vector is 1 in the first
// channel of each pair and 0 in the second, so rotated pairs are (cos, sin) of their angle.
// Channels that are not rotated are sqrt(1/2), so that each channel has the same share of the
// squared length dim / 2. Products of the rotated vectors, divided by it, are thus the scores of
// equal vectors of length 1. The gain of a stretch lengthens the rotated channels, so it is squared
// in the scores, which are above 1 then, and in the bound. The picture of a pair leaves it out.
//
// The far decay of RoPE. The score of equal vectors is the mean of cos(d theta_f) over the pairs:
// the terms of fast pairs cancel one another, those of slow ones have hardly changed. The upper
// bound of Su et al. 2021 (section 3.4.3) falls with the distance, too, and is drawn as a share of
// its value at distance 0. A query that is its key rotated by the distance between them has the
// score 1 wherever the key is, so nothing in RoPE itself decays. The gain of a stretch is in the
// query and in the key, and thus squared in the scores and the bound; the terms are without it.
#include "sextant/cli/plot/rope.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

#include "sextant/base/error.h"
#include "sextant/files/json_fields.h"
#include "sextant/position/far_decay.h"
#include "sextant/position/position_products.h"
#include "sextant/rope_config/rope_scaling.h"

namespace sextant::cli {
namespace {

using nlohmann::json;

constexpr const char* kNone = "none";
constexpr int64_t kMostLength = int64_t{1} << 40, kTrainLength = 128;

std::vector<double> rotated(const Rotation& rotation, int64_t dim, const Positions& positions) {
  std::vector<double> rows;
  for (const int64_t position : positions.list) {
    std::vector<double> row(static_cast<size_t>(dim), std::sqrt(0.5));
    for (const Rotation::Pair& pair : rotation.pairs) {
      const CosSin angle = cos_sin(pair.frequency * position);
      row[static_cast<size_t>(pair.first)] = rotation.gain * angle.cos;
      row[static_cast<size_t>(pair.second)] = rotation.gain * angle.sin;
    }
    rows.insert(rows.end(), row.begin(), row.end());
  }
  return rows;
}

std::vector<double> scores_of(std::span<const double> rows, const Positions& positions,
                              int64_t dim) {
  std::vector<double> scores = position_products(rows, static_cast<int64_t>(positions.list.size()));
  for (double& score : scores) score /= static_cast<double>(dim) / 2;
  return scores;
}

RopeScaling scaling_of(const Spectrum& plain, double base, const PlottedStretch& named,
                       const json& stretch) {
  if (stretch.is_null()) return {};
  RopeScaling scaling = read_scaling(stretch,
                                     {.base = base,
                                      .pairs = static_cast<int64_t>(plain.pairs.size()),
                                      .original_length = named.trained},
                                     named.where);
  if (scaling.base.value_or(base) != base || scaling.partial || !scaling.sections.empty())
    fail(named.where + ": expected a stretch alone, but got a rope_theta, partial_rotary_factor " +
         "or mrope_section besides");
  return scaling;
}

// The scores of equal vectors before the stretch, beside those after it.
void add_plain(chart::LineChart& line, const PlotSubject& subject, const TwoSpectra& spectra,
               int64_t dim) {
  if (spectra.stretch.empty()) return;
  line.series[0].name = spectra.stretch;
  const Rotation plain = rotation(spectra.plain);
  const auto pairs = static_cast<double>(plain.pairs.size()), half = static_cast<double>(dim) / 2;
  line.series.push_back(
      distance_series(subject, {.value = line.y}, "without it", [&](int64_t distance) {
        const double score = pairs == 0 ? 0 : pairs * score_of_equal_vectors(plain, distance);
        return (score + half - pairs) / half;
      }));
}

// Parses --stretch and --train-length.
std::vector<Figure> figures_by_options(const PlotValues& values) {
  const std::string& text = values.text("stretch");
  const std::string& length = values.text("train-length");
  PlottedStretch named = {
      .name = text == kNone ? "" : text,
      .where = "plot rope: --stretch",
      .trained = length == kNone ? kTrainLength : values.integer("train-length", 1, kMostLength)};
  if (text == kNone) {
    if (length != kNone)
      fail(fmt::format(
          "plot rope: --train-length: expected a --stretch, which starts from it, but got {} alone",
          length));
    return rope_figures(values, named, nullptr);
  }
  json object = json_or_word(text);
  if (object.is_string()) object = scaling_of_words(object.get<std::string>(), named.where);
  if (!object.is_object()) object = scaling_of_words(text, named.where);
  return rope_figures(values, named, object);
}

// The terms of the score of equal vectors, cos(d theta_f) of each pair and distance, and below them
// their mean, that score without the gain.
chart::Panels terms_chart(const PlotSubject& subject, const TwoSpectra& spectra) {
  const Rotation now = rotation(spectra.stretched);
  const std::vector<int64_t>& distances = subject.positions.list;
  chart::HeatMap map = {.title = "",
                        .subtitle = "cos(d theta_f), the term of pair f at distance d",
                        .y = {.label = "pair f, fastest first"},
                        .value = {.label = "term"},
                        .columns = {.count = static_cast<int64_t>(distances.size()),
                                    .step = static_cast<double>(subject.positions.step)},
                        .rows = {.count = static_cast<int64_t>(now.pairs.size())},
                        .colours = chart::Colours::kDiverging};
  map.height = 340;
  for (const Rotation::Pair& pair : now.pairs) {
    for (const int64_t distance : distances)
      map.values.push_back(cos_sin(pair.frequency * distance).cos);
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

// The upper bound of the far decay (far_decay.h), divided by its value at distance 0, and the score
// of equal vectors, to a distance of at least 1023, times the square of the gain.
chart::LineChart bound_chart(const PlotSubject& subject, const TwoSpectra& spectra) {
  PlotSubject far = subject;
  for (int64_t d = far.positions.list.back(); (d += far.positions.step) < 1024;)
    far.positions.list.push_back(d);
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

}  // namespace

std::vector<PlotOption> rope_plot_options() {
  return {{"dim", "head size", "64"},
          {"rotated", "channels that are rotated: an even number, or all", "all"},
          {"base", "longest wavelength / 2 pi", "10000"},
          {"pairing", "half-split or interleaved", "half-split"},
          {"pair",
           "pair of channels in the plane, 0 the fastest; auto: the fastest with at most one "
           "rotation within --length (with a stretch: a third of one within the training length), "
           "else the slowest",
           "auto"}};
}

std::vector<OwnOption> rope_own_options() {
  return {{.name = "dim", .option = "rotated", .nullable = true},
          {.name = "base", .option = "base"},
          {.name = "pairing",
           .option = "pairing",
           .values = {{R"("half-split")", "half-split"}, {R"("interleaved")", "interleaved"}}}};
}

std::vector<Figure> rope_figures(const PlotValues& values, const PlottedStretch& named,
                                 const json& stretch) {
  const int64_t dim = values.integer("dim", 1, 4096);
  const int64_t rotating =
      values.text("rotated") == "all" ? dim : values.integer("rotated", 0, dim);
  const size_t pairing = values.choice("pairing", {"half-split", "interleaved"});
  const RotaryOptions options = {
      .dim = rotating,
      .base = values.number("base", 1e-3, 1e30),
      .pairing = pairing == 0 ? Pairing::kHalfSplit : Pairing::kInterleaved};
  const Positions positions = positions_of(values);
  const Spectrum plain = rotary(options);
  const RopeScaling scaling = scaling_of(plain, options.base, named, stretch);
  const TwoSpectra spectra = {
      .stretch = named.name,
      .trained = scaling.original_length > 0 ? scaling.original_length : named.trained,
      .plain = plain,
      .stretched = stretched(plain, stretch_of(scaling, values.integer("length", 1, kMostLength)))};
  std::string settings = fmt::format("{} of {} channels rotated, {}, base {}", rotating, dim,
                                     values.text("pairing"), options.base);
  if (!named.name.empty()) settings += ", " + named.name;
  if (scaling.original_length > 0) settings += fmt::format(" of {}", scaling.original_length);
  if (spectra.stretched.gain != 1) settings += fmt::format(", gain {:.4g}", spectra.stretched.gain);
  const PlotSubject subject = {"RoPE", settings, positions};
  const std::vector<double> rows = rotated(rotation(spectra.stretched), dim, positions);
  std::vector<Figure> figures = vector_figures(subject, rows, scores_of(rows, positions, dim),
                                               {.label = "score", .unit = "of equal unit vectors"});
  const auto distance = std::ranges::find(figures, "distance", &Figure::name);
  add_plain(std::get<chart::LineChart>(distance->chart), subject, spectra, dim);
  const std::string pair = values.text("pair");
  if (plain.pairs.empty() && pair != "auto")
    fail(fmt::format("plot {}: --pair: expected auto, as no channel is rotated, but got {}",
                     values.method(), pair));
  if (plain.pairs.empty()) return figures;
  figures.push_back({"terms", terms_chart(subject, spectra)});
  figures.push_back({"bound", bound_chart(subject, spectra)});
  std::ranges::move(plane_figures(values, subject, spectra), std::back_inserter(figures));
  if (!named.name.empty()) figures.push_back({"numbers", numbers_of(spectra)});
  return figures;
}

PlottedMethod rope_plot() {
  std::vector<PlotOption> options = rope_plot_options();
  options.push_back(
      {"stretch", "as yarn*8 or pi*8, or Hugging Face's rope_scaling in JSON", kNone});
  options.push_back({"train-length",
                     fmt::format("length that the stretch starts from; none: {}", kTrainLength),
                     kNone});
  std::vector<OwnOption> own = rope_own_options();
  own.push_back(
      {.name = "stretch", .option = "stretch", .type = OwnType::kStretch, .nullable = true});
  return {"rope", "Rotary positions (Su et al. 2021)", with_positions(std::move(options)),
          figures_by_options, std::move(own)};
}

}  // namespace sextant::cli
