// The rotation of keys by blocks of eight columns, for decoding.
//
//   half split      x0 .. x7  ...  y0 .. y7      a block of first columns, and its partner
//   neighbours      x0 y0 x1 y1 x2 y2 x3 y3      four pairs in one block
#pragma once

#include <cstdint>
#include <span>

#include "sextant/position/spectrum.h"

namespace sextant::cpu {

// A block of columns. kSecond columns are rotated together with the kFirst ones of their pairs,
// which come before.
struct RotatedColumns {
  static constexpr int64_t kCount = 8;  // columns
  static constexpr int64_t kMost = 64;  // blocks of a head
  enum Kind : uint8_t { kPlain, kFirst, kSecond, kNeighbours };

  Kind kind = kPlain;
  int64_t partner = 0;  // kFirst: the first of the second columns
  int64_t pair = 0;     // kFirst, kNeighbours: that of the first column
};

// Fills the blocks of `depth` columns. False if there are too many columns, or if the pairs do not
// fill whole blocks.
bool rotated_columns(const Rotation& rotation, int64_t depth, std::span<RotatedColumns> blocks);

}  // namespace sextant::cpu
