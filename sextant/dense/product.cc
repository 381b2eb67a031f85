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
// Where there is AMX, both sides are cut into parts instead and its tiles make the sums of a group and a panel
// (sextant/attention/amx.h), which the same then finishes. Numbers that have no exact parts go the way above.
//
// (Goto and van de Geijn 2008, "Anatomy of high-performance matrix multiplication", with less packing.)
#include "sextant/dense/product.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "sextant/attention/amx.h"
#include "sextant/attention/floats.h"
#include "sextant/attention/simd_targets.h"
#include "sextant/dense/pieces.h"
#include "sextant/error.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sextant/dense/product.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each target
//
#include "sextant/attention/transpose-inl.h"
#include "sextant/dense/tiles-inl.h"
#include "sextant/dense/vectors-inl.h"

#ifndef SEXTANT_DENSE_PRODUCT_ONCE
#define SEXTANT_DENSE_PRODUCT_ONCE
namespace sextant::dense {

inline constexpr int64_t kColumns = 512;   // of b that are packed at a time
inline constexpr int64_t kGroupRows = 96;  // of a, one task at most
inline constexpr int64_t kRowStep = 6;  // a group has a multiple of it; whole tiles of every target
inline constexpr int64_t kMostPanel = 64;  // columns of a panel at most

// By AMX.
inline constexpr int64_t kTiledBlock = 256;            // of the inner dimension
inline constexpr int64_t kTiledStep = 2 * amx::kSide;  // rows, and columns, at once
static_assert(kGroupRows % kTiledStep == 0 && kMostPanel % kTiledStep == 0);

// What lies where, in floats, of a block of the inner dimension.
struct Tiled {
  int64_t pairs;     // of the inner dimension
  int64_t row_step;  // of a group in parts; not a power of two, for the cache
  int64_t group_part, right_part;
  int64_t worker;  // a group in parts, and its sums with a panel
  Tiled(int64_t depth, int64_t columns)
      : pairs(amx::paired(depth)),
        row_step(pairs + amx::kSide),
        group_part(kGroupRows * row_step),
        right_part(pieces(columns, amx::kSide) * amx::kSide * pairs),
        worker(3 * group_part + kGroupRows * kMostPanel) {}
};

// One block of the inner dimension and some columns of b.
struct Part {
  Matrix a, b;  // of this part
  Finish finish;
  float* c;
  int64_t stride;  // from row to row of c and of what finishes it
  float* panels;   // of b
  float* groups;   // of a, one after the other for the workers; not used where a's rows are whole
};

// The same further on in c.
inline Finish moved(const Finish& finish, int64_t by) {
  return {finish.base ? finish.base + by : nullptr,
          finish.slope_at ? finish.slope_at + by : nullptr,
          finish.squared_relu ? finish.squared_relu + by : nullptr};
}

inline Part moved(const Part& part, int64_t by) {
  Part to = part;
  to.finish = moved(part.finish, by);
  to.c += by;
  return to;
}

}  // namespace sextant::dense
#endif

