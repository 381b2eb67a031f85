// Data movement between rows of a tile and rows of a table. Row i and lane j of a tile are on
// diagonal first - i + j, which meets table row map(first - i + j):
//
//   gather_by_row:       tile(i, j) = at(i, map(...))      products with table rows, by key
//   scatter_add_by_row:  at(i, map(...)) += tile(i, j)     the transpose: weights, by table row
//
// Sixteen lanes are moved at a time, according to whether their rows are equal or rise (row_map.h).
#if defined(SEXTANT_ATTENTION_CPU_TILE_SCATTER_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SEXTANT_ATTENTION_CPU_TILE_SCATTER_INL_H_
#undef SEXTANT_ATTENTION_CPU_TILE_SCATTER_INL_H_
#else
#define SEXTANT_ATTENTION_CPU_TILE_SCATTER_INL_H_
#endif

#include <algorithm>

#include "sextant/attention/cpu/row_map.h"
#include "sextant/attention/cpu/tile/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::cpu {
namespace HWY_NAMESPACE {

// at[row - first_row] for sixteen rows.
HWY_INLINE Lanes gather(const float* at, const int32_t* rows, int64_t first_row) {
  const I32 d;
  Lanes x;
  for (int p = 0; p < kVectors; ++p) {
    const auto index =
        hn::Sub(hn::LoadU(d, rows + p * kVectorLanes), hn::Set(d, static_cast<int32_t>(first_row)));
    x.part[p] = hn::GatherIndex(F32(), at, index);
  }
  return x;
}

// The values of sixteen lanes whose first is on `diagonal`.
HWY_INLINE Lanes lanes_at(const RowMap& map, int64_t diagonal, const float* at, int64_t first_row) {
  const int32_t* const rows = map.rows(diagonal);
  const int64_t row = *rows - first_row;
  return map.stays(diagonal, kLanes)   ? set(at[row])
         : map.rises(diagonal, kLanes) ? load(at + row)
                                       : gather(at, rows, first_row);
}

// Gathers a row of `count` lanes (a multiple of kLanes) whose lane 0 is on `diagonal`.
HWY_INLINE void spread_row(const RowMap& map, int64_t diagonal, int64_t count, const float* at,
                           int64_t first_row, float* tile) {
  for (int64_t j = 0; j < count; j += kLanes)
    store(lanes_at(map, diagonal + j, at, first_row), tile + j);
}

// The same, added to what the tile holds; table rows are counted from 0.
HWY_INLINE void add_spread_row(const RowMap& map, int64_t diagonal, int64_t count, const float* at,
                               float* tile) {
  for (int64_t j = 0; j < count; j += kLanes)
    store(add(load(tile + j), lanes_at(map, diagonal + j, at, 0)), tile + j);
}

// Adds sixteen lanes piece by piece. It reads and writes back up to kLanes floats on either side of
// its target.
HWY_INLINE void collect_pieces(const RowMap& map, int64_t diagonal, const Lanes& x,
                               int64_t first_row, float* at) {
  if (map.same(diagonal) == 1 && map.rising(diagonal) == 1) {  // rows without order
    HWY_ALIGN float numbers[kLanes];
    store(x, numbers);
    const int32_t* const rows = map.rows(diagonal);
    float* const from_first = at - first_row;
    for (int64_t lane = 0; lane < kLanes; ++lane) from_first[rows[lane]] += numbers[lane];
    return;
  }
  for (int64_t lane = 0, next; lane < kLanes; lane = next) {
    const int64_t same = map.same(diagonal + lane), rising = map.rising(diagonal + lane);
    next = std::min(kLanes, lane + std::max(same, rising));
    const Lanes piece = only(x, lane, next);
    float* to = at + (*map.rows(diagonal + lane) - first_row);
    if (same >= rising)
      *to += sum_of(piece);
    else
      store(add(load(to - lane), piece), to - lane);
  }
}

HWY_INLINE void collect_row(const RowMap& map, int64_t diagonal, int64_t count, const float* tile,
                            int64_t first_row, float* at) {
  const int32_t* rows = map.rows(diagonal);
  if (map.rises(diagonal, count)) {
    float* to = at + (*rows - first_row);
    for (int64_t j = 0; j < count; j += kLanes) store(add(load(to + j), load(tile + j)), to + j);
    return;
  }
  for (int64_t j = 0; j < count; j += kLanes) {
    const int64_t row = rows[j] - first_row;
    Lanes x = load(tile + j);
    if (const int64_t same = std::min(map.same(diagonal + j), count - j); same >= kLanes) {
      // Keys beyond the clip distance: blocks of one row are added before their lanes are.
      for (const int64_t last = j + round_down(same, kLanes) - kLanes; j < last; j += kLanes)
        x = add(x, load(tile + j + kLanes));
      at[row] += sum_of(x);
    } else if (map.rises(diagonal + j, kLanes)) {
      store(add(load(at + row), x), at + row);
    } else {
      collect_pieces(map, diagonal + j, x, first_row, at);
    }
  }
}

inline HWY_NOINLINE void gather_by_row(const RowMap& map, int64_t diagonal, int64_t rows,
                                       int64_t count, const float* at, int64_t at_row,
                                       int64_t first_row, float* tile, int64_t tile_row) {
  for (int64_t i = 0; i < rows; ++i)
    spread_row(map, diagonal - i, count, at + i * at_row, first_row, tile + i * tile_row);
}

inline HWY_NOINLINE void scatter_add_by_row(const RowMap& map, int64_t diagonal, int64_t rows,
                                            int64_t count, const float* tile, int64_t tile_row,
                                            int64_t first_row, float* at, int64_t at_row) {
  for (int64_t i = 0; i < rows; ++i)
    collect_row(map, diagonal - i, count, tile + i * tile_row, first_row, at + i * at_row);
}

}  // namespace HWY_NAMESPACE
}  // namespace sextant::cpu
HWY_AFTER_NAMESPACE();

#endif
