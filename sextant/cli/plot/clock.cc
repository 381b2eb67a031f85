// Position vectors of clock hands, each with its own period, or of the alien clock.
#include <fmt/format.h>

#include <algorithm>

#include "sextant/cli/plot/projected.h"
#include "sextant/position/clock.h"

namespace sextant::cli {
namespace {

constexpr const char* kAuto = "auto";
constexpr int64_t kHands = 4, kMostHands = 1024;  // of the alien clock

std::vector<Figure> earth_figures(const PlotValues& values, const std::vector<int64_t>& periods) {
  if (values.text("hands") != kAuto) {
    values.refuse("hands", fmt::format("{}, as each of the periods is a hand", kAuto));
  }
  const PlotSubject subject = {"Clock", fmt::format("periods {}", fmt::join(periods, ", ")),
                               positions_of(values)};
  return added_figures(values, subject, clock_rows(periods, subject.positions.list));
}

std::vector<Figure> alien_figures(const PlotValues& values, const std::vector<int64_t>& periods) {
  if (!std::ranges::equal(periods, kClockPeriods)) {
    values.refuse("periods", fmt::format("{}, as the alien clock has periods of its own",
                                         fmt::join(kClockPeriods, ",")));
  }
  const int64_t hands =
      values.text("hands") == kAuto ? kHands : values.integer("hands", 1, kMostHands);
  const PlotSubject subject = {"Alien clock", fmt::format("{} hands, ratio 3600^2", hands),
                               positions_of(values)};
  return added_figures(values, subject,
                       alien_clock_rows(kAlienRatio, hands, subject.positions.list));
}

std::vector<Figure> clock_figures(const PlotValues& values) {
  const bool alien = values.choice("system", {"earth", "alien"}) == 1;
  const std::vector<int64_t> periods = values.integers("periods", 1, int64_t{1} << 40);
  return alien ? alien_figures(values, periods) : earth_figures(values, periods);
}

}  // namespace

PlottedMethod clock_plot() {
  return {
      "clock",
      "Hands of a clock: sin and cos of whole periods",
      with_positions(
          with_projections({{"periods", "positions in a turn of each hand", "60,3600,43200"},
                            {"system", "earth, or alien: a ratio of 3600^2 between hands", "earth"},
                            {"hands", fmt::format("of the alien clock; auto: {}", kHands), kAuto}}),
          256),
      clock_figures,
      {{.name = "periods", .option = "periods", .type = OwnType::kNumbers},
       {.name = "system",
        .option = "system",
        .values = {{R"("earth")", "earth"}, {R"("alien")", "alien"}}},
       {.name = "hands", .option = "hands", .nullable = true}}};
}

}  // namespace sextant::cli
