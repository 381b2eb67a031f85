// Rows to panels and back, and the rotation of panels.
//
//   rows                      panel: sixteen rows side by side
//   r0: a0 a1 a2 ...          a0 b0 c0 ... (column 0 of the sixteen rows)
//   r1: b0 b1 b2 ...    <->   a1 b1 c1 ...
//   r2: c0 c1 c2 ...          a2 b2 c2 ...
//
// In a panel a pair of columns is two vectors, so a rotation needs no shuffle, whatever columns a
// method pairs, and rotates sixteen rows at once.
#if defined(SEXTANT_ATTENTION_CPU_TILE_PACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SEXTANT_ATTENTION_CPU_TILE_PACK_INL_H_
#undef SEXTANT_ATTENTION_CPU_TILE_PACK_INL_H_
#else
#define SEXTANT_ATTENTION_CPU_TILE_PACK_INL_H_
#endif

#include <algorithm>

#include "hwy/cache_control.h"
#include "sextant/attention/cpu/phases.h"
#include "sextant/attention/cpu/tile/lanes-inl.h"
#include "sextant/base/half.h"
#include "sextant/base/simd/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::cpu {
namespace HWY_NAMESPACE {
using sextant::HWY_NAMESPACE::transpose_in_registers;

#if HWY_TARGET == HWY_SCALAR
HWY_INLINE void transpose_strip(const V* x, float* to) {
  for (int i = 0; i < kStrip; ++i) hn::StoreU(x[i], F32(), to + i);
}
#else
// to[j][i] = x[i][j] for kStrip rows x of kVectorLanes columns, which are overwritten.
HWY_INLINE void transpose_strip(V* x, float* to) {
  const F32 d;
  static_assert(kStrip == 8);
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  if constexpr (kVectorLanes == 16) {
    using sextant::HWY_NAMESPACE::interleave_blocks;
    using sextant::HWY_NAMESPACE::interleave_pairs;
    V pairs[kStrip];  // rows 2 n and 2 n + 1 interleaved, then two of four columns
    for (int i = 0; i < kStrip; i += 2) {
      pairs[i] = hn::InterleaveLower(d, x[i], x[i + 1]);
      pairs[i + 1] = hn::InterleaveUpper(d, x[i], x[i + 1]);
    }
    for (int last = 0; last < 2; ++last)
      for (int upper = 0; upper < 2; ++upper) {
        const V low = interleave_pairs(pairs[last], pairs[2 + last], upper);
        const V high = interleave_pairs(pairs[4 + last], pairs[6 + last], upper);
        float* const at = to + (8 * upper + 2 * last) * kStrip;
        hn::StoreU(interleave_blocks(low, high, false), d, at);
        hn::StoreU(interleave_blocks(low, high, true), d, at + 4 * kStrip);
      }
    return;
  }
#endif
  sextant::HWY_NAMESPACE::transpose_blocks<kStrip>(d, x);
  for (int i = 0; i < 4 && kVectorLanes == 8; ++i) {
    hn::StoreU(hn::ConcatLowerLower(d, x[4 + i], x[i]), d, to + i * kStrip);
    hn::StoreU(hn::ConcatUpperUpper(d, x[4 + i], x[i]), d, to + (4 + i) * kStrip);
  }
  for (int i = 0; i < kStrip && kVectorLanes == 4; ++i)
    hn::StoreU(x[i], d, to + i % 4 * kStrip + i / 4 * 4);
}
#endif

// to[j][i] = row(i)[j] for a kVectorLanes x kVectorLanes square. Rows from `rows` on are 0, and
// row() is not called for them.
template <class Row>
HWY_INLINE void transpose_square(int64_t rows, float* to, int64_t to_row, Row row) {
  const F32 d;
  V x[kVectorLanes];
  if (HWY_LIKELY(rows >= kVectorLanes)) {
    for (int i = 0; i < kVectorLanes; ++i) x[i] = row(i);
  } else {
    for (int i = 0; i < kVectorLanes; ++i) x[i] = i < rows ? row(i) : hn::Zero(d);
  }
  transpose_in_registers(d, x);
  for (int i = 0; i < kVectorLanes; ++i) hn::StoreU(x[i], d, to + i * to_row);
}

// Packs sixteen rows (of `columns`, by strides) times factor into a panel. Rows from `rows` on, and
// columns up to the next multiple of kLanes, become 0. ahead: sixteen rows that are read soon, or
// null. They are prefetched row by row, a few cache lines at a time: so the hardware prefetcher
// sees one stream and follows it, and lines arrive while rows are transposed.
template <class Number>  // float, Bfloat16 or Float16
HWY_NOINLINE void pack_panel(const Number* from, int64_t row_stride, int64_t column_stride,
                             int64_t rows, int64_t columns, float factor, float* panel,
                             const Number* ahead = nullptr) {
  constexpr int64_t kLine = 64 / sizeof(Number);  // values of a cache line
  constexpr int64_t kLinesAtOnce =
      kLanes * kVectorLanes / kLine;  // lines of sixteen rows of kVectorLanes columns
  const V times = hn::Set(F32(), factor);
  int64_t c = 0;
  if (column_stride == 1) {
    int64_t ahead_column = 0;
    for (; c + kVectorLanes <= columns; c += kVectorLanes) {
      for (int64_t line = 0; ahead && line < kLinesAtOnce; ++line) {
        hwy::Prefetch(ahead + ahead_column);
        if ((ahead_column += kLine) < columns) continue;
        ahead_column = 0;
        ahead += row_stride;
      }
      for (int64_t r = 0; r < kLanes; r += kVectorLanes)
        transpose_square(rows - r, panel + c * kLanes + r, kLanes, [&](int i) HWY_ATTR {
          return hn::Mul(times, load_part(from + (r + i) * row_stride + c));
        });
    }
  }
  for (; c < columns; ++c)
    for (int64_t r = 0; r < kLanes; ++r)
      panel[c * kLanes + r] =
          r < rows ? factor * to_float(from[r * row_stride + c * column_stride]) : 0;
  std::fill(panel + columns * kLanes, panel + round_up(columns, kLanes) * kLanes, 0.0F);
}

// The inverse: sixteen lanes of vectors that are `step` apart become rows of `columns16`, a
// multiple of kLanes.
inline HWY_NOINLINE void unpack_panel(const float* panel, int64_t step, int64_t columns16,
                                      float* to, int64_t to_row) {
  for (int64_t c = 0; c < columns16; c += kVectorLanes)
    for (int64_t r = 0; r < kLanes; r += kVectorLanes)
      transpose_square(kVectorLanes, to + r * to_row + c, to_row, [&](int i) HWY_ATTR {
        return hn::LoadU(F32(), panel + (c + i) * step + r);
      });
}

enum class Rotate { kForth, kBack };

// Rotates sixteen rows of the frame, from `row` (a multiple of kLanes) on; or rotates gradients
// back, which is the transpose.
inline HWY_NOINLINE void rotate_panel(const SidePhases& phases, int64_t row, Rotate rotate,
                                      float* panel) {
  const Lanes sign = set(rotate == Rotate::kForth ? 1.0F : -1.0F);
  const float* at = phases.of_panel(row);
  const int64_t to_next = 2 * kLanes * static_cast<int64_t>(phases.rotation->pairs.size());
  for (const Rotation::Pair& pair : phases.rotation->pairs) {
    const Lanes cos = load(at), sin = mul(sign, load(at + kLanes));
    const Lanes x = load(panel + pair.first * kLanes), y = load(panel + pair.second * kLanes);
    store(neg_mul_add(y, sin, mul(x, cos)), panel + pair.first * kLanes);
    store(mul_add(x, sin, mul(y, cos)), panel + pair.second * kLanes);
    // Phases of a long sequence are not in a near cache, and mostly the next rows follow.
    hwy::Prefetch(at + to_next);
    hwy::Prefetch(at + to_next + kLanes);
    at += 2 * kLanes;
  }
}

// Rotates a pair of columns of kVectorLanes rows, as rotate_panel() does; phases: cos, and kLanes
// further sin.
HWY_INLINE void rotate_vectors(const float* phases, V& x, V& y) {
  const V cos = hn::LoadU(F32(), phases), sin = hn::LoadU(F32(), phases + kLanes);
  const V first = hn::NegMulAdd(y, sin, hn::Mul(x, cos));
  y = hn::MulAdd(x, sin, hn::Mul(y, cos));
  x = first;
}

}  // namespace HWY_NAMESPACE
}  // namespace sextant::cpu
HWY_AFTER_NAMESPACE();

#endif
