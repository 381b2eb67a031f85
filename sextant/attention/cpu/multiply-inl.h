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
// which other rows or columns were computed with it.
//
// The tile of accumulators stays in registers: 8 rows x 2 blocks on AVX-512 reach 98 % of the
// multiply-add peak of a Zen 4 core from L2 (g++ 12 and clang 14, -O3).
#if defined(SEXTANT_ATTENTION_CPU_MULTIPLY_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SEXTANT_ATTENTION_CPU_MULTIPLY_INL_H_
#undef SEXTANT_ATTENTION_CPU_MULTIPLY_INL_H_
#else
#define SEXTANT_ATTENTION_CPU_MULTIPLY_INL_H_
#endif

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

// Accumulators and what they are fed from must fit 32 registers (AVX-512, NEON) or 16.
inline constexpr int kTileRows = kParts == 1 ? 8 : (kParts == 2 || HWY_ARCH_ARM) ? 4 : 2;
inline constexpr int kTileBlocks = kParts == 1 ? 2 : 1;
// One or two rows need more blocks, for their accumulators alone do not outlast the latency.
inline constexpr int kThinRows = kParts == 1 ? 2 : 1;
inline constexpr int kThinBlocks = kParts == 1 ? 8 : kParts == 2 ? 4 : 2;

enum class Sum { kNew, kAdded };

// What is done between the steps of the sum. A product that is bound by memory asks there for what it
// will read next.
struct Nothing {
  HWY_INLINE void operator()() {}
};

// totals: if kTotals, totals[i] (+)= the sum over k of a(i, k), added up in the same order as c is, so
// that it is what c would be if b were 1, bit by bit. These sums ride along: on Zen 4 additions and
// multiply-adds have pipes of their own, and scalars leave the wide ones alone.
template <Sum kSum, bool kTotals, int kRows, int kBlocks, class Between>
HWY_INLINE void multiply_tile(int64_t depth, Left a, Right b, float* c, int64_t c_row,
                              float* totals, Between& between) {
  const F32 d;
  constexpr int kVectors = kBlocks * kParts;
  V sum[kRows][kVectors];
  float total[kRows];
  for (int i = 0; i < kRows; ++i) {
    total[i] = kTotals && kSum == Sum::kAdded ? totals[i] : 0;
    for (int j = 0; j < kVectors; ++j)
      sum[i][j] = kSum == Sum::kAdded ? hn::LoadU(d, c + i * c_row + j * kPart) : hn::Zero(d);
  }
  for (int64_t k = 0; k < depth; ++k) {
    V right[kVectors];
    for (int j = 0; j < kVectors; ++j)
      right[j] = hn::LoadU(d, b.data + j / kParts * b.block_step + j % kParts * kPart);
    for (int i = 0; i < kRows; ++i) {
      const V left = hn::Set(d, a.data[i * a.row_step]);
      for (int j = 0; j < kVectors; ++j) sum[i][j] = hn::MulAdd(left, right[j], sum[i][j]);
      if (kTotals) total[i] += a.data[i * a.row_step];
    }
    a.data += a.depth_step;
    b.data += b.depth_step;
    between();
  }
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kVectors; ++j) hn::StoreU(sum[i][j], d, c + i * c_row + j * kPart);
    if (kTotals) totals[i] = total[i];
  }
}

template <Sum kSum, bool kTotals, int kBlocks, int kRows, class Between>
HWY_INLINE void multiply_rows(int64_t& i, int64_t rows, int64_t depth, Left a, Right b, float* c,
                              int64_t c_row, float* totals, Between& between) {
  for (; i + kRows <= rows; i += kRows)
    multiply_tile<kSum, kTotals, kRows, kBlocks>(
        depth, {a.data + i * a.row_step, a.row_step, a.depth_step}, b, c + i * c_row, c_row,
        totals + (kTotals ? i : 0), between);
}

// All rows of kBlocks blocks, at most kMostRows of them at once.
template <Sum kSum, int kBlocks, bool kTotals = false, int kMostRows = kTileRows, class Between>
HWY_NOINLINE void multiply_blocks(int64_t rows, int64_t depth, Left a, Right b, float* c,
                                  int64_t c_row, float* totals, Between between) {
  int64_t i = 0;
  if constexpr (kMostRows >= 8)
    multiply_rows<kSum, kTotals, kBlocks, 8>(i, rows, depth, a, b, c, c_row, totals, between);
  if constexpr (kMostRows >= 4)
    multiply_rows<kSum, kTotals, kBlocks, 4>(i, rows, depth, a, b, c, c_row, totals, between);
  if constexpr (kMostRows >= 2)
    multiply_rows<kSum, kTotals, kBlocks, 2>(i, rows, depth, a, b, c, c_row, totals, between);
  multiply_rows<kSum, kTotals, kBlocks, 1>(i, rows, depth, a, b, c, c_row, totals, between);
}

template <Sum kSum, class Between = Nothing>
HWY_INLINE void multiply(int64_t rows, int64_t blocks, int64_t depth, Left a, Right b, float* c,
                         int64_t c_row, Between between = {}) {
  const auto from = [&](int64_t j) -> Right {
    return {b.data + j * b.block_step, b.depth_step, b.block_step};
  };
  int64_t j = 0;
  if (rows <= kThinRows)
    for (; j + kThinBlocks <= blocks; j += kThinBlocks)
      multiply_blocks<kSum, kThinBlocks, false, kThinRows>(rows, depth, a, from(j), c + j * kLanes,
                                                           c_row, nullptr, between);
  for (; j + kTileBlocks <= blocks; j += kTileBlocks)
    multiply_blocks<kSum, kTileBlocks>(rows, depth, a, from(j), c + j * kLanes, c_row, nullptr,
                                       between);
  if constexpr (kTileBlocks > 1)
    for (; j < blocks; ++j)
      multiply_blocks<kSum, 1>(rows, depth, a, from(j), c + j * kLanes, c_row, nullptr, between);
}

// c (+)= a b, and the totals of the rows of a.
template <Sum kSum, class Between = Nothing>
HWY_INLINE void multiply_and_total(int64_t rows, int64_t blocks, int64_t depth, Left a, Right b,
                                   float* c, int64_t c_row, float* totals, Between between = {}) {
  int64_t first = 0;
  if (rows <= kThinRows && blocks >= kThinBlocks) {
    first = kThinBlocks;
    multiply_blocks<kSum, kThinBlocks, true, kThinRows>(rows, depth, a, b, c, c_row, totals,
                                                        between);
  } else if (blocks >= kTileBlocks) {
    first = kTileBlocks;
    multiply_blocks<kSum, kTileBlocks, true>(rows, depth, a, b, c, c_row, totals, between);
  } else if (blocks == 1) {
    first = 1;
    multiply_blocks<kSum, 1, true>(rows, depth, a, b, c, c_row, totals, between);
  } else {
    for (int64_t i = 0; i < rows; ++i) {  // no columns: the totals alone
      if (kSum == Sum::kNew) totals[i] = 0;
      for (int64_t k = 0; k < depth; ++k) totals[i] += a.data[i * a.row_step + k * a.depth_step];
    }
  }
  multiply<kSum>(rows, blocks - first, depth, a,
                 {b.data + first * b.block_step, b.depth_step, b.block_step}, c + first * kLanes,
                 c_row, between);
}

}  // namespace HWY_NAMESPACE
}  // namespace sextant::cpu
HWY_AFTER_NAMESPACE();

#endif
