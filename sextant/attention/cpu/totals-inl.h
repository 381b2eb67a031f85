// The matrix product together with the totals of its left side: values mixed by weights, and the sums
// of the weights.
#if defined(SEXTANT_ATTENTION_CPU_TOTALS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SEXTANT_ATTENTION_CPU_TOTALS_INL_H_
#undef SEXTANT_ATTENTION_CPU_TOTALS_INL_H_
#else
#define SEXTANT_ATTENTION_CPU_TOTALS_INL_H_
#endif

#include <algorithm>

#include "sextant/attention/cpu/multiply-inl.h"
#include "sextant/attention/cpu/pack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::cpu {
namespace HWY_NAMESPACE {

// The totals alone.
template <Sum kSum>
HWY_INLINE void total_rows(int64_t rows, int64_t depth, Left a, float* totals) {
  for (int64_t i = 0; i < rows; ++i) {
    if (kSum == Sum::kNew) totals[i] = 0;
    for (int64_t k = 0; k < depth; ++k) totals[i] += a.data[i * a.row_step + k * a.depth_step];
  }
}

// Up to kPart rows, whose lines are turned into a panel first: AVX2 has no registers to spare for a
// total of each row, but a panel's are one vector.
template <Sum kSum, class Between>
HWY_NOINLINE void multiply_and_total_panel(int64_t rows, int64_t blocks, int64_t depth, Left a,
                                           Right b, float* c, int64_t c_row, float* totals,
                                           Between between) {
  HWY_ALIGN float panel[kUnit * kPart];
  HWY_ALIGN float panel_totals[kPart] = {};
  for (int64_t k = 0; k < depth; k += kPart)
    transpose_square(rows, panel + k * kPart, kPart,
                     [&](int i) HWY_ATTR { return hn::LoadU(F32(), a.data + i * a.row_step + k); });
  const Left left = {panel, 1, kPart};
  if (kSum == Sum::kAdded) std::copy_n(totals, rows, panel_totals);
  const int64_t first = std::min<int64_t>(blocks, kTileBlocks);
  if (first == kTileBlocks)
    multiply_pairs<kSum, kTileBlocks, Totals::kOfPanel>(rows, 1, depth, left, b, c, c_row,
                                                        panel_totals, between);
  else
    multiply_pairs<kSum, 1, Totals::kOfPanel>(rows, 1, depth, left, b, c, c_row, panel_totals,
                                              between);
  std::copy_n(panel_totals, rows, totals);
  multiply<kSum>(rows, blocks - first, depth, left, from_block(b, first), c + first * kLanes, c_row,
                 between);
}

// How many tiles multiply_and_total() makes of more than kThinRows rows.
constexpr int64_t tiles_and_total(int64_t rows, int64_t blocks) {
  constexpr int64_t kPanelTiles = 3;  // 8 rows = 5 + 3, the 5 in two tiles of one block
  const int64_t pairs = std::max<int64_t>(blocks / kTileBlocks, 1);
  return pairs * (kParts == 2 ? kPanelTiles * (round_up(rows, kPart) / kPart)
                              : round_up(rows, kTileRows) / kTileRows);
}

// c (+)= a b, and the totals of the rows of a, which are lines (a.depth_step = 1) of at most kUnit floats
// and can be read up to the next multiple of kLanes.
template <Sum kSum, class Between = Nothing>
HWY_INLINE void multiply_and_total(int64_t rows, int64_t blocks, int64_t depth, Left a, Right b,
                                   float* c, int64_t c_row, float* totals, Between between = {}) {
  if (blocks == 0) return total_rows<kSum>(rows, depth, a, totals);
  int64_t first = 0;
  if (rows <= kThinRows && blocks >= kThinBlocks) {
    first = kThinBlocks;
    multiply_blocks<kSum, kThinBlocks, Totals::kOfRows, kThinRows>(rows, depth, a, b, c, c_row,
                                                                   totals, between);
  } else if constexpr (kParts == 2) {
    for (int64_t i = 0; i < rows; i += kPart)
      multiply_and_total_panel<kSum>(std::min<int64_t>(kPart, rows - i), blocks, depth,
                                     from_row(a, i), b, c + i * c_row, c_row, totals + i, between);
    return;
  } else if (blocks >= kTileBlocks) {
    first = kTileBlocks;
    multiply_blocks<kSum, kTileBlocks, Totals::kOfRows>(rows, depth, a, b, c, c_row, totals,
                                                        between);
  } else {
    first = 1;
    multiply_blocks<kSum, 1, Totals::kOfRows>(rows, depth, a, b, c, c_row, totals, between);
  }
  multiply<kSum>(rows, blocks - first, depth, a, from_block(b, first), c + first * kLanes, c_row,
                 between);
}

}  // namespace HWY_NAMESPACE
}  // namespace sextant::cpu
HWY_AFTER_NAMESPACE();

#endif
