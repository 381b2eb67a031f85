// RoPE (Su et al. 2021), applied to one vector at every position. The vector is 1 in the first
// channel of each pair and 0 in the second, so rotated pairs are (cos, sin) of their angle.
// Channels that are not rotated are sqrt(1/2), so that each channel has the same share of the
// squared length dim / 2. Products of the rotated vectors, divided by it, are thus the scores of
// equal vectors of length 1. The gain of a stretch lengthens the rotated channels, so it is squared
// in the scores, which are above 1 then, and in the bound. The picture of a pair leaves it out.
#include "sextant/cli/plot/rope.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

#include "sextant/base/error.h"
#include "sextant/files/checked_json.h"
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
  if (scaling.base.value_or(base) != base || scaling.partial || !scaling.sections.empty()) {
    fail(named.where + ": expected a stretch alone, but got a rope_theta, partial_rotary_factor " +
         "or mrope_section besides");
  }
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
    if (length != kNone) {
      fail(fmt::format(
          "plot rope: --train-length: expected a --stretch, which starts from it, but got {} alone",
          length));
    }
    return rope_figures(values, named, nullptr);
  }
  json object = json_or_word(text);
  if (object.is_string()) object = scaling_of_words(object.get<std::string>(), named.where);
  if (!object.is_object()) object = scaling_of_words(text, named.where);
  return rope_figures(values, named, object);
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
  if (spectra.stretched.gain != 1) {
    settings += fmt::format(", gain {:.4g}", spectra.stretched.gain);
  }
  const PlotSubject subject = {"RoPE", settings, positions};
  const std::vector<double> rows = rotated(rotation(spectra.stretched), dim, positions);
  std::vector<Figure> figures = vector_figures(subject, rows, scores_of(rows, positions, dim),
                                               {.label = "score", .unit = "of equal unit vectors"});
  const auto distance = std::ranges::find(figures, "distance", &Figure::name);
  add_plain(std::get<chart::LineChart>(distance->chart), subject, spectra, dim);
  const std::string pair = values.text("pair");
  if (plain.pairs.empty() && pair != "auto") {
    fail(fmt::format("plot {}: --pair: expected auto, as no channel is rotated, but got {}",
                     values.method(), pair));
  }
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
