// What a tile adds to gradients: products of the weights and score gradients of a block of queries
// with the rows that they came from.
//
// Tables get theirs through sums by table row, E: of A, with queries for rows,
//
//   E[i, r] = sum over keys j with row(d_ij) = r of e_ij       dq += E A      dA += E^T q
//
// of C the same with weights, and of B with keys for rows.
#if defined(SEXTANT_ATTENTION_CPU_COLLECT_GRADS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SEXTANT_ATTENTION_CPU_COLLECT_GRADS_INL_H_
#undef SEXTANT_ATTENTION_CPU_COLLECT_GRADS_INL_H_
#else
#define SEXTANT_ATTENTION_CPU_COLLECT_GRADS_INL_H_
#endif

#include <algorithm>
#include <array>

#include "sextant/attention/cpu/backward.h"
#include "sextant/attention/cpu/by_distance-inl.h"
#include "sextant/attention/cpu/mix-inl.h"
#include "sextant/attention/cpu/multiply-inl.h"
#include "sextant/attention/cpu/pack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::cpu {
namespace HWY_NAMESPACE {

// Columns of a tile, and the rows (whole strips) that see any of them: a causal tile is a staircase.
struct Step {
  Run columns, rows;
};

// A tile of scores as its gradients are collected from: some queries, some columns of a unit.
struct Tile {
  const Problem& problem;
  const Block& block;
  int64_t head;
  int64_t first, rows;                      // queries, of the frame
  int64_t first_key;                        // key of column 0
  Run columns;                              // all that are seen, rounded out to multiples of kLanes
  std::array<Run, kBlock / kStrip> strips;  // the columns of each strip, rounded out
  bool exactly;  // something that must not be seen may be infinite or NaN

  int64_t strip_count() const { return (rows + kStrip - 1) / kStrip; }
  int64_t strip_rows(int64_t n) const { return std::min(kStrip, rows - n * kStrip); }
  // Of its first query and the first of some columns.
  int64_t diagonal(int64_t column) const { return block.diagonal + first_key + column - first; }

