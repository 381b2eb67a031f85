// The one matrix product of the kernels, whose operands are described by steps:
//
//   c[i][j] (+)= sum over k of  a(i, k) * b(k, j)         i < rows, j < 16 * blocks, k < depth
//
//   a(i, k) = a.data[i * a.row_step + k * a.depth_step]            one float, spread to all lanes
//   b(k, j) = b.data[k * b.depth_step + (j / 16) * b.block_step + j % 16]
//
// Scores (queries in panels, keys in panels), mixtures (weights by rows, values by rows) and the
// products with a transposed left side (dv = p^T do) differ in their steps only. The sum over k runs
// in order with fused multiply-add and one accumulator for each c, so a result does not depend on
// which other rows or columns were computed with it. What else is to be added to a c (addends.h) comes
// after the whole sum, while it is still in its register: the bits are those of a pass that adds it later.
//
// The tile of accumulators stays in registers: 8 rows x 2 blocks on AVX-512 reach 98 % of the
// multiply-add peak of a Zen 4 core from L2 (g++ 12 and clang 14, -O3), and AVX2's tiles 93 to 96 %
// of a Zen 3 core's.
#if defined(SEXTANT_ATTENTION_CPU_MULTIPLY_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SEXTANT_ATTENTION_CPU_MULTIPLY_INL_H_
#undef SEXTANT_ATTENTION_CPU_MULTIPLY_INL_H_
#else
#define SEXTANT_ATTENTION_CPU_MULTIPLY_INL_H_
#endif

#include <array>
#include <cstddef>

