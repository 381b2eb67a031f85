// Positions as binary numbers: column j is bit j of the position, least significant bit first. The
// code repeats after 2^bits positions, and neighbouring positions may be far apart in it: 7 and 8
// differ in four bits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sextant/base/export.h"

namespace sextant {

enum class BinaryLevels { kZeroOne, kMinusOneOne };

// Returns [positions, bits]. A negative position counts modulo 2^bits. Throws Error if bits is not
// 1 to 63.
SEXTANT_API std::vector<double> binary_rows(int64_t bits, BinaryLevels levels,
                                            std::span<const int64_t> positions);

}  // namespace sextant
