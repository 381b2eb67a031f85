// The table row that each diagonal of the score matrix meets, prepared for sixteen keys at a time.
//
// A clipped table maps most diagonals like this, and a bucketed one has many such steps:
//
//   row     0 0 0 0 0 0 1 2 3 4 5 6 6 6 6 6
//           constant    rising      constant
//
// so sixteen neighbours mostly meet one row, or sixteen consecutive rows; the others are split into
// such pieces.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "sextant/attention/cpu/sizes.h"
#include "sextant/base/workspace.h"
#include "sextant/position/frame.h"

namespace sextant::cpu {

// Rounds out to multiples of kLanes.
constexpr KeyRange rounded_out(KeyRange rows) {
  return {round_down(rows.first, kLanes), round_up(rows.last, kLanes)};
}

class RowMap {
 public:
  // Tiles reach past the diagonals that are seen; there they meet the nearest row, whose product is
  // not used.
  static constexpr int64_t kMargin = 1024;

  RowMap() = default;
  // row_at empty: row = diagonal. backwards: diagonals are counted from the last. rotate_rows: the
  // number of rows of a table that may be reversed, or 0. It is if its rows would fall from one
  // diagonal to the next, for tiles are faster where rows rise.
  // The map is kept in `memory`.
  RowMap(std::span<const int32_t> row_at, int64_t diagonals, bool backwards, int64_t rotate_rows,
         Workspace& memory);

  bool rows_reversed() const { return rows_reversed_; }

  // The same object serves rows of keys for diagonals, whose table rows are their positions on an
  // axis (PackedAxis).

  // The rows of the diagonals from `diagonal`, at least -kMargin, on.
  const int32_t* rows(int64_t diagonal) const { return row_ + kMargin + diagonal; }

  // The number of diagonals from `diagonal` on that meet the same row, or rows that rise by one
  // each.
  int64_t same(int64_t diagonal) const {
    return stays_to_[kMargin + diagonal] - (kMargin + diagonal);
  }
  int64_t rising(int64_t diagonal) const {
    return rises_to_[kMargin + diagonal] - (kMargin + diagonal);
  }
  // Whether `count` diagonals, at least one, do so.
  bool stays(int64_t diagonal, int64_t count) const { return same(diagonal) >= count; }
  bool rises(int64_t diagonal, int64_t count) const { return rising(diagonal) >= count; }
  // The range from the least to the greatest row of `count` diagonals.
  KeyRange rows_of(int64_t diagonal, int64_t count) const {
    if (!monotone_) return look_for_rows_of(diagonal, count);
    const auto [low, high] = std::minmax(*rows(diagonal), *rows(diagonal + count - 1));
    return {low, int64_t{high} + 1};
  }

 private:
  KeyRange look_for_rows_of(int64_t diagonal, int64_t count) const;

  bool rows_reversed_ = false;
  bool monotone_ = true;  // rows never fall, or never rise
  const int32_t* row_ = nullptr;
  // For each diagonal, counted from the margin's first, the next one with another row, and the next
  // one where rows stop rising.
  const int32_t *stays_to_ = nullptr, *rises_to_ = nullptr;
  const int32_t *low_ = nullptr,
                *high_ = nullptr;  // the least and greatest row of each kLanes diagonals
};

}  // namespace sextant::cpu
