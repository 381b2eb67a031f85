// sextant explain --out: the wavelength of each pair before and after the stretch.
#include <fmt/format.h>

#include "sextant/cli/explain/subject.h"
#include "sextant/cli/plot/figures.h"

namespace sextant::cli {

chart::LineChart wavelengths(const Subject& subject) {
  Wavelengths before = {.name = "as trained", .frequencies = {}};
  Wavelengths after = {.name = "stretched", .frequencies = {}};
  for (const PairExplained& pair : subject.numbers.pairs) {
    before.frequencies.push_back(pair.frequency);
    after.frequencies.push_back(pair.stretched);
  }
  chart::LineChart chart =
      wavelengths_chart(std::vector<Wavelengths>{before, after}, subject.numbers.trained);
  chart.title = "Wavelengths before and after " + name_of(subject.config.scaling).name;
  chart.subtitle =
      fmt::format("base {:.6g}, {} pairs", subject.config.base, subject.numbers.pairs.size());
  chart.series[1].emphasis = true;
  return chart;
}

}  // namespace sextant::cli
