// clock: the hands of a clock at each position, added to the input.
//
// Hand j makes one revolution per T_j positions and gives sin and cos (sextant/position/clock.h).
// The default is a clock face in seconds, periods 60, 3600 and 43200. The source of this encoding
// has periods 1, 3600 and 43200, of which the first gives constant columns: `periods` [1, 3600,
// 43200]. `system` "alien" is the source's alien clock, sin(k / 3600^(2j)) and cos(k / 3600^(2j))
// for j = 0 .. `hands` - 1; null hands fill the width. The code fills the first columns of the
// input and leaves the rest unchanged, or, with `projected`, is multiplied by a trained matrix. A
// clock face repeats after the least common multiple of its periods.

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "sextant/position/clock.h"
#include "sextant/torch/method.h"
#include "sextant/torch/methods/shared/options.h"
#include "sextant/torch/methods/shared/position_code.h"

namespace sextant {
namespace {

constexpr int64_t kMostHands = 1 << 20;

std::vector<int64_t> periods_of(const Options& options) {
  const nlohmann::json& list = options.at("periods");
  std::vector<int64_t> periods;
  if (list.is_array())
    for (const nlohmann::json& period : list)
      if (period.is_number_integer() && period.get<int64_t>() >= 1)
        periods.push_back(period.get<int64_t>());
  if (periods.empty() || periods.size() != list.size())
    options.refuse("periods", "a list of integers of at least 1");
  return periods;
}

// The number of columns of the code, and its rows.
struct Face {
  int64_t columns = 0;
  PositionCode::Rows rows;
};

Face face_of(const Options& options, int64_t width) {
  const std::vector<int64_t> periods = periods_of(options);
  if (options.choice("system", {"earth", "alien"}) == 0) {
    if (!options.value("hands").is_null())
      options.refuse("hands", "null, as each of the periods is a hand");
    return {.columns = static_cast<int64_t>(2 * periods.size()),
            .rows = [periods](std::span<const int64_t> positions) {
              return clock_rows(periods, positions);
            }};
  }
  if (!std::ranges::equal(periods, kClockPeriods))
    options.refuse("periods", "the default, as the alien clock has periods of its own");
  const int64_t hands = options.integer_or("hands", std::max<int64_t>(width / 2, 1), 1, kMostHands);
  return {.columns = 2 * hands, .rows = [hands](std::span<const int64_t> positions) {
            return alien_clock_rows(kAlienRatio, hands, positions);
          }};
}

std::unique_ptr<Method> make_clock(const ModelShape& shape, const nlohmann::json& json) {
  const Options options("clock", json);
  Face face = face_of(options, shape.width);
  return std::make_unique<PositionCode>("clock", face.columns, shape.width,
                                        options.flag("projected"), std::move(face.rows));
}

}  // namespace

MethodInfo clock_method() {
  return {.name = "clock",
          .summary = "The hands of a clock, added to the input",
          .formula =
              "row(k) = [ sin(2 pi k / T_0), cos(2 pi k / T_0), sin(2 pi k / T_1), cos(2 pi k / "
              "T_1), ... ]; "
              "alien: row(k)[2j] = sin(k / 3600^(2j)), row(k)[2j+1] = cos(k / 3600^(2j))",
          .defaults = R"({"periods": [60, 3600, 43200], "system": "earth", "hands": null,
                          "projected": false})",
          .make = make_clock};
}

}  // namespace sextant
