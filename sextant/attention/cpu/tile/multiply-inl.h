// The one matrix product of the kernels, whose operands are described by strides:
//
//   c[i][j] (+)= sum over k of  a(i, k) * b(k, j)         i < rows, j < 16 * blocks, k < depth
//
//   a(i, k) = a.data[i * a.row_step + k * a.depth_step]            one float, broadcast to all
//   lanes b(k, j) = b.data[k * b.depth_step + (j / 16) * b.block_step + j % 16]
//
// Scores (queries in panels, keys in panels), weighted values (weights by rows, values by rows) and
// the products with a transposed left side (dv = p^T do) differ only in their strides. The sum over
// k runs in order with fused multiply-add and one accumulator for each c, so a result does not
// depend on the rows or columns that are computed with it. Further terms of c (epilogue.h) are
// added after the whole sum, while it is still in its register: the bits are those of a later pass.
// With pairs (pairs-inl.h) a(i, k) and b(k, j) hold two values each, and both products are added.
#if defined(SEXTANT_ATTENTION_CPU_TILE_MULTIPLY_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SEXTANT_ATTENTION_CPU_TILE_MULTIPLY_INL_H_
#undef SEXTANT_ATTENTION_CPU_TILE_MULTIPLY_INL_H_
#else
#define SEXTANT_ATTENTION_CPU_TILE_MULTIPLY_INL_H_
#endif

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <type_traits>
#include <utility>

#include "sextant/attention/cpu/tile/epilogue.h"
#include "sextant/attention/cpu/tile/lanes-inl.h"
#include "sextant/attention/cpu/tile/multiply_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::cpu {
namespace HWY_NAMESPACE {

// The rows of the next tile by the rows that are left: [n] for n rows, the last one for more.
using Heights = std::array<int8_t, 15>;
constexpr Heights powers_of_two(int most) {
  Heights heights = {};
  for (int n = 1; n <= 14; ++n) {
    int8_t& rows = heights[static_cast<size_t>(n)];
    for (rows = 1; 2 * rows <= std::min(n, most);) rows = static_cast<int8_t>(2 * rows);
  }
  return heights;
}
// 16 = 6 + 5 + 5 and 7 = 4 + 3; and 8 = 5 + 3 where 3 rows have two blocks, else 4 + 4.
inline constexpr Heights kSixesOfOne = {0, 1, 2, 3, 4, 5, 6, 4, 5, 6, 5, 6, 6, 5, 6};
inline constexpr Heights kSixesOfFour = {0, 1, 2, 3, 4, 5, 6, 4, 4, 5, 5, 6, 6, 5, 6};

// A column of tiles, `blocks` wide. Tiles of more than `wide_rows` rows have one block only, and
// lie side by side. Here AVX2 does 8 rows of a column of two:
//
//      +---------+---------+
//      |  5 x 1  |  5 x 1  |
//      +---------+---------+
//      |       3 x 2       |
//      +-------------------+
struct TileColumn {
  int blocks;
  Heights heights;
  int wide_rows = kStrip;
  int64_t least_rows = 1, most_rows = std::numeric_limits<int64_t>::max();  // of its products