#include "hwy/cache_control.h"
#include "sextant/attention/cpu/addends.h"
#include "sextant/attention/cpu/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::cpu {
namespace HWY_NAMESPACE {

struct Left {
  const float* data;
  int64_t row_step, depth_step;
};

struct Right {
  const float* data;
  int64_t depth_step, block_step;
};

// Accumulators and what they are fed from must fit 32 registers (AVX-512, NEON) or 16. Of AVX2's, ten
// or twelve are accumulators (next_rows() below): eight, 4 rows x 1 block, just outlast the latency on
// paper, and reach 61 to 92 % of the peak by what else the machine does.
inline constexpr int kTileRows = kParts == 1 ? 8 : kParts == 2 ? 6 : HWY_ARCH_ARM ? 4 : 2;
inline constexpr int kTileBlocks = kParts <= 2 ? 2 : 1;
// One or two rows need more blocks, for their accumulators alone do not outlast the latency.
inline constexpr int kThinRows = kParts == 1 ? 2 : 1;
inline constexpr int kThinBlocks = kParts == 1 ? 8 : kParts == 2 ? 4 : 2;

enum class Sum { kNew, kAdded };

// Totals of the rows of a: (+)= the sum over k of a(i, k), added up in the same order as c is, so that
// it is what c would be if b were 1, bit by bit. These sums ride along: on Zen additions and
// multiply-adds have pipes of their own.
enum class Totals {
  kNone,
  kOfRows,   // totals[i] of a tile's row i: scalars, which leave the wide pipes alone
  kOfPanel,  // a(i, k) is a.data[k * a.depth_step + i]: totals[i], i < kPart, in one vector
};

// What is done between the steps of the sum, once in kStepsBetween. A product that is bound by memory asks
// there for what it will read next.
struct Nothing {
  HWY_INLINE void operator()() {}
};
inline constexpr int64_t kStepsBetween = 8;

// The loop of unknown length is outside, for g++ unrolls the others, which keeps sums in registers; and it
// is said to be short, for g++ would rather keep its numbers in registers than those of the sums' loop.
template <int kRows, int kBlocks>
HWY_INLINE void add_to_tile(const Addends& plus, V (&sum)[kRows][kBlocks * kParts]) {
  int64_t n = 0;
  do {
    for (int j = 0; j < kBlocks; ++j) {
      const Addend& x = plus.of_blocks[j * plus.count + n];
      const float* from = x.data + plus.row * x.row_step;
      for (int i = 0; i < kRows; ++i)
        for (int p = 0; p < kParts; ++p)
          sum[i][j * kParts + p] =
              hn::Add(sum[i][j * kParts + p], hn::LoadU(F32(), from + i * x.row_step + p * kPart));
    }
  } while (HWY_UNLIKELY(++n < plus.count));
}
template <int kRows, int kBlocks>
HWY_INLINE void add_to_tile(Nothing, V (&)[kRows][kBlocks * kParts]) {}

template <Sum kSum, Totals kTotals, int kRows, int kBlocks, class Between, class Plus>
HWY_INLINE void multiply_tile(int64_t depth, Left a, Right b, float* c, int64_t c_row,
                              float* totals, Between& between, Plus plus) {
  const F32 d;
  constexpr int kVectors = kBlocks * kParts;
  constexpr bool kByRows = kTotals == Totals::kOfRows, kByPanel = kTotals == Totals::kOfPanel;
  // Registers hold either all of the left side's floats at once, or the right side's vectors.
  constexpr bool kHoldLeft = kParts == 2 && kVectors > kRows;
  V sum[kRows][kVectors];
  float total[kRows];
  V panel_total = kByPanel && kSum == Sum::kAdded ? hn::LoadU(d, totals) : hn::Zero(d);
  for (int i = 0; i < kRows; ++i) {
    total[i] = kByRows && kSum == Sum::kAdded ? totals[i] : 0;
    for (int j = 0; j < kVectors; ++j)
      sum[i][j] = kSum == Sum::kAdded ? hn::LoadU(d, c + i * c_row + j * kPart) : hn::Zero(d);
  }
  // A tile begins with what it adds to, which may lie far away: the next rows' is asked for meanwhile.
  if constexpr (kSum == Sum::kAdded)
    for (int i = 0; i < kRows; ++i)
      for (int j = 0; j < kBlocks; ++j) hwy::Prefetch(c + (kRows + i) * c_row + j * kLanes);
  const auto right_at = [&](int j) HWY_ATTR {
    return hn::LoadU(d, b.data + j / kParts * b.block_step + j % kParts * kPart);
  };
  // Counting and branching for each row of b takes slots of dispatch, which are what a core is short of
  // whose other thread is busy: a tenth of the time there. Clang unrolls by itself.
#if HWY_COMPILER_GCC_ACTUAL
#pragma GCC unroll 4
#endif
  for (int64_t k = 0; k < depth; ++k) {
    if (k % kStepsBetween == 0) between();
    if constexpr (kHoldLeft) {
      V left[kRows];
      for (int i = 0; i < kRows; ++i) left[i] = hn::Set(d, a.data[i * a.row_step]);
      for (int j = 0; j < kVectors; ++j) {
        const V right = right_at(j);
        for (int i = 0; i < kRows; ++i) sum[i][j] = hn::MulAdd(left[i], right, sum[i][j]);
      }
    } else {
      V right[kVectors];
      for (int j = 0; j < kVectors; ++j) right[j] = right_at(j);
      for (int i = 0; i < kRows; ++i) {
        const V left = hn::Set(d, a.data[i * a.row_step]);
        for (int j = 0; j < kVectors; ++j) sum[i][j] = hn::MulAdd(left, right[j], sum[i][j]);
      }
    }
    for (int i = 0; i < kRows && kByRows; ++i) total[i] += a.data[i * a.row_step];
    if (kByPanel) panel_total = hn::Add(panel_total, hn::LoadU(d, a.data));
    a.data += a.depth_step;
    b.data += b.depth_step;
  }
  add_to_tile<kRows, kBlocks>(plus, sum);
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kVectors; ++j) hn::StoreU(sum[i][j], d, c + i * c_row + j * kPart);
    if (kByRows) totals[i] = total[i];
  }
  if (kByPanel) hn::StoreU(panel_total, d, totals);
}

HWY_INLINE Left from_row(Left a, int64_t i) {
  return {a.data + i * a.row_step, a.row_step, a.depth_step};
}

HWY_INLINE Right from_block(Right b, int64_t j) {
  return {b.data + j * b.block_step, b.depth_step, b.block_step};
}

