// Position vectors of clock hands, each with its own period.
#include <fmt/format.h>

#include "sextant/cli/plot/projected.h"
#include "sextant/position/clock.h"

namespace sextant::cli {
namespace {

std::vector<Figure> clock_figures(const PlotValues& values) {
  const std::vector<int64_t> periods = values.integers("periods", 1, int64_t{1} << 40);
  const PlotSubject subject = {"Clock", fmt::format("periods {}", fmt::join(periods, ", ")),
                               positions_of(values)};
  return added_figures(values, subject, clock_rows(periods, subject.positions.list));
}

}  // namespace

PlottedMethod clock_plot() {
  return {"clock",
          "Hands of a clock: sin and cos of whole periods",
          with_positions(
              with_projections({{"periods", "positions in a turn of each hand", "60,3600,43200"}}),
              256),
          clock_figures,
          {{.name = "periods", .option = "periods", .type = OwnType::kNumbers}}};
}

}  // namespace sextant::cli
