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

// The vectors of each position, their scores between positions and by distance, the bound of the
// far decay, and one pair of channels in the plane. `stretch` is rope's option of that name as
// JSON; null for none.
std::vector<Figure> rope_figures(const PlotValues& values, const PlottedStretch& named,
                                 const nlohmann::json& stretch);

// A spectrum before and after a stretch; equal if there is none.
struct TwoSpectra {
  std::string stretch;  // empty for none
  int64_t trained = 0;  // L of the stretch
  Spectrum plain, stretched;
};

// The upper bound of the far decay (far_decay.h) and the score of equal vectors, by distance, times
// the square of the gain.
chart::LineChart bound_chart(const PlotSubject& subject, const TwoSpectra& spectra);

// Pair `--pair` of channels as a point of the plane, rotated by the positions; a second panel shows
// it stretched. A gain is left out, as the subtitle then says.
chart::PlaneChart pair_chart(const PlotValues& values, const PlotSubject& subject,
                             const TwoSpectra& spectra);

}  // namespace sextant::cli
