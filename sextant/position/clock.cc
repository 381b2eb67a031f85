#include "sextant/position/clock.h"

#include <cmath>
#include <string>

#include "sextant/base/error.h"
#include "sextant/position/fixed_point.h"
#include "sextant/position/spectrum.h"
#include "sextant/position/turns.h"

namespace sextant {
namespace {

// position / period, in turns, rounded down to a multiple of 2^-128 and so exact at quarter turns.
Turns part_of_turn(int64_t position, int64_t period) {
  const auto divisor = static_cast<Uint128>(period);
  const int64_t rest = position % period;
  const auto numerator = static_cast<Uint128>(rest < 0 ? rest + period : rest);
  const Uint128 high = numerator << 64;
  const Uint128 low = high % divisor << 64;
  return {static_cast<uint64_t>(high / divisor), static_cast<uint64_t>(low / divisor)};
}

void append(CosSin value, std::vector<double>& row) {
  row.push_back(value.sin);
  row.push_back(value.cos);
}

}  // namespace

std::vector<double> clock_rows(std::span<const int64_t> periods,
                               std::span<const int64_t> positions) {
  for (const int64_t period : periods) {
    if (period < 1) {
      fail("clock: period: expected at least 1, but got " + std::to_string(period));
    }
  }
  std::vector<double> rows;
  rows.reserve(positions.size() * periods.size() * 2);
  for (const int64_t position : positions) {
    for (const int64_t period : periods) append(cos_sin(part_of_turn(position, period)), rows);
  }
  return rows;
}

std::vector<double> alien_clock_rows(double ratio, int64_t hands,
                                     std::span<const int64_t> positions) {
  if (!(ratio >= 1 && std::isfinite(ratio))) {
    fail("alien clock: ratio: expected a finite number of at least 1, but got " +
         std::to_string(ratio));
  }
  if (hands < 1) {
    fail("alien clock: hands: expected at least 1, but got " + std::to_string(hands));
  }
  std::vector<Turns> frequencies;
  for (int64_t j = 0; j < hands; ++j) {
    frequencies.push_back(turns(pow(ratio, static_cast<double>(-j))));
  }
  std::vector<double> rows;
  rows.reserve(positions.size() * frequencies.size() * 2);
  for (const int64_t position : positions) {
    for (const Turns frequency : frequencies) append(cos_sin(frequency * position), rows);
  }
  return rows;
}

}  // namespace sextant