HWY_INLINE Addends from_row(const Addends& x, int64_t i) {
  return {x.of_blocks, x.count, x.row + i};
}
HWY_INLINE Addends from_block(const Addends& x, int64_t j) {
  return {x.of_blocks + j * x.count, x.count, x.row};
}
HWY_INLINE Nothing from_row(Nothing, int64_t) { return {}; }
HWY_INLINE Nothing from_block(Nothing, int64_t) { return {}; }

template <Sum kSum, Totals kTotals, int kBlocks, int kRows, class Between, class Plus>
HWY_INLINE void multiply_rows(int64_t& i, int64_t rows, int64_t depth, Left a, Right b, float* c,
                              int64_t c_row, float* totals, Between& between, const Plus& plus) {
  for (; i + kRows <= rows; i += kRows)
    multiply_tile<kSum, kTotals, kRows, kBlocks>(depth, from_row(a, i), b, c + i * c_row, c_row,
                                                 totals + (kTotals == Totals::kNone ? 0 : i),
                                                 between, from_row(plus, i));
}

// All rows of kBlocks blocks, at most kMostRows of them at once.
template <Sum kSum, int kBlocks, Totals kTotals = Totals::kNone, int kMostRows = kTileRows,
          class Between, class Plus = Nothing>
HWY_NOINLINE void multiply_blocks(int64_t rows, int64_t depth, Left a, Right b, float* c,
                                  int64_t c_row, float* totals, Between between, Plus plus = {}) {
  int64_t i = 0;
  if constexpr (kMostRows >= 8)
    multiply_rows<kSum, kTotals, kBlocks, 8>(i, rows, depth, a, b, c, c_row, totals, between, plus);
  if constexpr (kMostRows >= 4)
    multiply_rows<kSum, kTotals, kBlocks, 4>(i, rows, depth, a, b, c, c_row, totals, between, plus);
  if constexpr (kMostRows >= 2)
    multiply_rows<kSum, kTotals, kBlocks, 2>(i, rows, depth, a, b, c, c_row, totals, between, plus);
  multiply_rows<kSum, kTotals, kBlocks, 1>(i, rows, depth, a, b, c, c_row, totals, between, plus);
}

// AVX2's tiles have 6, 5 or, if need be, 4 rows and one block, or two blocks and up to 3 rows. Of
// `rows` that are left to do, how many the next tile takes: 8 = 5 + 3, 16 = 6 + 5 + 5, 7 = 4 + 3.
inline constexpr int64_t kWideTileRows = 3;
constexpr int64_t next_rows(int64_t rows) {
  constexpr std::array<int8_t, 14> kNext = {0, 1, 2, 3, 4, 5, 6, 4, 5, 6, 5, 6, 6, 5};
  return rows < 14 ? kNext[static_cast<size_t>(rows)] : 6;
}

// kRows rows of one block, and then of a second one. Totals come with the first.
template <Sum kSum, int kBlocks, Totals kTotals, int kRows, class Between, class Plus>
HWY_INLINE void multiply_narrow(int64_t depth, Left a, Right b, float* c, int64_t c_row,
                                float* totals, Between& between, const Plus& plus) {
  multiply_tile<kSum, kTotals, kRows, 1>(depth, a, b, c, c_row, totals, between, plus);
  if constexpr (kBlocks == 2)
    multiply_tile<kSum, Totals::kNone, kRows, 1>(depth, a, from_block(b, 1), c + kLanes, c_row,
                                                 nullptr, between, from_block(plus, 1));
}

// The last rows, up to kWideTileRows.
template <Sum kSum, int kBlocks, Totals kTotals, class Between, class Plus>
HWY_INLINE void multiply_wide(int64_t rows, int64_t depth, Left a, Right b, float* c, int64_t c_row,
                              float* totals, Between& between, const Plus& plus) {
  if (rows == 3)
    multiply_tile<kSum, kTotals, 3, kBlocks>(depth, a, b, c, c_row, totals, between, plus);
  if (rows == 2)
    multiply_tile<kSum, kTotals, 2, kBlocks>(depth, a, b, c, c_row, totals, between, plus);
  if (rows == 1)
    multiply_tile<kSum, kTotals, 1, kBlocks>(depth, a, b, c, c_row, totals, between, plus);
}