HWY_BEFORE_NAMESPACE();
namespace sextant::dense {
namespace HWY_NAMESPACE {
using sextant::HWY_NAMESPACE::transpose_in_registers;

// Accumulators, a row of the panel and a broadcast fill the registers. Of AVX-512's 12 x 2 loads more for each
// multiply-add than an Ice Lake core has loads for (sextant/attention/cpu/multiply-inl.h).
inline constexpr int kTileRows = 6, kTileVectors = HWY_TARGET <= HWY_AVX3 ? 4 : 2;
inline constexpr int64_t kPanel = kTileVectors * kLanes;
static_assert(kGroupRows % kRowStep == 0 && kRowStep % kTileRows == 0 && kMostPanel % kPanel == 0);

// Of the inner dimension: terms of a tile's sums.
int64_t block() { return kTileVectors == 4 ? 128 : 256; }

// Of kLanes rows and columns: columns that lie `from_step` apart become rows of a panel.
HWY_INLINE void transpose_square(const float* from, int64_t from_step, float* to) {
  const F32 d;
  V x[kLanes];
  for (int64_t n = 0; n < kLanes; ++n) x[n] = hn::LoadU(d, from + n * from_step);
  transpose_in_registers(d, x);
  for (int64_t k = 0; k < kLanes; ++k) hn::StoreU(x[k], d, to + k * kPanel);
}

// Panels [first, last) of b's columns.
void pack_panels(const Matrix& b, int64_t first, int64_t last, float* panels) {
  const F32 d;
  const int64_t depth = b.rows, size = depth * kPanel;
  // Row after row, which the processor fetches ahead of us.
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

// max(x, 0), and NaN of NaN, which the maximum of x86 would make 0.
HWY_INLINE V relu(V x) { return hn::IfThenZeroElse(hn::Lt(x, hn::Zero(F32())), x); }

// One row of a tile.
HWY_INLINE void write_row(const V (&sum)[kTileVectors], const Finish& finish, float* to) {
  const F32 d;
  for (int v = 0; v < kTileVectors; ++v) {
    const int64_t at = v * kLanes;
    V x = sum[v];
    if (finish.base) x = hn::Add(x, hn::LoadU(d, finish.base + at));
    if (finish.slope_at) {
      const V positive = relu(hn::LoadU(d, finish.slope_at + at));
      x = hn::Mul(hn::Add(positive, positive), x);
    }
    hn::StoreU(x, d, to + at);
    if (finish.squared_relu) hn::StoreU(hn::Mul(relu(x), relu(x)), d, finish.squared_relu + at);
  }
}

// The same of `columns` < kPanel columns of sums in memory.
void write_part_of_row(const float* sums, int64_t columns, const Finish& finish, float* to) {
  float base[kPanel] = {}, slope_at[kPanel] = {}, c[kPanel], squared_relu[kPanel];
  const auto copied = [&](const float* from, float* to_whole) {
    if (from == nullptr) return from;
    std::copy_n(from, columns, to_whole);
    return static_cast<const float*>(to_whole);
  };
  const Finish whole = {.base = copied(finish.base, base),
                        .slope_at = copied(finish.slope_at, slope_at),
                        .squared_relu = finish.squared_relu ? squared_relu : nullptr};
  V sum[kTileVectors];
  for (int v = 0; v < kTileVectors; ++v) sum[v] = hn::LoadU(F32(), sums + v * kLanes);
  write_row(sum, whole, c);
  std::copy_n(c, columns, to);
  if (finish.squared_relu) std::copy_n(squared_relu, columns, finish.squared_relu);
}

// `rows` rows of a tile and `columns` columns. g++ keeps sums in registers only where loops over all of them are
// unrolled early.
HWY_INLINE void write_tile(const Tile& sum, int64_t rows, int64_t columns, const Part& part,
                           int64_t offset) {
  if (columns == kPanel) {
#pragma GCC unroll 8
    for (int r = 0; r < kTileRows; ++r)
      if (r < rows)
        write_row(sum[r], moved(part.finish, offset + r * part.stride),
                  part.c + offset + r * part.stride);
    return;
  }
  float sums[kTileRows * kPanel];
#pragma GCC unroll 8
  for (int r = 0; r < kTileRows; ++r)
    for (int v = 0; v < kTileVectors; ++v)
      hn::StoreU(sum[r][v], F32(), sums + r * kPanel + v * kLanes);
  for (int64_t r = 0; r < rows; ++r, offset += part.stride)
    write_part_of_row(sums + r * kPanel, columns, moved(part.finish, offset), part.c + offset);
}

// Of rows [first, last) of a, whose columns are whole: tile after tile, of each column a tile's numbers.
void pack_group(const Matrix& a, int64_t first, int64_t last, float* to) {
  const int64_t columns = a.columns, size = kTileRows * columns;
  for (int64_t k = 0; k < columns; ++k, to += kTileRows) {
    const float* from = a.data + first + k * a.column_stride;
    float* tile = to;
    int64_t rows = last - first;
    for (; rows >= kTileRows; rows -= kTileRows, from += kTileRows, tile += size)
      std::memcpy(tile, from, kTileRows * sizeof(float));  // of a fixed size: two moves
    for (int64_t r = 0; rows > 0 && r < kTileRows; ++r) tile[r] = from[std::min(r, rows - 1)];
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
      write_tile(sum, std::min<int64_t>(kTileRows, last - row), columns, part,
                 row * part.stride + at);
    }
  }
}

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
// One share in `shares` of b, in parts. False if some numbers do not fit.
bool split_share(const Part& part, int64_t share, int64_t shares) {
  const int64_t blocks = pieces(part.b.columns, kLanes);
  return put_right(part.b, share * blocks / shares, (share + 1) * blocks / shares, part.panels,
                   Tiled(part.b.rows, part.b.columns).right_part);
}

// For what will be written, and read for that, while products are made: into the L2 cache, for L1 is full of those.
HWY_INLINE void ask_for_rows(const Part& part, int64_t rows, int64_t columns) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t j = 0; j < columns; j += kLanes) {
      const int64_t at = r * part.stride + j;
      __builtin_prefetch(part.c + at, 0, 2);
      if (part.finish.base && part.finish.base != part.c)
        __builtin_prefetch(part.finish.base + at, 0, 2);
      if (part.finish.slope_at) __builtin_prefetch(part.finish.slope_at + at, 0, 2);
      if (part.finish.squared_relu) __builtin_prefetch(part.finish.squared_relu + at, 0, 2);
    }
}

