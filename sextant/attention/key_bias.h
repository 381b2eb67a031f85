// Biases of keys relative to one key of each query, its last: c_j - c_r. Softmax does not see the
// difference, and float32 holds c_j - c_r well where c itself has grown to thousands: the nearest
// keys have the smallest numbers, whatever else is in the call.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "sextant/attention/score.h"

namespace sextant {

// r of each query, [batch][queries]: the last key row that any sweep shows it; -1: none. Empty if
// there is no key_bias.
template <class T>
std::vector<int64_t> last_keys(const Score<T>& s) {
  if (!s.key_bias) return {};
  std::vector<int64_t> last(static_cast<size_t>(s.q.batch * s.q.rows), -1);
  for (const Frame& frame : s.frames) {
    const bool every = frame.batch == kEveryBatch;
    for (int64_t b = every ? 0 : frame.batch; b < (every ? s.q.batch : frame.batch + 1); ++b)
      for (int64_t i = frame.query_row; i < frame.query_row + frame.queries; ++i)
        for (const Sweep& sweep : s.sweeps) {
          const KeyRange range = visible_keys(sweep, frame, b, i);
          int64_t& row = last[static_cast<size_t>(b * s.q.rows + i)];
          if (range.first < range.last) row = std::max(row, range.last - 1);
        }
  }
  return last;
}

// c_r; 0 where there is no such key or its bias is not finite. last: as last_keys() gives them.
template <class T>
double key_bias_origin(const Score<T>& s, const std::vector<int64_t>& last, int64_t b, int64_t h,
                       int64_t i) {
  if (!s.key_bias) return 0;
  const int64_t row = last[static_cast<size_t>(b * s.q.rows + i)];
  const double origin = row < 0 ? 0 : s.key_bias(b, h, row, 0);
  return std::isfinite(origin) ? origin : 0;
}

}  // namespace sextant
