// Sinusoidal positions (Vaswani et al. 2017), in every layout.
#include <fmt/format.h>

#include "sextant/cli/plot/projected.h"
#include "sextant/position/sinusoid.h"

namespace sextant::cli {
namespace {

std::vector<Figure> sinusoidal_figures(const PlotValues& values) {
  const TextSinusoid text = text_sinusoid(values.text("layout"), "plot sinusoidal: --layout");
  const SinusoidOptions options = {.width = values.integer("dim", 1, 4096),
                                   .layout = text.layout,
                                   .max_timescale = values.number("base", 1e-3, 1e30)};
  const PlotSubject subject = {"Sinusoidal positions",
                               fmt::format("{} dimensions, {}, base {}", options.width,
                                           values.text("layout"), options.max_timescale),
                               positions_of(values)};
  std::vector<int64_t> positions = subject.positions.list;
  for (int64_t& position : positions) position += text.first_position();
  return added_figures(values, subject, Sinusoid(options).rows(positions));
}

}  // namespace

PlottedMethod sinusoidal_plot() {
  return {"sinusoidal",
          "Sinusoidal positions (Vaswani et al. 2017)",
          with_positions(
              with_projections({{"dim", "width of a vector", "64"},
                                {"base", "longest wavelength / 2 pi", "10000"},
                                {"layout", "one of " + text_sinusoid_names(), "interleaved"}})),
          sinusoidal_figures,
          {{.name = "base", .option = "base"},
           {.name = "layout", .option = "layout", .type = OwnType::kString}}};
}

}  // namespace sextant::cli
