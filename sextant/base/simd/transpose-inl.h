// Transposes blocks of float32 in registers: square blocks with as many rows as a vector has lanes,
// or eight columns of as many rows as there are lanes.
#if defined(SEXTANT_BASE_SIMD_TRANSPOSE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SEXTANT_BASE_SIMD_TRANSPOSE_INL_H_
#undef SEXTANT_BASE_SIMD_TRANSPOSE_INL_H_
#else
#define SEXTANT_BASE_SIMD_TRANSPOSE_INL_H_
#endif

#include "hwy/highway.h"
#include "sextant/base/simd/avx512-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sextant {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR
template <class D, class V = hn::Vec<D>>
HWY_INLINE void transpose_in_registers(D, V*) {}
template <class D, class Load, class V = hn::Vec<D>>
HWY_INLINE void load_eight_columns(D d, Load load, V* x) {
  for (int i = 0; i < 8; ++i) x[i] = load(d, 0, i);
}
#else
// x[i] holds a vector of row i. Afterwards block b (four lanes) of x[4 g + i] holds column 4 b + i
// of rows 4 g to 4 g + 3.
template <int kRows, class D, class V = hn::Vec<D>>
HWY_INLINE void transpose_blocks(D d, V* x) {
  const hn::RepartitionToWide<hn::RebindToUnsigned<D>> d64;
  V y[kRows];
  // Interleaves pairs of rows, then pairs of pairs.
  for (int i = 0; i < kRows; i += 2) {
    y[i] = hn::InterleaveLower(d, x[i], x[i + 1]);
    y[i + 1] = hn::InterleaveUpper(d, x[i], x[i + 1]);
  }
  for (int i = 0; i < kRows; i += 4)
    for (int half = 0; half < 2; ++half) {
      const auto a = hn::BitCast(d64, y[i + half]), b = hn::BitCast(d64, y[i + 2 + half]);
      x[i + 2 * half] = hn::BitCast(d, hn::InterleaveLower(d64, a, b));
      x[i + 2 * half + 1] = hn::BitCast(d, hn::InterleaveUpper(d64, a, b));
    }
}

#if !HWY_ARCH_X86 || HWY_TARGET > HWY_AVX3
template <class V>
HWY_INLINE V even_blocks(V a, V b) {
  return hn::OddEvenBlocks(hn::SwapAdjacentBlocks(b), a);
}
template <class V>
HWY_INLINE V odd_blocks(V a, V b) {
  return hn::OddEvenBlocks(b, hn::SwapAdjacentBlocks(a));
}
#endif

// x[i] holds row i of the square block; afterwards, column i.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void transpose_in_registers(D d, V* x) {
  constexpr int kRows = static_cast<int>(hn::MaxLanes(D()));
  V y[kRows];
  transpose_blocks<kRows>(d, x);
  // The blocks of four lanes remain to be transposed.
  if constexpr (kRows == 8) {
    for (int i = 0; i < 4; ++i) {
      y[i] = hn::ConcatLowerLower(d, x[4 + i], x[i]);
      y[4 + i] = hn::ConcatUpperUpper(d, x[4 + i], x[i]);
    }
    for (int i = 0; i < 8; ++i) x[i] = y[i];
  }
  if constexpr (kRows == 16) {
    for (int i = 0; i < 4; ++i) {
      const V low02 = hn::ConcatLowerLower(d, x[8 + i], x[i]);
      const V low13 = hn::ConcatLowerLower(d, x[12 + i], x[4 + i]);
      const V high02 = hn::ConcatUpperUpper(d, x[8 + i], x[i]);
      const V high13 = hn::ConcatUpperUpper(d, x[12 + i], x[4 + i]);
      y[i] = even_blocks(low02, low13);
      y[4 + i] = odd_blocks(low02, low13);
      y[8 + i] = even_blocks(high02, high13);
      y[12 + i] = odd_blocks(high02, high13);
    }
    for (int i = 0; i < 16; ++i) x[i] = y[i];
  }
}

// Loads eight columns of as many rows as a vector has lanes: x[j] = column j. load(tag, int row,
// int column) returns as many elements of a row as the tag has lanes. With sixteen rows this takes
// fewer shuffles than transposing a square block, and half its registers: rows i and i + 4 share a
// vector, so that the last step moves whole blocks in order, which needs no indices.
template <class D, class Load, class V = hn::Vec<D>>
HWY_INLINE void load_eight_columns(D d, Load load, V* x) {
  constexpr int kRows = static_cast<int>(hn::MaxLanes(D()));
  if constexpr (kRows == 16) {
    const hn::Half<D> half;
    for (int i = 0; i < 8; ++i) {
      const int row = i / 4 * 8 + i % 4;
      x[i] = hn::Combine(d, load(half, row + 4, 0), load(half, row, 0));
    }
    transpose_blocks<8>(d, x);
    for (int i = 0; i < 4; ++i) {
      const V first = x[i], last = x[4 + i];
      x[i] = concat_even_blocks(first, last);
      x[4 + i] = concat_odd_blocks(first, last);
    }
  } else {
    for (int c = 0; c < 8; c += kRows) {
      for (int i = 0; i < kRows; ++i) x[c + i] = load(d, i, c);
      transpose_in_registers(d, x + c);
    }
  }
}
#endif

}  // namespace HWY_NAMESPACE
}  // namespace sextant
HWY_AFTER_NAMESPACE();

#endif
