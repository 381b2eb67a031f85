#include "sextant/position/binary.h"

#include <string>

#include "sextant/base/error.h"

namespace sextant {

std::vector<double> binary_rows(int64_t bits, BinaryLevels levels,
                                std::span<const int64_t> positions) {
  if (bits < 1 || bits > 63) {
    fail("binary: bits: expected 1 to 63, but got " + std::to_string(bits));
  }
  const double low = levels == BinaryLevels::kZeroOne ? 0 : -1;
  std::vector<double> rows;
  rows.reserve(positions.size() * static_cast<size_t>(bits));
  for (const int64_t position : positions) {
    for (int64_t j = 0; j < bits; ++j) rows.push_back((position >> j & 1) != 0 ? 1 : low);
  }
  return rows;
}

}  // namespace sextant
