// Which table row each diagonal of the score matrix meets, made ready for sixteen keys at a time.
//
// A clipped table maps most diagonals like this, and a bucketed one has many such steps:
//
//   row     0 0 0 0 0 0 1 2 3 4 5 6 6 6 6 6
//           constant    rising      constant
//
// so sixteen neighbours mostly want one row, or sixteen rows in a line; only the rest are gathered.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sextant/attention/cpu/sizes.h"

namespace sextant::cpu {

enum class Neighbours : uint8_t { kMixed, kConstant, kRising };

class RowMap {
 public:
  // Tiles reach past the diagonals that are seen; there they meet the nearest row, unused.
  static constexpr int64_t kMargin = 1024;

  RowMap() = default;
  // row_at empty: row = diagonal. backwards: counted from the last diagonal.
  RowMap(std::span<const int32_t> row_at, int64_t diagonals, bool backwards);

  // Rows of the diagonals from here on; here >= -kMargin.
  const int32_t* rows(int64_t diagonal) const { return row_.data() + kMargin + diagonal; }
  // How the rows of sixteen diagonals lie, for each first one.
  const Neighbours* neighbours(int64_t diagonal) const {
    return neighbours_.data() + kMargin + diagonal;
  }

  struct Range {
    int64_t first = 0, last = 0;  // [first, last)
  };
  // Holds the rows of `count` diagonals, rounded out to multiples of kLanes.
  Range range(int64_t diagonal, int64_t count) const;

 private:
  std::vector<int32_t> row_;
  std::vector<Neighbours> neighbours_;
  std::vector<int32_t> low_, high_;  // of each kLanes diagonals
};

}  // namespace sextant::cpu