// sums: [rows][kPanel].
void write_rows(const float* sums, int64_t rows, int64_t columns, const Part& to) {
  for (int64_t r = 0; r < rows; ++r, sums += kPanel) {
    const Finish finish = moved(to.finish, r * to.stride);
    float* const at = to.c + r * to.stride;
    if (columns < kPanel) {
      write_part_of_row(sums, columns, finish, at);
      continue;
    }
    V sum[kTileVectors];
    for (int v = 0; v < kTileVectors; ++v) sum[v] = hn::LoadU(F32(), sums + v * kLanes);
    write_row(sum, finish, at);
  }
}

// Rows [first, last). False if some numbers do not fit; then nothing is written.
bool multiply_group_by_tiles(const Part& part, int64_t first, int64_t last, int worker) {
  const Tiled tiled(part.b.rows, part.b.columns);
  float* const left = part.groups + worker * tiled.worker;
  float* const sums = left + 3 * tiled.group_part;
  if (!put_left(part.a, first, last, left, tiled.row_step, tiled.group_part)) return false;
  const amx::Tiles tiles;
  for (int64_t at = 0; at < part.b.columns; at += kPanel) {
    const int64_t columns = std::min(kPanel, part.b.columns - at);
    const Part panel = moved(part, first * part.stride + at);
    ask_for_rows(panel, last - first, columns);
    amx::multiply({3,
                   pieces(last - first, kLanes),
                   pieces(columns, kLanes),
                   2 * tiled.pairs / amx::kDepth,
                   {left, tiled.group_part, tiled.row_step},
                   {part.panels + at * tiled.pairs, tiled.right_part, kLanes, kLanes * tiled.pairs},
                   sums,
                   kPanel,
                   false});
    write_rows(sums, last - first, columns, panel);
  }
  return true;
}
#else
bool split_share(const Part&, int64_t, int64_t) { return false; }
bool multiply_group_by_tiles(const Part&, int64_t, int64_t, int) { return false; }
#endif

