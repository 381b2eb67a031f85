// sextant explain --out: the wavelength of each pair before and after the stretch.
#include <fmt/format.h>

#include <cmath>

#include "sextant/cli/explain/subject.h"

namespace sextant::cli {

chart::LineChart wavelengths(const Subject& subject) {
  chart::LineChart chart;
  chart.title = "Wavelengths before and after " + name_of(subject.config.scaling).name;
  chart.subtitle = fmt::format("base {}, {} pairs", fmt::format("{:.6g}", subject.config.base),
                               subject.numbers.pairs.size());
  chart.x = {.label = "pair, fastest first"};
  chart.y = {.label = "wavelength", .unit = "positions", .scale = chart::Scale::kLog10};
  chart::Series before{.name = "as trained"}, after{.name = "stretched", .emphasis = true};
  chart::Series length{.name = "trained length"};
  for (size_t f = 0; f < subject.numbers.pairs.size(); ++f) {
    const PairExplained& pair = subject.numbers.pairs[f];
    for (auto* series : {&before, &after, &length}) series->x.push_back(static_cast<double>(f));
    before.y.push_back(6.283185307179586 / pair.frequency);
    after.y.push_back(pair.stretched == 0 ? NAN : 6.283185307179586 / pair.stretched);
    length.y.push_back(static_cast<double>(subject.numbers.trained));
  }
  chart.series = {before, after};
  if (subject.numbers.trained > 0) chart.series.push_back(length);
  return chart;
}

}  // namespace sextant::cli