  // Calls f(Step) so that the steps cover all columns once.
  template <class F>
  void each_step(F&& f) const {
    Step step = {{columns.first, columns.first}, {}};
    for (int64_t j = columns.first; j < columns.last; j += kLanes) {
      Run seen;
      for (int64_t n = 0; n < strip_count(); ++n)
        if (strips[static_cast<size_t>(n)].first <= j && j < strips[static_cast<size_t>(n)].last)
          seen = span(seen, {n * kStrip, n * kStrip + strip_rows(n)});
      if (!(seen == step.rows)) {
        if (!empty(step.columns) && !empty(step.rows)) f(step);
        step = {{j, j}, seen};
      }
      step.columns.last = j + kLanes;
    }
    if (!empty(step.columns) && !empty(step.rows)) f(step);
  }
};

HWY_INLINE void add_product(bool exactly, int64_t rows, int64_t columns16, int64_t depth, Left a,
                            Right b, float* c, int64_t c_row) {
  if (exactly)
    multiply_exactly(rows, columns16 / kLanes, depth, a, b, c, c_row);
  else
    multiply<Sum::kAdded>(rows, columns16 / kLanes, depth, a, b, c, c_row);
}

// to[i] = sum over keys of lines(i, j) * keys[j]: gradients of queries. Rows of `columns16`.
inline HWY_NOINLINE void collect_queries(const Tile& t, const float* lines, const float* keys,
                                         int64_t columns16, float* to) {
  std::fill_n(to, t.rows * columns16, 0.0F);
  for (int64_t n = 0; n < t.strip_count(); ++n) {
    const Run columns = t.strips[static_cast<size_t>(n)];
    if (empty(columns)) continue;
    add_product(t.exactly, t.strip_rows(n), columns16, columns.last - columns.first,
                {lines + n * kStrip * kScoreRow + columns.first, kScoreRow, 1},
                {keys + columns.first * columns16, columns16, kLanes}, to + n * kStrip * columns16,
                columns16);
  }
}

// to[j] += sum over queries of lines(i, j) * queries[i]: gradients of keys or values.
inline HWY_NOINLINE void collect_keys(const Tile& t, const float* lines, Matrix queries,
                                      int64_t columns16, float* to) {
  t.each_step([&](const Step& step) HWY_ATTR {
    add_product(t.exactly, step.columns.last - step.columns.first, columns16,
                step.rows.last - step.rows.first,
                {lines + step.rows.first * kScoreRow + step.columns.first, 1, kScoreRow},
                {queries.data + step.rows.first * queries.stride, queries.stride, kLanes},
                to + step.columns.first * columns16, columns16);
  });
}

// A table with queries for rows: collects E from lines, adds E^T x to the table's gradient (if there
// is one) and E T to x's (if there is one). sums: [kBlock][rows of the table].
inline HWY_NOINLINE void collect_table(const Tile& t, const Vectors& table, const float* lines,
                                       Matrix x, float* sums, float* table_grad, float* x_grad,
                                       int64_t x_grad_row) {
  const int64_t width = t.columns.last - t.columns.first;
  const RowMap::Range range =
      table.map.range(t.diagonal(t.columns.first) - t.rows + 1, width + t.rows - 1);
  const int64_t count = range.last - range.first;
  const bool exactly =
      t.exactly || (x_grad && !all_finite(table.row(t.head, range.first), count * table.columns16));
  std::fill_n(sums, t.rows * count, 0.0F);
  for (int64_t n = 0; n < t.strip_count(); ++n) {
    const Run columns = t.strips[static_cast<size_t>(n)];
    if (empty(columns)) continue;
    collect(table.map, t.diagonal(columns.first) - n * kStrip, t.strip_rows(n),
            columns.last - columns.first, lines + n * kStrip * kScoreRow + columns.first, kScoreRow,
            range.first, sums + n * kStrip * count, count);
  }
  if (x_grad)
    add_product(exactly, t.rows, table.columns16, count, {sums, count, 1},
                {table.row(t.head, range.first), table.columns16, kLanes}, x_grad, x_grad_row);
  if (table_grad)
    add_product(t.exactly, count, table.columns16, t.rows, {sums, 1, count},
                {x.data, x.stride, kLanes}, table_grad + range.first * table.columns16,
                table.columns16);
}

// The same for B, with keys for rows, a panel of them at a time. keys: [unit][depth16], and so are
// their gradients. across: [kLanes][kBlock].
inline HWY_NOINLINE void collect_key_table(const Tile& t, const float* lines, const float* keys,
                                           float* across, float* sums, float* table_grad,
                                           float* key_grads) {
  const Problem& p = t.problem;
  const Vectors& table = p.on_key;
  const int64_t rows16 = round_up(t.rows, kLanes);
  for (int64_t j = t.columns.first; j < t.columns.last; j += kLanes) {
    unpack_panel(lines + j, kScoreRow, rows16, across, kBlock);
    const int64_t diagonal = p.score.diagonals.count - 1 - t.diagonal(j);
    const RowMap::Range range = table.map.range(diagonal - kLanes + 1, rows16 + kLanes - 1);
    const int64_t count = range.last - range.first;
    std::fill_n(sums, kLanes * count, 0.0F);
    collect(table.map, diagonal, kLanes, rows16, across, kBlock, range.first, sums, count);
    const bool exactly =
        t.exactly || !all_finite(table.row(t.head, range.first), count * table.columns16);
    add_product(exactly, kLanes, table.columns16, count, {sums, count, 1},
                {table.row(t.head, range.first), table.columns16, kLanes},
                key_grads + j * p.depth16, p.depth16);
    if (table_grad)
      add_product(t.exactly, count, table.columns16, kLanes, {sums, 1, count},
                  {keys + j * p.depth16, p.depth16, kLanes},
                  table_grad + range.first * table.columns16, table.columns16);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sextant::cpu
HWY_AFTER_NAMESPACE();

#endif
