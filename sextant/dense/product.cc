// A tile of c, kTileRows rows of kTileVectors vectors, stays in registers while the products of one block of the
// inner dimension are added up:
//
//                       b, packed: panels of a tile's columns, one row of the panel after the other
//                       |  panel  |
//    a: kTileRows rows  [ tile of c ]     each step: kTileVectors loads of b, a broadcast of each row of a
//
// Rows of a are read where they lie if they are whole in memory; if its columns are, a group of rows is packed as its
// tiles read it.
//
// A panel of a block (16 or 32 KB) stays in L1 while a group of rows of a passes by, and the group in L2 while
// panels do.
//
// (Goto and van de Geijn 2008, "Anatomy of high-performance matrix multiplication", with less packing.)
#include "sextant/dense/product.h"

#include <algorithm>
#include <cstring>

#include "sextant/attention/cpu/workspace.h"
#include "sextant/attention/simd_targets.h"
#include "sextant/dense/pieces.h"
#include "sextant/error.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sextant/dense/product.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each target
//
#include "hwy/highway.h"

#ifndef SEXTANT_DENSE_PRODUCT_ONCE
#define SEXTANT_DENSE_PRODUCT_ONCE
namespace sextant::dense {

inline constexpr int64_t kColumns = 512;   // of b that are packed at a time
inline constexpr int64_t kGroupRows = 96;  // of a, one task at most
inline constexpr int64_t kRowStep = 6;     // a group has a multiple of it; whole tiles of every target
inline constexpr int64_t kMostPanel = 64;  // columns of a panel at most

// One block of the inner dimension and some columns of b.
struct Part {
  Matrix a, b;        // of this part
  const float* base;  // null: zeros; its rows and those of c are `stride` apart
  float* c;
  int64_t stride;
  float* panels;  // of b
  float* groups;  // of a, one after the other for the workers; not used where a's rows are whole
};

}  // namespace sextant::dense
#endif

HWY_BEFORE_NAMESPACE();
namespace sextant::dense {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::CappedTag<float, 16>;
using V = hn::Vec<F32>;

inline constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(F32()));
// Accumulators, a row of the panel and a broadcast fill the registers. Of AVX-512's 12 x 2 loads more for each
// multiply-add than an Ice Lake core has loads for (sextant/attention/cpu/multiply-inl.h).
inline constexpr int kTileRows = 6, kTileVectors = HWY_TARGET <= HWY_AVX3 ? 4 : 2;
inline constexpr int64_t kPanel = kTileVectors * kLanes;
static_assert(kGroupRows % kRowStep == 0 && kRowStep % kTileRows == 0 && kMostPanel % kPanel == 0);

// Of the inner dimension: terms of a tile's sums.
int64_t block() { return kTileVectors == 4 ? 128 : 256; }

void pack_panel(const Matrix& b, int64_t panel, float* to) {
  const F32 d;
  const int64_t first = panel * kPanel, columns = std::min(kPanel, b.columns - first);
  const float* from = b.data + first * b.column_stride;
  if (columns == kPanel && b.column_stride == 1) {
    for (int64_t k = 0; k < b.rows; ++k, from += b.row_stride, to += kPanel) {
      for (int64_t n = 0; n < kPanel; n += kLanes) hn::StoreU(hn::LoadU(d, from + n), d, to + n);
    }
    return;
  }
  for (int64_t n = 0; n < kPanel; ++n)
    for (int64_t k = 0; k < b.rows; ++k)
      to[k * kPanel + n] = n < columns ? from[n * b.column_stride + k * b.row_stride] : 0.0F;
}

using Tile = V[kTileRows][kTileVectors];

// The tile's sums of `depth` products. a: the tile's rows, whose numbers lie kStep apart.
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

// One row of a tile, of `columns` <= kPanel columns. base may be null.
HWY_INLINE void write_row(const V (&sum)[kTileVectors], int64_t columns, const float* base,
                          float* to) {
  const F32 d;
  if (columns == kPanel) {
    for (int v = 0; v < kTileVectors; ++v) {
      const int64_t at = v * kLanes;
      hn::StoreU(base ? hn::Add(sum[v], hn::LoadU(d, base + at)) : sum[v], d, to + at);
    }
    return;
  }
  alignas(64) float line[kPanel];
  for (int v = 0; v < kTileVectors; ++v) hn::Store(sum[v], d, line + v * kLanes);
  for (int64_t n = 0; n < columns; ++n) to[n] = base ? base[n] + line[n] : line[n];
}

// Of rows [first, last) of a, whose columns are whole: tile after tile, of each column a tile's numbers.
void pack_group(const Matrix& a, int64_t first, int64_t last, float* to) {
  const int64_t columns = a.columns, stride = a.column_stride;
  for (int64_t row = first; row < last; row += kTileRows) {
    const float* from = a.data + row;
    const int64_t there = std::min<int64_t>(kTileRows, last - row);
    for (int64_t k = 0; k < columns; ++k, from += stride, to += kTileRows) {
      if (there == kTileRows) {
        std::memcpy(to, from, kTileRows * sizeof(float));  // of a fixed size: two moves
      } else {
        for (int64_t r = 0; r < kTileRows; ++r) to[r] = from[std::min(r, there - 1)];
      }
    }
  }
}

