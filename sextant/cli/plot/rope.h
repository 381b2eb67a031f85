// The figures of rope, as it is or stretched, that `plot rope` and the plots of stretches share.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sextant/cli/plot/figures.h"
#include "sextant/position/spectrum.h"

namespace sextant::cli {

// The options that all plots of rope have, besides those of the stretch.
std::vector<PlotOption> rope_plot_options();
// The options of the method rope that they express.
std::vector<OwnOption> rope_own_options();

struct PlottedStretch {
  std::string name;       // as typed, "yarn*8"; empty for none
  std::string where;      // begins the message of an error: "plot rope: --stretch"
  int64_t trained = 128;  // L
};

// The vectors of each position, their scores between positions and by distance, the terms of these,
// the bound of the far decay, one pair of channels in the plane, and a query and a key before and
// after a shift. With a stretch also neighbours before and after it, a fast, a middle and a slow
// pair, and numbers. `stretch` is rope's option of that name as JSON; null for none.
std::vector<Figure> rope_figures(const PlotValues& values, const PlottedStretch& named,
                                 const nlohmann::json& stretch);

// A spectrum before and after a stretch; equal if there is none.
struct TwoSpectra {
  std::string stretch;  // empty for none
  int64_t trained = 0;  // L of the stretch
  Spectrum plain, stretched;
};

// Figures of pairs as points of the plane, without the gain: `pair`, that of `--pair` rotated by
// the positions; `shift`, a query and a key in it, not rotated, at two positions, and at both of
// these moved by the same, with the same angle between; of a stretch also `neighbours`, the first
// positions of the fastest pair before and after, and `pairs`, a fast, a middle and a slow one.
std::vector<Figure> plane_figures(const PlotValues& values, const PlotSubject& subject,
                                  const TwoSpectra& spectra);

// The base whose frequencies these are, up to a common factor; NaN if there is none.
double base_of(const Spectrum& spectrum);
// Base, radians a position of the fastest pair, and score of neighbours, before and after.
NumberTable numbers_of(const TwoSpectra& spectra);

}  // namespace sextant::cli
