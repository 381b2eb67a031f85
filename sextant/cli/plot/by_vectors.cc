// Encodings drawn as the vectors that they add to the input: binary digits, clock hands, sinusoids.
#include <fmt/format.h>

#include <algorithm>

#include "sextant/cli/plot/figures.h"
#include "sextant/position/binary.h"
#include "sextant/position/clock.h"
#include "sextant/position/sinusoid.h"

namespace sextant::cli {
namespace {

// Position vectors of binary digits.
std::vector<Figure> binary_figures(const PlotValues& values) {
  const int64_t bits = values.integer("bits", 1, 63);
  const size_t levels = values.choice("levels", {"-1,1", "0,1"});
  const PlotSubject subject = {"Binary positions",
                               fmt::format("{} bits, levels {}", bits, values.text("levels")),
                               positions_of(values)};
  const BinaryLevels kind = levels == 0 ? BinaryLevels::kMinusOneOne : BinaryLevels::kZeroOne;
  return added_figures(values, subject, binary_rows(bits, kind, subject.positions.list));
}

PlottedMethod binary_plot() {
  return {"binary",
          "The bits of the position",
          with_positions(with_projections(
              {{"bits", "number of bits", "16"}, {"levels", "-1,1 or 0,1", "0,1"}})),
          binary_figures,
          {{.name = "bits", .option = "bits"},
           {.name = "levels",
            .option = "levels",
            .values = {{R"("-1/1")", "-1,1"}, {R"("0/1")", "0,1"}}}}};
}

// Position vectors of clock hands, each with its own period, or of the alien clock.
constexpr const char* kAuto = "auto";
constexpr int64_t kHands = 4, kMostHands = 1024;  // of the alien clock

std::vector<Figure> earth_figures(const PlotValues& values, const std::vector<int64_t>& periods) {
  if (values.text("hands") != kAuto)
    values.refuse("hands", fmt::format("{}, as each of the periods is a hand", kAuto));
  const PlotSubject subject = {"Clock", fmt::format("periods {}", fmt::join(periods, ", ")),
                               positions_of(values)};
  return added_figures(values, subject, clock_rows(periods, subject.positions.list));
}

std::vector<Figure> alien_figures(const PlotValues& values, const std::vector<int64_t>& periods) {
  if (!std::ranges::equal(periods, kClockPeriods))
    values.refuse("periods", fmt::format("{}, as the alien clock has periods of its own",
                                         fmt::join(kClockPeriods, ",")));
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

// Sinusoidal positions (Vaswani et al. 2017), in every layout.
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

}  // namespace

std::vector<PlottedMethod> vector_plots() {
  return {binary_plot(), clock_plot(), sinusoidal_plot()};
}

}  // namespace sextant::cli