// One share in `shares` of b's panels.
void pack_share(const Part& part, int64_t share, int64_t shares) {
  const int64_t panels = pieces(part.b.columns, kPanel);
  pack_panels(part.b, share * panels / shares, (share + 1) * panels / shares, part.panels);
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
HWY_EXPORT(split_share);
HWY_EXPORT(multiply_group_by_tiles);

Matrix cut(const Matrix& m, int64_t row, int64_t rows, int64_t column, int64_t columns) {
  return {m.data + row * m.row_stride + column * m.column_stride, rows, columns, m.row_stride,
          m.column_stride};
}

// Whether there are so many numbers that cutting them up is little beside the products.
bool tiles_pay(const Matrix& a, const Matrix& b) {
  constexpr int64_t kFewest = 64;
  return std::min({a.rows, a.columns, b.columns}) >= kFewest &&
         (b.column_stride == 1 || b.row_stride == 1) && amx::available();
}

// The rows of a in tasks, of a size so that workers end together.
struct Tasks {
  int64_t rows, step, count;
  Tasks(int64_t all, int64_t multiple)
      : rows(all), step(multiple), count(pieces(all, kGroupRows)) {}
  int64_t first(int64_t task) const {
    return std::min(rows, task * pieces(rows, step) / count * step);
  }
};

using Done = std::vector<uint8_t>;  // of each task

void multiply_by_vectors(const Part& part, const Tasks& tasks, const Done& done,
                         const Executor& executor) {
  const int64_t shares = std::min<int64_t>(executor.workers(), pieces(part.b.columns, kMostPanel));
  executor.run(shares, [&](int64_t n, int) { HWY_DYNAMIC_DISPATCH(pack_share)(part, n, shares); });
  executor.run(tasks.count, [&](int64_t task, int worker) {
    if (!done[static_cast<size_t>(task)])
      HWY_DYNAMIC_DISPATCH(multiply_group)(part, tasks.first(task), tasks.first(task + 1), worker);
  });
}

// Which tasks are done then: the others' numbers have no exact parts.
Done multiply_by_tiles(const Part& part, const Tasks& tasks, const Executor& executor) {
  const int64_t shares = std::min<int64_t>(executor.workers(), pieces(part.b.columns, amx::kSide));
  Done done(static_cast<size_t>(tasks.count)), fit(static_cast<size_t>(shares));
  executor.run(shares, [&](int64_t n, int) {
    fit[static_cast<size_t>(n)] = HWY_DYNAMIC_DISPATCH(split_share)(part, n, shares) ? 1 : 0;
  });
  if (std::ranges::find(fit, 0) != fit.end()) return done;
  executor.run(tasks.count, [&](int64_t task, int worker) {
    done[static_cast<size_t>(task)] = HWY_DYNAMIC_DISPATCH(multiply_group_by_tiles)(
        part, tasks.first(task), tasks.first(task + 1), worker);
  });
  return done;
}

}  // namespace

void multiply(const Matrix& a, const Matrix& b, const Finish& finish, float* c,
              const Executor& executor) {
  if ((a.column_stride != 1 && a.row_stride != 1) || a.columns != b.rows)
    fail("multiply: a: expected rows or columns whole in memory and a column for each row of b");
  const int64_t stride = b.columns;
  const bool by_tiles = tiles_pay(a, b);
  const int64_t block = by_tiles ? kTiledBlock : HWY_DYNAMIC_DISPATCH(block)();
  // Kept between calls: fresh pages cost as much as the packing. On lines of their own: where each vector lies on
  // two, products take an eighth longer.
  thread_local Floats scratch;
  thread_local int64_t floats = 0;
  const int64_t most = std::min(block, b.rows), most_columns = std::min(kColumns, b.columns);
  int64_t panels = pieces(most_columns, kMostPanel) * kMostPanel * most;
  int64_t worker = a.column_stride == 1 ? 0 : kGroupRows * most;
  if (by_tiles) {
    const Tiled tiled(most, most_columns);
    panels = std::max(panels, 3 * tiled.right_part);
    worker = std::max(worker, tiled.worker);
  }
  const int64_t all = panels + executor.workers() * worker;
  if (floats < all) {
    scratch = Floats(all);
    floats = all;
  }
  const Tasks tasks(a.rows, by_tiles ? kTiledStep : kRowStep);
  for (int64_t column = 0; column < b.columns; column += kColumns) {
    const int64_t columns = std::min(kColumns, b.columns - column);
    for (int64_t k = 0; k == 0 || k < b.rows; k += block) {  // of no terms, sums are zeros
      const int64_t depth = std::min(block, b.rows - k);
      // Sums grow in c; what is done with whole ones waits for the last block.
      const bool last = k + depth == b.rows;
      const Finish then = {.base = k == 0 ? finish.base : c,
                           .slope_at = last ? finish.slope_at : nullptr,
                           .squared_relu = last ? finish.squared_relu : nullptr};
      const Part part = {.a = cut(a, 0, a.rows, k, depth),
                         .b = cut(b, k, depth, column, columns),
                         .finish = moved(then, column),
                         .c = c + column,
                         .stride = stride,
                         .panels = scratch.data(),
                         .groups = scratch.data() + panels};
      Done done(static_cast<size_t>(tasks.count));
      if (by_tiles) done = multiply_by_tiles(part, tasks, executor);
      if (std::ranges::find(done, 0) != done.end())
        multiply_by_vectors(part, tasks, done, executor);
    }
  }
}

}  // namespace sextant::dense
#endif
