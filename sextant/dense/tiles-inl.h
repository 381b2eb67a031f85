// Matrices in three parts (sextant/attention/bfloat16-inl.h), as tiles of AMX multiply them: two numbers sixteen apart
// in the inner dimension are a pair. Only with AVX-512, which machines with AMX have.
#if defined(SEXTANT_DENSE_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SEXTANT_DENSE_TILES_INL_H_
#undef SEXTANT_DENSE_TILES_INL_H_
#else
#define SEXTANT_DENSE_TILES_INL_H_
#endif

#include <algorithm>

#include "sextant/attention/amx.h"
#include "sextant/attention/bfloat16-inl.h"
#include "sextant/attention/transpose-inl.h"
#include "sextant/dense/product.h"
#include "sextant/dense/vectors-inl.h"

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
HWY_BEFORE_NAMESPACE();
namespace sextant::dense {
namespace HWY_NAMESPACE {

inline constexpr int kThreeParts = 3;
static_assert(kLanes == amx::kSide && 2 * kLanes == amx::kDepth);

// What splits numbers and sees whether they may be.
struct Splitter {
  int64_t part_step;
  sextant::HWY_NAMESPACE::Fit fit = {};

  HWY_INLINE void put(V x, V y, float* to) {
    using sextant::HWY_NAMESPACE::split;
    fit.look(x);
    fit.look(y);
    sextant::HWY_NAMESPACE::put_pairs(split<kThreeParts>(x), split<kThreeParts>(y), to, part_step);
  }
};

// As many of a vector as there are; the rest, and all if there are none, are zeros.
HWY_INLINE V load_some(const float* from, int64_t count) {
  const F32 d;
  if (HWY_LIKELY(count >= kLanes)) return hn::LoadU(d, from);
  if (count <= 0) return hn::Zero(d);
  return hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(count)), d, from);
}

// Of a square of m whose columns are whole: its rows.
HWY_INLINE void load_turned(const Matrix& m, int64_t row, int64_t column, V* x) {
  const float* const from = m.data + row + column * m.column_stride;
  for (int64_t n = 0; n < kLanes; ++n)
    x[n] = load_some(from + n * m.column_stride, column + n < m.columns ? m.rows - row : 0);
  sextant::HWY_NAMESPACE::transpose_in_registers(F32(), x);
}

// Rows [first, last) of a left side: to[part][row][pair of columns], rows `to_step` apart. False if some do not fit.
inline HWY_NOINLINE bool put_left(const Matrix& a, int64_t first, int64_t last, float* to,
                                  int64_t to_step, int64_t part_step) {
  Splitter split{part_step};
  if (a.column_stride == 1) {
    for (int64_t i = first; i < last; ++i, to += to_step) {
      const float* const row = a.data + i * a.row_stride;
      for (int64_t k = 0; k < a.columns; k += 2 * kLanes) {
        __builtin_prefetch(row + k + 2 * a.row_stride);
        __builtin_prefetch(row + k + 2 * a.row_stride + kLanes);
        split.put(load_some(row + k, a.columns - k),
                  load_some(row + k + kLanes, a.columns - k - kLanes), to + k / 2);
      }
    }
    return split.fit.all();
  }
  const Matrix rows = {a.data, last, a.columns, a.row_stride, a.column_stride};
  for (int64_t k = 0; k < a.columns; k += 2 * kLanes)
    for (int64_t i = first; i < last; i += kLanes) {
      V x[kLanes], y[kLanes];
      load_turned(rows, i, k, x);
      load_turned(rows, i, k + kLanes, y);
      for (int64_t n = 0; n < kLanes; ++n)
        split.put(x[n], y[n], to + (i - first + n) * to_step + k / 2);
    }
  return split.fit.all();
}

// Blocks of sixteen columns of a right side, [first, last): to[part][block][pair of rows][kLanes].
inline HWY_NOINLINE bool put_right(const Matrix& b, int64_t first, int64_t last, float* to,
                                   int64_t part_step) {
  Splitter split{part_step};
  const int64_t block_step = amx::paired(b.rows) * kLanes;
  if (b.column_stride == 1) {
    for (int64_t k = 0; k < b.rows; k += 2 * kLanes)
      for (int64_t n = k; n < k + kLanes; ++n) {
        const float* const row = b.data + n * b.row_stride;
        float* const at = to + (k / 2 + n - k) * kLanes;
        for (int64_t block = first; block < last; ++block) {
          const int64_t j = block * kLanes;
          split.put(
              load_some(row + j, n < b.rows ? b.columns - j : 0),
              load_some(row + kLanes * b.row_stride + j, n + kLanes < b.rows ? b.columns - j : 0),
              at + block * block_step);
        }
      }
    return split.fit.all();
  }
  // Rows of the transposed are columns of b.
  for (int64_t block = first; block < last; ++block)
    for (int64_t k = 0; k < b.rows; k += 2 * kLanes) {
      V x[kLanes], y[kLanes];
      load_turned(b, k, block * kLanes, x);
      load_turned(b, k + kLanes, block * kLanes, y);
      for (int64_t n = 0; n < kLanes; ++n)
        split.put(x[n], y[n], to + block * block_step + (k / 2 + n) * kLanes);
    }
  return split.fit.all();
}

}  // namespace HWY_NAMESPACE
}  // namespace sextant::dense
HWY_AFTER_NAMESPACE();
#endif

#endif
