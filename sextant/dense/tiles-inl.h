// Packs matrices as three bfloat16 terms (sextant/base/simd/bfloat16-inl.h) in the layout of AMX
// tiles: two elements sixteen apart in the inner dimension form a pair. Compiled only for AVX-512,
// which all machines with AMX have.
#if defined(SEXTANT_DENSE_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SEXTANT_DENSE_TILES_INL_H_
#undef SEXTANT_DENSE_TILES_INL_H_
#else
#define SEXTANT_DENSE_TILES_INL_H_
#endif

#include <algorithm>

#include "sextant/base/simd/amx.h"
#include "sextant/base/simd/bfloat16-inl.h"
#include "sextant/base/simd/transpose-inl.h"
#include "sextant/dense/chunks.h"
#include "sextant/dense/epilogue-inl.h"
#include "sextant/dense/slab.h"
#include "sextant/dense/vectors-inl.h"

#ifndef SEXTANT_DENSE_TILES_ONCE
#define SEXTANT_DENSE_TILES_ONCE
namespace sextant::dense {

inline constexpr int kThreeParts = 3;                  // terms of a value
inline constexpr int64_t kTiledBlock = 256;            // block size of the inner dimension
inline constexpr int64_t kTiledStep = 2 * amx::kSide;  // rows, and columns, of a step
static_assert(kGroupRows % kTiledStep == 0 && kMostPanel % kTiledStep == 0);

// The layout of a packed block of the inner dimension; sizes in floats.
struct Tiled {
  int64_t pairs;     // of the inner dimension
  int64_t row_step;  // row stride of a packed group; no power of two, against cache conflicts
  int64_t group_part, right_part;
  int64_t worker;  // per worker: a packed group, and its sums with a panel
  Tiled(int64_t depth, int64_t columns)
      : pairs(amx::paired(depth)),
        row_step(pairs + amx::kSide),
        group_part(kGroupRows * row_step),
        right_part(pieces(columns, amx::kSide) * amx::kSide * pairs),
        worker(kThreeParts * group_part + kGroupRows * kMostPanel) {}
};

}  // namespace sextant::dense
#endif

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
HWY_BEFORE_NAMESPACE();
namespace sextant::dense {
namespace HWY_NAMESPACE {

static_assert(kLanes == amx::kSide && 2 * kLanes == amx::kDepth);

// Splits values into terms and tracks whether their terms are exact.
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

// Loads up to a vector of the `count` elements left; the other lanes are zero, all of them if count
// <= 0.
HWY_INLINE V load_some(const float* from, int64_t count) {
  const F32 d;
  if (HWY_LIKELY(count >= kLanes)) return hn::LoadU(d, from);
  if (count <= 0) return hn::Zero(d);
  return hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(count)), d, from);
}

// Loads the rows of a block of m of kLanes x kLanes, where columns of m are contiguous.
HWY_INLINE void load_turned(const Matrix& m, int64_t row, int64_t column, V* x) {
  const float* const from = m.data + row + column * m.column_stride;
  for (int64_t n = 0; n < kLanes; ++n)
    x[n] = load_some(from + n * m.column_stride, column + n < m.columns ? m.rows - row : 0);
  sextant::HWY_NAMESPACE::transpose_in_registers(F32(), x);
}

// Packs rows [first, last) of a left operand into to[term][row][pair of columns], rows `to_step`
// apart. Returns false if some values have no exact terms.
inline HWY_NOINLINE bool put_left(const Matrix& a, int64_t first, int64_t last, float* to,
                                  int64_t to_step, int64_t part_step) {
  Splitter split{part_step};
  if (a.column_stride == 1) {
    for (int64_t i = first; i < last; ++i, to += to_step) {
      const float* const row = a.data + i * a.row_stride;
      for (int64_t k = 0; k < a.columns; k += 2 * kLanes) {
        // The rows come from far memory, and no other code prefetches them.
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

// Packs blocks [first, last) of sixteen columns of a right operand into to[term][block][pair of
// rows][kLanes]. Returns false if some values have no exact terms.
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
  // Rows of the transposed blocks are columns of b.
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

// Packs share number `share` of `shares` of b as terms. Returns false if some values have no exact
// terms.
inline bool split_share(const Slab& slab, int64_t share, int64_t shares) {
  const int64_t blocks = pieces(slab.b.columns, kLanes);
  return put_right(slab.b, share * blocks / shares, (share + 1) * blocks / shares, slab.panels,
                   Tiled(slab.b.rows, slab.b.columns).right_part);
}

// Prefetches the rows of c and of the epilogue's arrays while products are computed: into the L2
// cache, because the operands of the products fill L1.
HWY_INLINE void ask_for_rows(const Slab& slab, int64_t rows, int64_t columns) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t j = 0; j < columns; j += kLanes) {
      const int64_t at = r * slab.stride + j;
      __builtin_prefetch(slab.c + at, 0, 2);
      if (slab.finish.base && slab.finish.base != slab.c)
        __builtin_prefetch(slab.finish.base + at, 0, 2);
      if (slab.finish.slope_at) __builtin_prefetch(slab.finish.slope_at + at, 0, 2);
      if (slab.finish.squared_relu) __builtin_prefetch(slab.finish.squared_relu + at, 0, 2);
    }
}

// Multiplies rows [first, last). Returns false, and writes nothing, if some values have no exact
// terms.
inline bool multiply_group_by_tiles(const Slab& slab, int64_t first, int64_t last, int worker) {
  const Tiled tiled(slab.b.rows, slab.b.columns);
  float* const left = slab.groups + worker * tiled.worker;
  float* const sums = left + kThreeParts * tiled.group_part;
  if (!put_left(slab.a, first, last, left, tiled.row_step, tiled.group_part)) return false;
  const amx::Tiles tiles;
  for (int64_t at = 0; at < slab.b.columns; at += kPanel) {
    const int64_t columns = std::min(kPanel, slab.b.columns - at);
    const Slab panel = moved(slab, first * slab.stride + at);
    ask_for_rows(panel, last - first, columns);
    amx::multiply({kThreeParts,
                   pieces(last - first, kLanes),
                   pieces(columns, kLanes),
                   2 * tiled.pairs / amx::kDepth,
                   {left, tiled.group_part, tiled.row_step},
                   {slab.panels + at * tiled.pairs, tiled.right_part, kLanes, kLanes * tiled.pairs},
                   sums,
                   kPanel,
                   false});
    write_rows(sums, last - first, columns, panel);
  }
  return true;
}

}  // namespace HWY_NAMESPACE
}  // namespace sextant::dense
HWY_AFTER_NAMESPACE();

#else
HWY_BEFORE_NAMESPACE();
namespace sextant::dense {
namespace HWY_NAMESPACE {

inline bool split_share(const Slab&, int64_t, int64_t) { return false; }
inline bool multiply_group_by_tiles(const Slab&, int64_t, int64_t, int) { return false; }

}  // namespace HWY_NAMESPACE
}  // namespace sextant::dense
HWY_AFTER_NAMESPACE();
#endif

#endif