  // The rows of the next tile; 0 if none are left.
  constexpr int64_t next_rows(int64_t rows_left) const {
    if (least_rows == most_rows) return rows_left;
    return heights[static_cast<size_t>(std::min<int64_t>(rows_left, 14))];
  }
  // The blocks of a tile of so many rows; 0 if the column has none.
  constexpr int blocks_of(int rows) const {
    for (int64_t n = least_rows; n <= std::min<int64_t>(most_rows, 14); ++n)
      if (next_rows(n) == rows) return rows > wide_rows ? 1 : blocks;
    return 0;
  }
  // The number of such columns in what is left of a product. Columns of three leave two blocks or
  // four: 16 = 4 * 3 + 4 and 8 = 2 * 3 + 2.
  constexpr int64_t times(int64_t rows, int64_t blocks_left) const {
    if (rows < least_rows || rows > most_rows) return 0;
    const int64_t most = blocks_left / blocks;
    return blocks == 3 && blocks_left % 3 == 1 ? std::max<int64_t>(most - 1, 0) : most;
  }
};

// The columns of each target, in the order in which they take the blocks of a product. Accumulators
// and the vectors that feed them must fit 32 registers (AVX-512, NEON) or 16, and be enough to
// outlast the latency of a multiply-add: for that, thin products need more blocks. AVX2 has ten or
// twelve accumulators: eight, 4 rows x 1 block, outlast the latency on paper only, and reach 61 to
// 92 % of the peak. With AVX-512 a strip takes one tile of 8 x 3 where columns of four would take
// two, each of which reads all of b.
constexpr auto tile_columns_of_target() {
  if constexpr (kVectors == 1)
    return std::array{
        TileColumn{.blocks = kThinBlocks, .heights = powers_of_two(2), .most_rows = kThinRows},
        TileColumn{.blocks = 3, .heights = powers_of_two(8), .least_rows = 8, .most_rows = 8},
        TileColumn{.blocks = 4, .heights = kSixesOfFour},
        TileColumn{.blocks = 2, .heights = powers_of_two(8)},
        TileColumn{.blocks = 1, .heights = powers_of_two(8)}};
  else if constexpr (kVectors == 2)
    return std::array{
        TileColumn{.blocks = kThinBlocks, .heights = powers_of_two(1), .most_rows = kThinRows},
        TileColumn{.blocks = 2, .heights = kSixesOfOne, .wide_rows = 3},
        TileColumn{.blocks = 1, .heights = kSixesOfOne}};
  else
    return std::array{
        TileColumn{.blocks = kThinBlocks, .heights = powers_of_two(1), .most_rows = kThinRows},
        TileColumn{.blocks = 1, .heights = powers_of_two(HWY_ARCH_ARM ? 4 : 2)}};
}
inline constexpr auto kTileColumns = tile_columns_of_target();
static_assert(kStrip == 8, "columns of three blocks have 8 rows");

template <class A>
requires requires(A a) { a.row_step; }
HWY_INLINE A from_row(A a, int64_t i) {
  a.data += i * a.row_step;
  return a;
}

template <class B>
requires requires(B b) { b.block_step; }
HWY_INLINE B from_block(B b, int64_t j) {
  b.data += j * b.block_step;
  return b;
}

HWY_INLINE EpilogueTerms from_row(EpilogueTerms x, int64_t i) {
  x.row += i;
  return x;
}
HWY_INLINE EpilogueTerms from_block(EpilogueTerms x, int64_t j) {
  x.block += j;
  return x;
}
HWY_INLINE Nothing from_row(Nothing, int64_t) { return {}; }
HWY_INLINE Nothing from_block(Nothing, int64_t) { return {}; }
// Rows of tiles after the first read lines that the first has prefetched.
template <class Prefetch>
HWY_INLINE Prefetch for_row(const Prefetch& policy, int64_t i) {
  if constexpr (kPrefetchesByRow<Prefetch>)
    return i == 0 ? policy : policy.nothing();
  else
    return policy;
}

// The tile of a column of tiles that has `rows` rows, which are kLeast to kMost.
template <Sum kSum, size_t kColumn, int kLeast, int kMost, class A, class B, class Prefetch,
          class Epilogue, class Total>
HWY_INLINE void multiply_one_of(int64_t rows, int64_t depth, A a, B b, float* c, int64_t c_row,
                                const Prefetch& policy, const Epilogue& epilogue, Total totals) {
  constexpr int kBlocks = kTileColumns[kColumn].blocks_of(kMost);
  if constexpr (kBlocks > 0)
    if (rows == kMost)
      return multiply_tile<kSum, kMost, kBlocks>(depth, a, b, c, c_row, policy, epilogue, totals);
  if constexpr (kMost > kLeast)
    multiply_one_of<kSum, kColumn, kLeast, kMost - 1>(rows, depth, a, b, c, c_row, policy, epilogue,
                                                      totals);
}

// The first tile of a product, with totals. It is a function of its own, because g++ makes worse
// code of the other tiles beside it, and because all tiles would else be compiled twice.
template <Sum kSum, size_t kColumn, class A, class B, class Prefetch>
HWY_NOINLINE void multiply_first(int64_t rows, int64_t depth, const A& a, const B& b, float* c,
                                 int64_t c_row, const Prefetch& policy, Totals totals) {
  multiply_one_of<kSum, kColumn, 1, kStrip>(kTileColumns[kColumn].next_rows(rows), depth, a, b, c,
                                            c_row, policy, Nothing(), totals);
}

// All rows of `times` columns of tiles: first the tall tiles of one block, then those as wide as
// the column. but_first: the first tile is done. The operands are references, for g++ copies as a
// whole what was just written in halves, which waits for the store.
template <Sum kSum, size_t kColumn, class A, class B, class Prefetch, class Epilogue>
HWY_NOINLINE void multiply_columns(int64_t rows, int64_t times, int64_t depth, const A& a,
                                   const B& b, float* c, int64_t c_row, Prefetch policy,
                                   Epilogue epilogue, bool but_first) {
  constexpr const TileColumn& kTiles = kTileColumns[kColumn];
  constexpr int kWide = kTiles.wide_rows;
  for (int64_t n = 0; n < times; ++n, c += kTiles.blocks * kLanes) {
    int64_t i = 0, next;
    if constexpr (kWide < kStrip)
      for (; (next = kTiles.next_rows(rows - i)) > kWide; i += next)
        for (int j = 0; j < kTiles.blocks; ++j)
          if (HWY_LIKELY(!std::exchange(but_first, false)))
            multiply_one_of<kSum, kColumn, kWide + 1, kStrip>(
                next, depth, from_row(a, i), from_block(b, n * kTiles.blocks + j),
                c + i * c_row + j * kLanes, c_row, for_row(policy, i),
                from_block(from_row(epilogue, i), n * kTiles.blocks + j), NoTotals());
    for (; i < rows; i += next) {
      next = kTiles.next_rows(rows - i);
      if (HWY_LIKELY(!std::exchange(but_first, false)))
        multiply_one_of<kSum, kColumn, 1, kWide>(
            next, depth, from_row(a, i), from_block(b, n * kTiles.blocks), c + i * c_row, c_row,
            for_row(policy, i), from_block(from_row(epilogue, i), n * kTiles.blocks), NoTotals());
    }
  }
}

// The columns of tiles of a product, the first tile with totals (Totals, or NoTotals).
template <Sum kSum, class A, class B, class Prefetch, class Epilogue, class Total,
          size_t... kColumn>
HWY_INLINE void multiply_all(int64_t rows, int64_t blocks, int64_t depth, A a, B b, float* c,
                             int64_t c_row, Prefetch policy, Epilogue epilogue, Total totals,
                             std::index_sequence<kColumn...>) {
  int64_t j = 0;
  const auto multiply_column = [&](auto column) HWY_ATTR {
    constexpr int kBlocks = kTileColumns[column()].blocks;
    // A strip of decoding reads b from memory: two tiles would read it twice.
    const bool reads_twice = kPrefetchesByRow<Prefetch> && kBlocks == 4 && rows == kStrip;
    const int64_t times = reads_twice ? 0 : kTileColumns[column()].times(rows, blocks - j);
    if (times == 0) return;
    bool but_first = false;
    if constexpr (Total::kTileVectors > 0) {
      static_assert(std::is_same_v<Epilogue, Nothing>);
      but_first = j == 0;
      if (but_first) multiply_first<kSum, column()>(rows, depth, a, b, c, c_row, policy, totals);
    }
    multiply_columns<kSum, column()>(rows, times, depth, a, from_block(b, j), c + j * kLanes, c_row,
                                     policy, from_block(epilogue, j), but_first);
    j += times * kBlocks;
  };
  (multiply_column(std::integral_constant<size_t, kColumn>()), ...);
}

// epilogue: EpilogueTerms, or Nothing.
template <Sum kSum, class A, class B, class Prefetch = Nothing, class Epilogue = Nothing>
HWY_INLINE void multiply(int64_t rows, int64_t blocks, int64_t depth, A a, B b, float* c,
                         int64_t c_row, Prefetch policy = {}, Epilogue epilogue = {}) {
  multiply_all<kSum>(rows, blocks, depth, a, b, c, c_row, policy, epilogue, NoTotals(),
                     std::make_index_sequence<kTileColumns.size()>());
}

// c (+)= a b for a panel of up to kStrip rows, [depth][kStrip], and the totals of its rows:
// totals[kStrip]. Products of pairs need at least one block.
template <Sum kSum, class B, class Prefetch = Nothing>
HWY_INLINE void multiply_and_total(int64_t rows, int64_t blocks, int64_t depth, const float* panel,
                                   B b, float* c, int64_t c_row, float* totals,
                                   Prefetch policy = {}) {
  multiply_all<kSum>(rows, blocks, depth, LeftColumns{panel, kStrip}, b, c, c_row, policy,
                     Nothing(), Totals{totals}, std::make_index_sequence<kTileColumns.size()>());
  if (blocks > 0) return;
  for (int64_t i = 0; i < rows; ++i) {
    if (kSum == Sum::kNew) totals[i] = 0;
    for (int64_t k = 0; k < depth; ++k) totals[i] += panel[k * kStrip + i];
  }
}

// c += a * b as multiply(), but b is not read where a is 0: b may hold infinities or NaN of hidden
// keys.
template <class A>
HWY_NOINLINE void multiply_exactly(int64_t rows, int64_t blocks, int64_t depth, A a, RightRows b,
                                   float* c, int64_t c_row) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t k = 0; k < depth; ++k)
      if (a.data[i * a.row_step + k * a.depth_step] != 0)
        multiply<Sum::kAdded>(1, blocks, 1, LeftRows{a.data + i * a.row_step + k * a.depth_step, 0},
                              RightRows{b.data + k * b.depth_step, 0}, c + i * c_row, c_row);
}

}  // namespace HWY_NAMESPACE
}  // namespace sextant::cpu
HWY_AFTER_NAMESPACE();

#endif
