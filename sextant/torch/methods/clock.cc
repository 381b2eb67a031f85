// clock: the hands of a clock at each position, added to the input.
//
// Hand j makes one revolution per T_j positions and gives sin and cos (sextant/position/clock.h).
// The default is a clock face in seconds, periods 60, 3600 and 43200. The source of this encoding
// has periods 1, 3600 and 43200, of which the first gives constant columns: `periods` [1, 3600,
// 43200]. The code fills the first columns of the input and leaves the rest unchanged, or, with
// `projected`, is multiplied by a trained matrix. It repeats after the least common multiple of the
// periods.

#include <nlohmann/json.hpp>
#include <string>

#include "sextant/base/error.h"
#include "sextant/position/clock.h"
#include "sextant/torch/method.h"
#include "sextant/torch/methods/shared/options.h"
#include "sextant/torch/methods/shared/position_code.h"

namespace sextant {
namespace {

std::unique_ptr<Method> make_clock(const ModelShape& shape, const nlohmann::json& json) {
  const Options options("clock", json);
  const nlohmann::json& list = json.at("periods");
  std::vector<int64_t> periods;
  if (list.is_array())
    for (const nlohmann::json& period : list)
      if (period.is_number_integer() && period.get<int64_t>() >= 1)
        periods.push_back(period.get<int64_t>());
  if (periods.empty() || periods.size() != list.size())
    options.refuse("periods", "a list of integers of at least 1");
  const auto columns = static_cast<int64_t>(2 * periods.size());
  return std::make_unique<PositionCode>(
      "clock", columns, shape.width, options.flag("projected"),
      [periods](std::span<const int64_t> positions) { return clock_rows(periods, positions); });
}

}  // namespace

MethodInfo clock_method() {
  return {.name = "clock",
          .summary = "The hands of a clock, added to the input",
          .formula =
              "row(k) = [ sin(2 pi k / T_0), cos(2 pi k / T_0), sin(2 pi k / T_1), cos(2 pi k / "
              "T_1), ... ]",
          .defaults = R"({"periods": [60, 3600, 43200], "projected": false})",
          .make = make_clock};
}

}  // namespace sextant
