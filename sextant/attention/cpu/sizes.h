// The shapes into which the score matrix is cut.
//
//            keys, in units of kUnit counted from the first key of the frame
//          +-----------+-----------+----
//   strip  |           |           |        kStrip queries x one unit are scored at once; the
//          +-----------+-----------+----    scores of a strip never leave the L1 cache
//   strip  |           |           |
//
// Units are counted from the frame and not from what a query sees, so that a query's sums have one
// order whether it comes alone, in a chunk or with the whole text.
#pragma once

#include <cstdint>

namespace sextant::cpu {

inline constexpr int64_t kLanes = 16;  // of a panel: 16 rows side by side, whatever the vectors are
inline constexpr int64_t kStrip = 8;   // queries
inline constexpr int64_t kUnit = 256;  // keys
// Floats between a line of scores, or of what comes of them, and the next: not a power of two, for
// the cache; and so many beyond a unit that lines may be read a strip and a panel further on or
// back (collect_table()).
inline constexpr int64_t kLineMargin = 2 * kLanes;
inline constexpr int64_t kScoreStride = kUnit + kLineMargin;
inline constexpr int64_t kAmxRows = 4 * kStrip;  // queries that AMX multiplies at once
// Of a query's weights in pairs; not a power of two either.
inline constexpr int64_t kPairStride = kUnit / 2 + kLanes;
// Columns of a row that vectors do before AMX gets its next piece of work.
inline constexpr int64_t kBetween = 64;

constexpr int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }
constexpr int64_t round_down(int64_t n, int64_t to) { return n / to * to; }

}  // namespace sextant::cpu
