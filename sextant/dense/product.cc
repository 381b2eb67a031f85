// A tile of c, kTileRows rows of kTileVectors vectors, stays in registers while the products of one
// block of the inner dimension are accumulated:
//
//                       b, packed: panels of a tile's columns, row-major within a panel
//                       |  panel  |
//    a: kTileRows rows  [ tile of c ]     each step: kTileVectors loads of b, and a broadcast from
//                                         each row of a
//
// Rows of a are read in place if they are contiguous; if its columns are, a group of rows is packed
// in the order in which tiles read it.
//
// A panel of a block (16 or 32 KB) stays in L1 while the rows of a group of a are processed, and
// the group stays in L2 while panels are.
//
// With AMX, both operands are split into bfloat16 terms instead, and AMX tiles compute the sums of
// a group and a panel (sextant/base/simd/amx.h); the epilogue is the same. Values without exact
// terms are multiplied in float32, as above.
//
// (Goto and van de Geijn 2008, "Anatomy of high-performance matrix multiplication", with less
// packing.)
#include "sextant/dense/product.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "sextant/base/aligned_memory.h"
#include "sextant/base/error.h"
#include "sextant/base/simd/amx.h"
#include "sextant/base/simd/targets.h"
#include "sextant/dense/chunks.h"
#include "sextant/dense/slab.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sextant/dense/product.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each target
//
#include "sextant/base/simd/transpose-inl.h"
#include "sextant/dense/epilogue-inl.h"
#include "sextant/dense/tiles-inl.h"
#include "sextant/dense/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::dense {
namespace HWY_NAMESPACE {
using sextant::HWY_NAMESPACE::transpose_in_registers;

// Accumulators, a row of the panel and a broadcast fill the registers. With AVX-512, tiles of 12 x
// 2 would need more loads per multiply-add than an Ice Lake core can issue
// (sextant/attention/cpu/tile/multiply-inl.h).
inline constexpr int kTileRows = 6;
static_assert(kGroupRows % kRowStep == 0 && kRowStep % kTileRows == 0 && kMostPanel % kPanel == 0);

// The block size of the inner dimension.
int64_t block() { return kTileVectors == 4 ? 128 : 256; }

// Transposes a block of kLanes x kLanes: columns that lie `from_step` apart become rows of a panel.
HWY_INLINE void transpose_square(const float* from, int64_t from_step, float* to) {
  const F32 d;
  V x[kLanes];
  for (int64_t n = 0; n < kLanes; ++n) x[n] = hn::LoadU(d, from + n * from_step);
  transpose_in_registers(d, x);
  for (int64_t k = 0; k < kLanes; ++k) hn::StoreU(x[k], d, to + k * kPanel);
}

// Packs panels [first, last) of b's columns.
void pack_panels(const Matrix& b, int64_t first, int64_t last, float* panels) {
  const F32 d;
  const int64_t depth = b.rows, size = depth * kPanel;
  // Goes row by row, which suits the hardware prefetcher.
  const int64_t whole = b.column_stride == 1 ? std::min(last, b.columns / kPanel) : first;
  for (int64_t k = 0; k < depth; ++k) {
    for (int64_t panel = first; panel < whole; ++panel) {
      const float* const from = b.data + k * b.row_stride + panel * kPanel;
      float* const to = panels + panel * size + k * kPanel;
      for (int64_t n = 0; n < kPanel; n += kLanes) hn::StoreU(hn::LoadU(d, from + n), d, to + n);
    }
  }
  for (int64_t panel = std::max(first, whole); panel < last; ++panel) {
    const float* const from = b.data + panel * kPanel * b.column_stride;
    float* const to = panels + panel * size;
    const int64_t columns = std::min(kPanel, b.columns - panel * kPanel);
    int64_t k = 0;
    if (b.row_stride == 1 && columns == kPanel)
      for (; k + kLanes <= depth; k += kLanes)
        for (int64_t n = 0; n < kPanel; n += kLanes)
          transpose_square(from + n * b.column_stride + k, b.column_stride, to + k * kPanel + n);
    for (; k < depth; ++k)
      for (int64_t n = 0; n < kPanel; ++n)
        to[k * kPanel + n] = n < columns ? from[n * b.column_stride + k * b.row_stride] : 0.0F;
  }
}

using Tile = V[kTileRows][kTileVectors];

// Computes the tile's sums of `depth` products. a: the tile's rows, whose elements lie kStep apart.
template <int64_t kStep>
HWY_INLINE void add_up(const float* const* a, const float* panel, int64_t depth, Tile& sum) {
  const F32 d;
  const float* row[kTileRows];
  for (int r = 0; r < kTileRows; ++r) {
    row[r] = a[r];
    for (int v = 0; v < kTileVectors; ++v) sum[r][v] = hn::Zero(d);
  }
#pragma GCC unroll 4
  for (int64_t k = 0; k < depth; ++k, panel += kPanel) {
    V right[kTileVectors];
    for (int v = 0; v < kTileVectors; ++v) right[v] = hn::LoadU(d, panel + v * kLanes);
    for (int r = 0; r < kTileRows; ++r) {
      const V x = hn::Set(d, row[r][k * kStep]);
      for (int v = 0; v < kTileVectors; ++v) sum[r][v] = hn::MulAdd(x, right[v], sum[r][v]);
    }
  }
}

// Writes `rows` rows and `columns` columns of a tile. g++ keeps the sums in registers only if all
// loops over them are unrolled early.
HWY_INLINE void write_tile(const Tile& sum, int64_t rows, int64_t columns, const Slab& slab,
                           int64_t offset) {
  if (columns == kPanel) {
#pragma GCC unroll 8
    for (int r = 0; r < kTileRows; ++r)
      if (r < rows)
        write_row(sum[r], moved(slab.finish, offset + r * slab.stride),
                  slab.c + offset + r * slab.stride);
    return;
  }
  float sums[kTileRows * kPanel];
#pragma GCC unroll 8
  for (int r = 0; r < kTileRows; ++r)
    for (int v = 0; v < kTileVectors; ++v)
      hn::StoreU(sum[r][v], F32(), sums + r * kPanel + v * kLanes);
  write_rows(sums, rows, columns, moved(slab, offset));
}

// Packs rows [first, last) of a, whose columns are contiguous: tile after tile, and within a tile
// the kTileRows elements of each column.
void pack_group(const Matrix& a, int64_t first, int64_t last, float* to) {
  const int64_t columns = a.columns, size = kTileRows * columns;
  for (int64_t k = 0; k < columns; ++k, to += kTileRows) {
    const float* from = a.data + first + k * a.column_stride;
    float* tile = to;
    int64_t rows = last - first;
    for (; rows >= kTileRows; rows -= kTileRows, from += kTileRows, tile += size)
      std::memcpy(tile, from, kTileRows * sizeof(float));  // fixed size: two moves
    for (int64_t r = 0; rows > 0 && r < kTileRows; ++r) tile[r] = from[std::min(r, rows - 1)];
  }
}

// Multiplies rows [first, last) of a.
void multiply_group(const Slab& slab, int64_t first, int64_t last, int worker) {
  const int64_t depth = slab.b.rows;
  const bool whole = slab.a.column_stride == 1;
  float* const packed = slab.groups + worker * kGroupRows * depth;
  if (!whole) pack_group(slab.a, first, last, packed);
  for (int64_t at = 0; at < slab.b.columns; at += kPanel) {
    const int64_t columns = std::min(kPanel, slab.b.columns - at);
    for (int64_t row = first; row < last; row += kTileRows) {
      // Rows past the end re-read the last row and are not stored.
      const float* a[kTileRows];
      for (int r = 0; r < kTileRows; ++r)
        a[r] = whole ? slab.a.data + std::min(row + r, last - 1) * slab.a.row_stride
                     : packed + (row - first) * depth + r;
      Tile sum;
      const float* const panel = slab.panels + at * depth;
      whole ? add_up<1>(a, panel, depth, sum) : add_up<kTileRows>(a, panel, depth, sum);
      write_tile(sum, std::min<int64_t>(kTileRows, last - row), columns, slab,
                 row * slab.stride + at);
    }
  }
}

// Packs share number `share` of `shares` of b's panels.
void pack_share(const Slab& slab, int64_t share, int64_t shares) {
  const int64_t panels = pieces(slab.b.columns, kPanel);
  pack_panels(slab.b, share * panels / shares, (share + 1) * panels / shares, slab.panels);
}

}  // namespace HWY_NAMESPACE
}  // namespace sextant::dense
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sextant::dense {
namespace {

SEXTANT_EXPORT(block);
SEXTANT_EXPORT(pack_share);
SEXTANT_EXPORT(multiply_group);
SEXTANT_EXPORT(split_share);
SEXTANT_EXPORT(multiply_group_by_tiles);

Matrix cut(const Matrix& m, int64_t row, int64_t rows, int64_t column, int64_t columns) {
  return {m.data + row * m.row_stride + column * m.column_stride, rows, columns, m.row_stride,
          m.column_stride};
}

// Whether the matrices are so large that splitting takes little time beside the products.
bool tiles_pay(const Matrix& a, const Matrix& b) {
  constexpr int64_t kFewest = 64;
  return std::min({a.rows, a.columns, b.columns}) >= kFewest &&
         (b.column_stride == 1 || b.row_stride == 1) && amx::available();
}

// Divides the rows of a into tasks, with sizes such that workers finish together.
struct Tasks {
  int64_t rows, step, count;
  Tasks(int64_t all, int64_t multiple)
      : rows(all), step(multiple), count(pieces(all, kGroupRows)) {}
  int64_t first(int64_t task) const {
    return std::min(rows, task * pieces(rows, step) / count * step);
  }
};

using Done = std::vector<uint8_t>;  // per task

void multiply_by_vectors(const Slab& slab, const Tasks& tasks, const Done& done,
                         const Executor& executor) {
  const int64_t shares = std::min<int64_t>(executor.workers(), pieces(slab.b.columns, kMostPanel));
  executor.run(shares, [&](int64_t n, int) { SEXTANT_DISPATCH(pack_share)(slab, n, shares); });
  executor.run(tasks.count, [&](int64_t task, int worker) {
    if (!done[static_cast<size_t>(task)])
      SEXTANT_DISPATCH(multiply_group)(slab, tasks.first(task), tasks.first(task + 1), worker);
  });
}

// Returns which tasks are done; the others have values without exact terms.
Done multiply_by_tiles(const Slab& slab, const Tasks& tasks, const Executor& executor) {
  const int64_t shares = std::min<int64_t>(executor.workers(), pieces(slab.b.columns, amx::kSide));
  Done done(static_cast<size_t>(tasks.count)), fit(static_cast<size_t>(shares));
  executor.run(shares, [&](int64_t n, int) {
    fit[static_cast<size_t>(n)] = SEXTANT_DISPATCH(split_share)(slab, n, shares) ? 1 : 0;
  });
  if (std::ranges::find(fit, 0) != fit.end()) return done;
  executor.run(tasks.count, [&](int64_t task, int worker) {
    done[static_cast<size_t>(task)] = SEXTANT_DISPATCH(multiply_group_by_tiles)(
        slab, tasks.first(task), tasks.first(task + 1), worker);
  });
  return done;
}

}  // namespace

void multiply(const Matrix& a, const Matrix& b, const Epilogue& finish, float* c,
              const Executor& executor) {
  if ((a.column_stride != 1 && a.row_stride != 1) || a.columns != b.rows)
    fail("multiply: a: expected rows or columns whole in memory and a column for each row of b");
  const int64_t stride = b.columns;
  const bool by_tiles = tiles_pay(a, b);
  const int64_t block = by_tiles ? kTiledBlock : SEXTANT_DISPATCH(block)();
  // The scratch memory is kept between calls: fresh pages cost as much as the packing. It starts on
  // a cache line: if each vector straddles two lines, products take an eighth longer.
  thread_local AlignedFloats scratch;
  thread_local int64_t floats = 0;
  const int64_t most = std::min(block, b.rows), most_columns = std::min(kColumns, b.columns);
  int64_t panels = pieces(most_columns, kMostPanel) * kMostPanel * most;
  int64_t worker = a.column_stride == 1 ? 0 : kGroupRows * most;
  if (by_tiles) {
    const Tiled tiled(most, most_columns);
    panels = std::max(panels, kThreeParts * tiled.right_part);
    worker = std::max(worker, tiled.worker);
  }
  const int64_t all = panels + executor.workers() * worker;
  if (floats < all) {
    scratch = AlignedFloats(all);
    floats = all;
  }
  const Tasks tasks(a.rows, by_tiles ? kTiledStep : kRowStep);
  for (int64_t column = 0; column < b.columns; column += kColumns) {
    const int64_t columns = std::min(kColumns, b.columns - column);
    for (int64_t k = 0; k == 0 || k < b.rows; k += block) {  // without terms, sums are 0
      const int64_t depth = std::min(block, b.rows - k);
      // Partial sums accumulate in c; the rest of the epilogue waits for the last block.
      const bool last = k + depth == b.rows;
      const Epilogue then = {.base = k == 0 ? finish.base : c,
                             .slope_at = last ? finish.slope_at : nullptr,
                             .squared_relu = last ? finish.squared_relu : nullptr};
      const Slab slab = {.a = cut(a, 0, a.rows, k, depth),
                         .b = cut(b, k, depth, column, columns),
                         .finish = moved(then, column),
                         .c = c + column,
                         .stride = stride,
                         .panels = scratch.data(),
                         .groups = scratch.data() + panels};
      Done done(static_cast<size_t>(tasks.count));
      if (by_tiles) done = multiply_by_tiles(slab, tasks, executor);
      if (std::ranges::find(done, 0) != done.end())
        multiply_by_vectors(slab, tasks, done, executor);
    }
  }
}

}  // namespace sextant::dense
#endif
