// RoPE (Su et al. 2021): what it makes of one and the same vector at each position. The vector has 1
// in the first channel of each pair, so its turned pairs are (cos, sin) of their angles; channels that
// do not turn get sqrt(1/2), so that each channel has the same share of the whole. Turned vectors'
// scores are then those of equal vectors, of length 1.
#include <fmt/format.h>

#include <cmath>

#include "sextant/cli/plot/figures.h"
#include "sextant/position/spectrum.h"

namespace sextant::cli {
namespace {

std::vector<double> turned(const Rotation& rotation, int64_t dim, const Positions& positions) {
  std::vector<double> rows;
  for (const int64_t position : positions.list) {
    std::vector<double> row(static_cast<size_t>(dim), std::sqrt(0.5));
    for (const Rotation::Pair& pair : rotation.pairs) {
      const CosSin turn = cos_sin(pair.speed * position);
      row[static_cast<size_t>(pair.first)] = turn.cos;
      row[static_cast<size_t>(pair.second)] = turn.sin;
    }
    rows.insert(rows.end(), row.begin(), row.end());
  }
  return rows;
}

std::vector<Figure> figures(const PlotValues& values) {
  const int64_t dim = values.integer("dim", 1, 4096);
  const int64_t rotated = values.text("rotated") == "all" ? dim : values.integer("rotated", 0, dim);
  const size_t pairing = values.choice("pairing", {"half-split", "interleaved"});
  const RotaryOptions options = {
      .dim = rotated,
      .base = values.number("base", 1e-3, 1e30),
      .pairing = pairing == 0 ? Pairing::kHalfSplit : Pairing::kInterleaved};
  const Subject subject = {"RoPE",
                           fmt::format("{} of {} channels turn, {}, base {}", rotated, dim,
                                       values.text("pairing"), options.base),
                           positions_of(values)};
  return vector_figures(subject, turned(rotation(rotary(options)), dim, subject.positions),
                        {.label = "score", .unit = "of equal unit vectors"});
}

}  // namespace

PlottedMethod rope_plot() {
  return {"rope", "Rotary positions (Su et al. 2021)",
          with_positions({{"dim", "head size", "64"},
                          {"rotated", "channels that turn: an even number, or all", "all"},
                          {"base", "longest wavelength / 2 pi", "10000"},
                          {"pairing", "half-split or interleaved", "half-split"}}),
          figures};
}

}  // namespace sextant::cli