// Rows [first, last).
void multiply_group(const Part& part, int64_t first, int64_t last, int worker) {
  const int64_t depth = part.b.rows;
  const bool whole = part.a.column_stride == 1;
  float* const packed = part.groups + worker * kGroupRows * depth;
  if (!whole) pack_group(part.a, first, last, packed);
  for (int64_t at = 0; at < part.b.columns; at += kPanel) {
    const int64_t columns = std::min(kPanel, part.b.columns - at);
    for (int64_t row = first; row < last; row += kTileRows) {
      // Rows that are not there are read as the last one is, and not written.
      const float* a[kTileRows];
      for (int r = 0; r < kTileRows; ++r)
        a[r] = whole ? part.a.data + std::min(row + r, last - 1) * part.a.row_stride
                     : packed + (row - first) * depth + r;
      Tile sum;
      const float* const panel = part.panels + at * depth;
      whole ? add_up<1>(a, panel, depth, sum) : add_up<kTileRows>(a, panel, depth, sum);
      const int64_t there = std::min<int64_t>(kTileRows, last - row);
      for (int r = 0; r < there; ++r) {
        const int64_t offset = (row + r) * part.stride + at;
        write_row(sum[r], columns, part.base ? part.base + offset : nullptr, part.c + offset);
      }
    }
  }
}

// One share in `shares` of b's panels.
void pack_share(const Part& part, int64_t share, int64_t shares) {
  const int64_t panels = (part.b.columns + kPanel - 1) / kPanel;
  for (int64_t n = share * panels / shares; n < (share + 1) * panels / shares; ++n)
    pack_panel(part.b, n, part.panels + n * kPanel * part.b.rows);
}

}  // namespace HWY_NAMESPACE
}  // namespace sextant::dense
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sextant::dense {
namespace {

HWY_EXPORT(block);
HWY_EXPORT(pack_share);
HWY_EXPORT(multiply_group);

Matrix cut(const Matrix& m, int64_t row, int64_t rows, int64_t column, int64_t columns) {
  return {m.data + row * m.row_stride + column * m.column_stride, rows, columns, m.row_stride,
          m.column_stride};
}

}  // namespace

void multiply(const Matrix& a, const Matrix& b, const float* base, float* c,
              const Executor& executor) {
  if ((a.column_stride != 1 && a.row_stride != 1) || a.columns != b.rows)
    fail(
        "multiply: a: expected rows or columns whole in memory, and rows as long as b has rows, but "
        "got others");
  const int64_t stride = b.columns;
  if (a.columns == 0) {
    for (int64_t n = 0; n < a.rows * stride; ++n) c[n] = base ? base[n] : 0.0F;
    return;
  }
  const int64_t block = HWY_DYNAMIC_DISPATCH(block)();
  // Kept between calls: fresh pages cost as much as the packing. On lines of their own: where each vector lies on
  // two, products take an eighth longer.
  thread_local cpu::Floats scratch;
  thread_local int64_t floats = 0;
  const int64_t most = std::min(block, b.rows);
  const int64_t panels = pieces(std::min(kColumns, b.columns), kMostPanel) * kMostPanel * most;
  const int64_t groups = a.column_stride == 1 ? 0 : executor.workers() * kGroupRows * most;
  if (floats < panels + groups) {
    scratch = cpu::Floats(panels + groups);
    floats = panels + groups;
  }
  // Of a size, so that workers end together.
  const int64_t tasks = pieces(a.rows, kGroupRows), tiles = pieces(a.rows, kRowStep);
  const auto share = [&](int64_t task) {
    return std::min(a.rows, task * tiles / tasks * kRowStep);
  };
  for (int64_t column = 0; column < b.columns; column += kColumns) {
    const int64_t columns = std::min(kColumns, b.columns - column);
    for (int64_t k = 0; k < b.rows; k += block) {
      const int64_t depth = std::min(block, b.rows - k);
      const float* const before = k == 0 ? base : c;
      const Part part = {.a = cut(a, 0, a.rows, k, depth),
                         .b = cut(b, k, depth, column, columns),
                         .base = before ? before + column : nullptr,
                         .c = c + column,
                         .stride = stride,
                         .panels = scratch.data(),
                         .groups = scratch.data() + panels};
      const int64_t shares = std::min<int64_t>(executor.workers(), pieces(columns, kMostPanel));
      executor.run(shares, [&](int64_t n, int) {
        HWY_DYNAMIC_DISPATCH(pack_share)(part, n, shares);
      });
      executor.run(tasks, [&](int64_t task, int worker) {
        HWY_DYNAMIC_DISPATCH(multiply_group)(part, share(task), share(task + 1), worker);
      });
    }
  }
}

}  // namespace sextant::dense
#endif