// As multiply_blocks, by AVX2's tiles: `times` times kBlocks blocks, one or two. With totals there are
// at most kPart rows, a panel. By reference, because g++ copies what was just written in halves as a
// whole, which waits for the cache.
template <Sum kSum, int kBlocks, Totals kTotals, class Between, class Plus = Nothing>
HWY_NOINLINE void multiply_pairs(int64_t rows, int64_t times, int64_t depth, const Left& a,
                                 const Right& b, float* c, int64_t c_row, float* totals,
                                 Between between, Plus plus = {}) {
  static_assert(kBlocks <= 2 && kTotals != Totals::kOfRows);
  for (int64_t n = 0; n < times; ++n, c += kBlocks * kLanes) {
    const Right right = from_block(b, n * kBlocks);
    const Plus block_plus = from_block(plus, n * kBlocks);
    int64_t i = 0;
    for (int64_t next; (next = next_rows(rows - i)) > kWideTileRows; i += next) {
      const Left left = from_row(a, i);
      const Plus row_plus = from_row(block_plus, i);
      float* to = c + i * c_row;
      if (next == 6)
        multiply_narrow<kSum, kBlocks, kTotals, 6>(depth, left, right, to, c_row, totals, between,
                                                   row_plus);
      else if (next == 5)
        multiply_narrow<kSum, kBlocks, kTotals, 5>(depth, left, right, to, c_row, totals, between,
                                                   row_plus);
      else
        multiply_narrow<kSum, kBlocks, kTotals, 4>(depth, left, right, to, c_row, totals, between,
                                                   row_plus);
    }
    if (i == 0)
      multiply_wide<kSum, kBlocks, kTotals>(rows, depth, a, right, c, c_row, totals, between,
                                            block_plus);
    else
      multiply_wide<kSum, kBlocks, Totals::kNone>(rows - i, depth, from_row(a, i), right,
                                                  c + i * c_row, c_row, nullptr, between,
                                                  from_row(block_plus, i));
  }
}

// plus: Addends, or Nothing.
template <Sum kSum, class Between = Nothing, class Plus = Nothing>
HWY_INLINE void multiply(int64_t rows, int64_t blocks, int64_t depth, Left a, Right b, float* c,
                         int64_t c_row, Between between = {}, Plus plus = {}) {
  int64_t j = 0;
  if (rows <= kThinRows)
    for (; j + kThinBlocks <= blocks; j += kThinBlocks)
      multiply_blocks<kSum, kThinBlocks, Totals::kNone, kThinRows>(rows, depth, a, from_block(b, j),
                                                                   c + j * kLanes, c_row, nullptr,
                                                                   between, from_block(plus, j));
  if constexpr (kParts == 2) {
    const int64_t pairs = (blocks - j) / 2;
    multiply_pairs<kSum, 2, Totals::kNone>(rows, pairs, depth, a, from_block(b, j), c + j * kLanes,
                                           c_row, nullptr, between, from_block(plus, j));
    j += 2 * pairs;
    multiply_pairs<kSum, 1, Totals::kNone>(rows, blocks - j, depth, a, from_block(b, j),
                                           c + j * kLanes, c_row, nullptr, between,
                                           from_block(plus, j));
  } else {
    for (; j + kTileBlocks <= blocks; j += kTileBlocks)
      multiply_blocks<kSum, kTileBlocks>(rows, depth, a, from_block(b, j), c + j * kLanes, c_row,
                                         nullptr, between, from_block(plus, j));
    if constexpr (kTileBlocks > 1)
      for (; j < blocks; ++j)
        multiply_blocks<kSum, 1>(rows, depth, a, from_block(b, j), c + j * kLanes, c_row, nullptr,
                                 between, from_block(plus, j));
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sextant::cpu
HWY_AFTER_NAMESPACE();

#endif
