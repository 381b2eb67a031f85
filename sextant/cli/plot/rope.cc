// RoPE (Su et al. 2021), applied to one vector at every position. The vector is 1 in the first
// channel of each pair and 0 in the second, so rotated pairs are (cos, sin) of their angle.
// Channels that are not rotated are sqrt(1/2), so that each channel has the same share of the
// squared length. Cosines between the rotated vectors are thus the scores of equal vectors of
// length 1. The gain of a stretch lengthens the rotated channels.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "sextant/base/error.h"
#include "sextant/cli/plot/figures.h"
#include "sextant/position/spectrum.h"
#include "sextant/rope_config/rope_scaling.h"

namespace sextant::cli {
namespace {

constexpr const char* kNone = "none";
constexpr int64_t kMostLength = int64_t{1} << 40, kTrainLength = 128;

std::vector<double> turned(const Rotation& rotation, int64_t dim, const Positions& positions) {
  std::vector<double> rows;
  for (const int64_t position : positions.list) {
    std::vector<double> row(static_cast<size_t>(dim), std::sqrt(0.5));
    for (const Rotation::Pair& pair : rotation.pairs) {
      const CosSin turn = cos_sin(pair.speed * position);
      row[static_cast<size_t>(pair.first)] = rotation.gain * turn.cos;
      row[static_cast<size_t>(pair.second)] = rotation.gain * turn.sin;
    }
    rows.insert(rows.end(), row.begin(), row.end());
  }
  return rows;
}

// Parses --stretch and --train-length.
RopeScaling scaling_of(const Spectrum& plain, double base, const PlotValues& values) {
  using nlohmann::json;
  const std::string& text = values.text("stretch");
  const std::string& length = values.text("train-length");
  const int64_t trained =
      length == kNone ? kTrainLength : values.integer("train-length", 1, kMostLength);
  if (text == kNone) {
    if (length != kNone) {
      fail(fmt::format(
          "plot rope: --train-length: expected a --stretch, which starts from it, but got {} alone",
          length));
    }
    return {};
  }
  const std::string where = "plot rope: --stretch";
  json object = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) object = scaling_of_words(text, where);
  RopeScaling scaling = read_scaling(
      object,
      {.base = base, .pairs = static_cast<int64_t>(plain.pairs.size()), .original_length = trained},
      where);
  if (scaling.base.value_or(base) != base || scaling.partial || !scaling.sections.empty()) {
    fail(where + ": expected a stretch alone, but got a rope_theta, partial_rotary_factor or " +
         "mrope_section besides");
  }
  return scaling;
}

std::vector<Figure> rope_figures(const PlotValues& values) {
  const int64_t dim = values.integer("dim", 1, 4096);
  const int64_t rotated = values.text("rotated") == "all" ? dim : values.integer("rotated", 0, dim);
  const size_t pairing = values.choice("pairing", {"half-split", "interleaved"});
  const RotaryOptions options = {
      .dim = rotated,
      .base = values.number("base", 1e-3, 1e30),
      .pairing = pairing == 0 ? Pairing::kHalfSplit : Pairing::kInterleaved};
  const Positions positions = positions_of(values);
  const Spectrum plain = rotary(options);
  const RopeScaling scaling = scaling_of(plain, options.base, values);
  const Spectrum spectrum =
      stretched(plain, stretch_of(scaling, values.integer("length", 1, kMostLength)));
  std::string settings = fmt::format("{} of {} channels turn, {}, base {}", rotated, dim,
                                     values.text("pairing"), options.base);
  if (values.text("stretch") != kNone) settings += ", " + values.text("stretch");
  if (scaling.original_length > 0) settings += fmt::format(" of {}", scaling.original_length);
  if (spectrum.gain != 1) settings += fmt::format(", gain {:.4g}", spectrum.gain);
  const PlotSubject subject = {"RoPE", settings, positions};
  return vector_figures(subject, turned(rotation(spectrum), dim, subject.positions),
                        {.label = "score", .unit = "of equal unit vectors"});
}

}  // namespace

PlottedMethod rope_plot() {
  return {
      "rope", "Rotary positions (Su et al. 2021)",
      with_positions(
          {{"dim", "head size", "64"},
           {"rotated", "channels that turn: an even number, or all", "all"},
           {"base", "longest wavelength / 2 pi", "10000"},
           {"pairing", "half-split or interleaved", "half-split"},
           {"stretch", "as yarn*8, or Hugging Face's rope_scaling in JSON", kNone},
           {"train-length",
            fmt::format("length that the stretch starts from; none: {}", kTrainLength), kNone}}),
      rope_figures};
}

}  // namespace sextant::cli
