// Splits work into pieces. Their size does not depend on the number of threads, so sums have a
// fixed order.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sextant/base/executor.h"

namespace sextant::dense {

inline constexpr int64_t kNumbers = 16384;  // elements per piece, for elementwise work

inline int64_t pieces(int64_t whole, int64_t piece) { return (whole + piece - 1) / piece; }

// Calls work(first, last) for each piece of [0, count).
void in_pieces(int64_t count, int64_t piece, const Executor& executor, const auto& work) {
  executor.run(pieces(count, piece),
               [&](int64_t n, int) { work(n * piece, std::min(count, (n + 1) * piece)); });
}

}  // namespace sextant::dense
