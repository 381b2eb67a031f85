// The terms of further axes of positions (Plan::axes). Each reads, for a query, a row of values by
// the position of a key, and the positions of sixteen keys are mostly equal or rise by one:
//
//   b      the row is a part of the table by distance, and begins where the query stands
//   A      q . A (or r . A) with all rows of A, once for each query, and from these the product
//          that each position of a key meets
//
// Gradients are summed into rows of the same layout.
#if defined(SEXTANT_ATTENTION_CPU_SCORE_AXES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SEXTANT_ATTENTION_CPU_SCORE_AXES_INL_H_
#undef SEXTANT_ATTENTION_CPU_SCORE_AXES_INL_H_
#else
#define SEXTANT_ATTENTION_CPU_SCORE_AXES_INL_H_
#endif

#include <algorithm>

#include "sextant/attention/cpu/score/strip.h"
#include "sextant/attention/cpu/tile/lanes-inl.h"
#include "sextant/attention/cpu/tile/multiply-inl.h"
#include "sextant/attention/cpu/tile/scatter-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::cpu {
namespace HWY_NAMESPACE {

// The row of q of a strip's first query, and the row of k of its first column.
HWY_INLINE int64_t query_row_of(const Strip& s) {
  return s.queries.block->frame.query_row + s.queries.first + s.row;
}
HWY_INLINE int64_t key_row_of(const Strip& s) {
  return s.queries.block->frame.key_row + s.seen_keys().first;
}

// Calls f(map of key rows, the n-th query's values) for all queries and axes that have a bias; f
// may change the values. values: those of the strip's head.
template <class Values, class F>
HWY_INLINE void each_axis_bias(const Strip& s, Values* values, F&& f) {
  const int64_t b = s.queries.block->frame.batch, first = query_row_of(s);
  for (const PackedAxis& axis : s.problem.axes) {
    if (axis.axis->bias.empty()) continue;
    for (int64_t i = 0; i < s.rows; ++i)
      f(axis.map(b), i, values + axis.at + axis.offset(b, first + i));
  }
}

// The same for products with A, [queries of the strip][axis_columns].
template <class Values, class F>
HWY_INLINE void each_axis_product(const Strip& s, Values* products, F&& f) {
  const int64_t b = s.queries.block->frame.batch;
  for (const PackedAxis& axis : s.problem.axes) {
    if (axis.axis->on_query.empty()) continue;
    for (int64_t i = 0; i < s.rows; ++i)
      f(axis.map(b), i, products + i * s.problem.axis_columns + axis.column);
  }
}

// A function for these that adds values to the lines of scores.
HWY_INLINE auto adds_values(const Strip& s, float* lines) {
  const int64_t key = key_row_of(s), count = s.count();
  float* const first = lines + s.columns.first;
  return [=](const RowMap& map, int64_t i, const float* values)
             HWY_ATTR { add_spread_row(map, key, count, values, first + i * kScoreStride); };
}

inline HWY_NOINLINE void add_axis_bias(const Strip& s, float* lines) {
  each_axis_bias(s, s.problem.axis_bias.head(s.queries.head), adds_values(s, lines));
}

inline HWY_NOINLINE void add_axis_products(const Strip& s, float* lines) {
  each_axis_product(s, s.queries.axis_products + s.row * s.problem.axis_columns,
                    adds_values(s, lines));
}

// Sums a strip's lines into values.
HWY_INLINE auto sums_lines(const Strip& s, const float* lines) {
  const int64_t key = key_row_of(s), count = s.count();
  const float* const first = lines + s.columns.first;
  return [=](const RowMap& map, int64_t i, float* values)
             HWY_ATTR { collect_row(map, key, count, first + i * kScoreStride, 0, values); };
}

// x . A for rows x, all rows of A: products[rows][A.count16]. rows_from(i): the operand of the rows
// from i on.
template <class RowsFrom>
HWY_INLINE void multiply_all_rows(const PackedTable& table, int64_t head, int64_t rows,
                                  RowsFrom&& rows_from, float* products) {
  const RightPanels panels = {table.panel(head, 0), kLanes * table.columns16};
  for (int64_t i = 0; i < rows; i += kStrip)
    multiply<Sum::kNew>(std::min(kStrip, rows - i), table.count16 / kLanes, table.columns,
                        rows_from(i), panels, products + i * table.count16, table.count16);
}

// Calls f(the index of a table row, the index of a position of a key in a row of products), for all
// positions that a query at a row of q may meet.
template <class F>
HWY_INLINE void each_position(const Problem& p, int64_t b, int64_t query, F&& f) {
  for (const PackedAxis& axis : p.axes) {
    const std::span<const int32_t> row_at = axis.axis->on_query;
    if (row_at.empty()) continue;
    const int64_t first = axis.first_distance(b, query);
    const int64_t from = std::max<int64_t>(0, -first);
    const int64_t to = std::min(axis.keys, std::ssize(row_at) - first);
    const int32_t* const rows = row_at.data() + first;
    for (int64_t n = from; n < to; ++n)
      if (rows[n] >= 0) f(rows[n], axis.column + n);
  }
}

// Spreads products with the rows of A to the positions of keys. query: the first row of q.
inline HWY_NOINLINE void spread_products(const Problem& p, int64_t b, int64_t query, int64_t rows,
                                         const float* products, float* to) {
  std::fill_n(to, rows * p.axis_columns, 0.0F);
  for (int64_t i = 0; i < rows; ++i, products += p.axis_on_query.count16, to += p.axis_columns)
    each_position(p, b, query + i,
                  [&](int32_t row, int64_t column) { to[column] = products[row]; });
}

// The transpose: sums by position of keys become sums by row of A.
inline HWY_NOINLINE void gather_products(const Problem& p, int64_t b, int64_t query, int64_t rows,
                                         const float* sums, float* to) {
  std::fill_n(to, rows * p.axis_on_query.count16, 0.0F);
  for (int64_t i = 0; i < rows; ++i, sums += p.axis_columns, to += p.axis_on_query.count16)
    each_position(p, b, query + i, [&](int32_t row, int64_t column) { to[row] += sums[column]; });
}

}  // namespace HWY_NAMESPACE
}  // namespace sextant::cpu
HWY_AFTER_NAMESPACE();

#endif
