// Position vectors of binary digits.
#include <fmt/format.h>

#include "sextant/cli/plot/projected.h"
#include "sextant/position/binary.h"

namespace sextant::cli {
namespace {

std::vector<Figure> binary_figures(const PlotValues& values) {
  const int64_t bits = values.integer("bits", 1, 63);
  const size_t levels = values.choice("levels", {"-1,1", "0,1"});
  const PlotSubject subject = {"Binary positions",
                               fmt::format("{} bits, levels {}", bits, values.text("levels")),
                               positions_of(values)};
  const BinaryLevels kind = levels == 0 ? BinaryLevels::kMinusOneOne : BinaryLevels::kZeroOne;
  return added_figures(values, subject, binary_rows(bits, kind, subject.positions.list));
}

}  // namespace

PlottedMethod binary_plot() {
  return {"binary",
          "The bits of the position",
          with_positions(with_projections(
              {{"bits", "number of bits", "8"}, {"levels", "-1,1 or 0,1", "-1,1"}})),
          binary_figures,
          {{.name = "bits", .option = "bits"},
           {.name = "levels",
            .option = "levels",
            .values = {{R"("-1/1")", "-1,1"}, {R"("0/1")", "0,1"}}}}};
}

}  // namespace sextant::cli
