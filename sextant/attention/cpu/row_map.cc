#include "sextant/attention/cpu/row_map.h"

#include <algorithm>

namespace sextant::cpu {

RowMap::RowMap(std::span<const int32_t> row_at, int64_t diagonals, bool backwards,
               int64_t rotate_rows) {
  const int64_t size = round_up(diagonals + 2 * kMargin, kLanes);
  row_.resize(static_cast<size_t>(size));
  for (int64_t n = 0; n < size; ++n) {
    int64_t diagonal = std::clamp<int64_t>(n - kMargin, 0, diagonals - 1);
    if (backwards) diagonal = diagonals - 1 - diagonal;
    row_[static_cast<size_t>(n)] =
        row_at.empty() ? static_cast<int32_t>(diagonal) : row_at[static_cast<size_t>(diagonal)];
  }

  int64_t rises = 0;
  for (int64_t n = 1; n < size && rotate_rows > 0; ++n) {
    const int32_t step = row_[static_cast<size_t>(n)] - row_[static_cast<size_t>(n - 1)];
    rises += step > 0 ? 1 : step < 0 ? -1 : 0;
  }
  rows_reversed_ = rises < 0;
  if (rows_reversed_)
    for (int32_t& row : row_) row = static_cast<int32_t>(rotate_rows - 1) - row;

  stays_to_.resize(row_.size());
  rises_to_.resize(row_.size());
  stays_to_.back() = rises_to_.back() = static_cast<int32_t>(size);
  bool some_rise = false, some_fall = false;
  for (int64_t n = size - 2; n >= 0; --n) {
    const auto at = static_cast<size_t>(n);
    const int32_t step = row_[at + 1] - row_[at];
    some_rise = some_rise || step > 0;
    some_fall = some_fall || step < 0;
    const auto next = static_cast<int32_t>(n + 1);
    stays_to_[at] = step == 0 ? stays_to_[at + 1] : next;
    rises_to_[at] = step == 1 ? rises_to_[at + 1] : next;
  }
  monotone_ = !(some_rise && some_fall);

  for (auto at = row_.begin(); at != row_.end(); at += kLanes) {
    const auto [low, high] = std::minmax_element(at, at + kLanes);
    low_.push_back(*low);
    high_.push_back(*high);
  }
}

KeyRange RowMap::look_for_rows_of(int64_t diagonal, int64_t count) const {
  int32_t low = *rows(diagonal), high = low;
  const auto include = [&](int64_t from, int64_t to) {
    for (int64_t n = from; n < to;) {
      const auto at = static_cast<size_t>(n);
      const int64_t next = std::min<int64_t>(std::max(stays_to_[at], rises_to_[at]), to);
      low = std::min(low, row_[at]);
      high = std::max(high, row_[static_cast<size_t>(next - 1)]);
      n = next;
    }
  };
  const int64_t from = diagonal + kMargin, to = from + count;
  const int64_t whole_from = round_up(from, kLanes), whole_to = round_down(to, kLanes);
  include(from, std::min(whole_from, to));
  for (int64_t n = whole_from; n < whole_to; n += kLanes) {
    low = std::min(low, low_[static_cast<size_t>(n / kLanes)]);
    high = std::max(high, high_[static_cast<size_t>(n / kLanes)]);
  }
  include(std::max(whole_from, whole_to), to);
  return {low, int64_t{high} + 1};
}

}  // namespace sextant::cpu
