// Key biases relative to the bias of the last key r that a query sees: c_j - c_r. A term that is
// equal for all keys of a query cancels in softmax. float32 represents c_j - c_r well even if c has
// grown to thousands, because the differences are smallest for the nearest keys, whatever else is
// in the call.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "sextant/attention/host_score.h"

namespace sextant {

// r of each query, [batch][queries]: the last key row that the query sees in any sweep; -1: it sees
// none. Empty if there is no key_bias.
template <class T>
std::vector<int64_t> last_keys(const HostScore<T>& s) {
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

// c_r, or 0 if there is no such key or its bias is not finite. `last` is the result of last_keys().
template <class T>
double key_bias_origin(const HostScore<T>& s, const std::vector<int64_t>& last, int64_t b,
                       int64_t h, int64_t i) {
  if (!s.key_bias) return 0;
  const int64_t row = last[static_cast<size_t>(b * s.q.rows + i)];
  const double origin = row < 0 ? 0 : s.key_bias(b, h, row, 0);
  return std::isfinite(origin) ? origin : 0;
}

}  // namespace sextant
