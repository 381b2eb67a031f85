// Sinusoidal positions (Vaswani et al. 2017), in each layout.
#include <fmt/format.h>

#include "sextant/cli/plot/figures.h"
#include "sextant/position/sinusoid.h"

namespace sextant::cli {
namespace {

std::vector<Figure> figures(const PlotValues& values) {
  const SinusoidOptions options = {.width = values.integer("dim", 1, 4096),
                                   .layout = static_cast<SinusoidLayout>(values.choice(
                                       "layout", {"interleaved", "concatenated", "tensor2tensor"})),
                                   .max_timescale = values.number("base", 1e-3, 1e30)};
  const Subject subject = {"Sinusoidal positions",
                           fmt::format("{} dimensions, {}, base {}", options.width,
                                       values.text("layout"), options.max_timescale),
                           positions_of(values)};
  return vector_figures(subject, Sinusoid(options).rows(subject.positions.list),
                        {.label = "similarity", .unit = "cosine"});
}

}  // namespace

PlottedMethod sinusoidal_plot() {
  return {"sinusoidal", "Sinusoidal positions (Vaswani et al. 2017)",
          with_positions({{"dim", "width of a vector", "64"},
                          {"base", "longest wavelength / 2 pi", "10000"},
                          {"layout", "interleaved, concatenated or tensor2tensor", "interleaved"}}),
          figures};
}

}  // namespace sextant::cli
