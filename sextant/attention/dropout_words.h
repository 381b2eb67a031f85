// The words of Philox4x32-10 that decide which weights dropout keeps. The counter of a call is
// (keys, query row, head, batch entry), its key the seed. One call gives the words of four keys; of
// 32 keys from a multiple of 32 on, the words
//
//   key        0  1  2  3 ... 14 15     16 17 18 19 ... 30 31
//   call       0  0  1  1      7  7      0  0  1  1      7  7      plus 8 (key row / 32)
//   word       0  1  0  1      0  1      2  3  2  3      2  3
//
// are those that vectors of any length hold in order of the keys. Rows, heads and entries count
// modulo 2^32; key rows modulo 2^34.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "sextant/attention/dropout.h"

namespace sextant {

inline constexpr int64_t kDropoutKeys = 32;  // consecutive keys that share eight calls

// The least word, as a signed number, that keeps a weight.
inline int32_t least_kept(const Dropout& dropout) {
  const auto dropped = static_cast<int64_t>(std::floor(dropout.probability * 0x1p32));
  return static_cast<int32_t>(dropped + std::numeric_limits<int32_t>::min());
}

}  // namespace sextant
