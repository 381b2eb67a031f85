// The shapes into which the score matrix is cut.
//
//            keys, in units of kUnit counted from the first key of the frame
//          +-----------+-----------+----
//   strip  |           |           |        kStrip queries x one unit are scored at once; the
//          +-----------+-----------+----    scores of a strip never leave the L1 cache
//   strip  |           |           |
//
// Units are counted from the start of the frame and not from the first key that a query sees, so
// that a query's sums have one order whether it comes alone, in a chunk or with the whole sequence.
#pragma once

#include <cstdint>

#include "sextant/attention/plan.h"

namespace sextant::cpu {

inline constexpr int64_t kLanes = 16;  // rows of a panel, side by side, whatever the vector length
inline constexpr int64_t kStrip = 8;   // queries
inline constexpr int64_t kUnit = kFrameUnit;  // keys
// Stride in floats of the rows of scores, weights and score gradients: not a power of two, for the
// cache, and with a margin that lets rows be read a strip and a panel further on or back
// (collect_table()).
inline constexpr int64_t kLineMargin = 2 * kLanes;
inline constexpr int64_t kScoreStride = kUnit + kLineMargin;
inline constexpr int64_t kAmxRows = 4 * kStrip;  // queries that AMX multiplies at once
// Stride of a query's weights in pairs; not a power of two either.
inline constexpr int64_t kPairStride = kUnit / 2 + kLanes;
// Columns of a row that vectors process before AMX gets its next tile.
inline constexpr int64_t kBetween = 64;

constexpr int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }
constexpr int64_t round_down(int64_t n, int64_t to) { return n / to * to; }

}  // namespace sextant::cpu
