#include "sextant/attention/cpu/row_map.h"

#include <algorithm>

namespace sextant::cpu {

RowMap::RowMap(std::span<const int32_t> row_at, int64_t diagonals, bool backwards,
               int64_t rotate_rows, Workspace& memory) {
  const int64_t size = round_up(diagonals + 2 * kMargin, kLanes);
  const auto numbers = [&](int64_t count) {
    return reinterpret_cast<int32_t*>(memory.floats(count));
  };
  int32_t* const row = numbers(size);
  for (int64_t n = 0; n < size; ++n) {
    int64_t diagonal = std::clamp<int64_t>(n - kMargin, 0, diagonals - 1);
    if (backwards) diagonal = diagonals - 1 - diagonal;
    row[n] =
        row_at.empty() ? static_cast<int32_t>(diagonal) : row_at[static_cast<size_t>(diagonal)];
  }

  int64_t rises = 0;
  for (int64_t n = 1; n < size && rotate_rows > 0; ++n) {
    const int32_t step = row[n] - row[n - 1];
    rises += step > 0 ? 1 : step < 0 ? -1 : 0;
  }
  rows_reversed_ = rises < 0;
  if (rows_reversed_)
    for (int64_t n = 0; n < size; ++n) row[n] = static_cast<int32_t>(rotate_rows - 1) - row[n];

  int32_t *const stays_to = numbers(size), *const rises_to = numbers(size);
  stays_to[size - 1] = rises_to[size - 1] = static_cast<int32_t>(size);
  bool some_rise = false, some_fall = false;
  for (int64_t n = size - 2; n >= 0; --n) {
    const int32_t step = row[n + 1] - row[n];
    some_rise = some_rise || step > 0;
    some_fall = some_fall || step < 0;
    const auto next = static_cast<int32_t>(n + 1);
    stays_to[n] = step == 0 ? stays_to[n + 1] : next;
    rises_to[n] = step == 1 ? rises_to[n + 1] : next;
  }
  monotone_ = !(some_rise && some_fall);

  int32_t *const low = numbers(size / kLanes), *const high = numbers(size / kLanes);
  for (int64_t n = 0; n < size / kLanes; ++n) {
    const auto [least, greatest] = std::minmax_element(row + n * kLanes, row + (n + 1) * kLanes);
    low[n] = *least;
    high[n] = *greatest;
  }
  row_ = row, stays_to_ = stays_to, rises_to_ = rises_to, low_ = low, high_ = high;
}

KeyRange RowMap::look_for_rows_of(int64_t diagonal, int64_t count) const {
  int32_t low = *rows(diagonal), high = low;
  const auto include = [&](int64_t from, int64_t to) {
    for (int64_t n = from; n < to;) {
      const int64_t next = std::min<int64_t>(std::max(stays_to_[n], rises_to_[n]), to);
      low = std::min(low, row_[n]);
      high = std::max(high, row_[next - 1]);
      n = next;
    }
  };
  const int64_t from = diagonal + kMargin, to = from + count;
  const int64_t whole_from = round_up(from, kLanes), whole_to = round_down(to, kLanes);
  include(from, std::min(whole_from, to));
  for (int64_t n = whole_from; n < whole_to; n += kLanes) {
    low = std::min(low, low_[n / kLanes]);
    high = std::max(high, high_[n / kLanes]);
  }
  include(std::max(whole_from, whole_to), to);
  return {low, int64_t{high} + 1};
}

}  // namespace sextant::cpu
