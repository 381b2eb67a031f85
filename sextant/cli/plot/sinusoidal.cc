// Sinusoidal positions (Vaswani et al. 2017), in each layout.
#include <fmt/format.h>

#include "sextant/cli/plot/figures.h"
#include "sextant/position/sinusoid.h"

namespace sextant::cli {
namespace {

std::vector<Figure> figures(const PlotValues& values) {
  const size_t layout =
      values.choice("layout", {"interleaved", "concatenated", "tensor2tensor", "fairseq"});
  const bool fairseq = layout == 3;
  const SinusoidOptions options = {
      .width = values.integer("dim", 1, 4096),
      .layout = fairseq ? SinusoidLayout::kTensor2Tensor : static_cast<SinusoidLayout>(layout),
      .max_timescale = values.number("base", 1e-3, 1e30)};
  const Subject subject = {"Sinusoidal positions",
                           fmt::format("{} dimensions, {}, base {}", options.width,
                                       values.text("layout"), options.max_timescale),
                           positions_of(values)};
  std::vector<int64_t> positions = subject.positions.list;
  // A text's first token stands behind padding's row, that of token 1.
  if (fairseq)
    for (int64_t& position : positions) position += 2;
  return vector_figures(subject, Sinusoid(options).rows(positions),
                        {.label = "similarity", .unit = "cosine"});
}

}  // namespace

PlottedMethod sinusoidal_plot() {
  return {"sinusoidal", "Sinusoidal positions (Vaswani et al. 2017)",
          with_positions(
              {{"dim", "width of a vector", "64"},
               {"base", "longest wavelength / 2 pi", "10000"},
               {"layout", "interleaved, concatenated, tensor2tensor or fairseq", "interleaved"}}),
          figures};
}

}  // namespace sextant::cli
