// Products with tables of vectors: q . A for a strip or for all queries of an item, and k . B for a
// tile of queries and a unit of keys.
#if defined(SEXTANT_ATTENTION_CPU_SCORE_TABLES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SEXTANT_ATTENTION_CPU_SCORE_TABLES_INL_H_
#undef SEXTANT_ATTENTION_CPU_SCORE_TABLES_INL_H_
#else
#define SEXTANT_ATTENTION_CPU_SCORE_TABLES_INL_H_
#endif

#include <algorithm>

#include "sextant/attention/cpu/score/axes-inl.h"
#include "sextant/attention/cpu/score/strip.h"
#include "sextant/attention/cpu/tile/multiply-inl.h"
#include "sextant/attention/cpu/tile/pack-inl.h"
#include "sextant/attention/cpu/tile/scatter-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::cpu {
namespace HWY_NAMESPACE {

// Calls f with the strip's queries as a left operand; they are panels or rows of `columns` columns.
template <class F>
HWY_INLINE void with_queries(const Strip& s, const float* queries, int64_t columns, F&& f) {
  const int64_t row = s.row;
  if (s.queries.in_rows)
    f(LeftRows{queries + row * columns, columns});
  else
    f(LeftColumns{queries + round_down(row, kLanes) * columns + row % kLanes, kLanes});
}

// The panels of a table from `row` on, a multiple of kLanes.
HWY_INLINE RightPanels panels_from(const PackedTable& table, int64_t head, int64_t row) {
  return {table.panel(head, row), kLanes * table.columns16};
}

// Multiplies rows x by the panels of a table that the strip meets. products: [s.rows][rows of T].
template <class A>
HWY_INLINE TableProducts multiply_table(const Strip& s, const PackedTable& table, A x,
                                        float* products) {
  const auto made = TableProducts::of_panels(products, rows_met(s, table));
  multiply<Sum::kNew>(s.rows, made.row_step / kLanes, table.columns, x,
                      panels_from(table, s.queries.head, made.first), products, made.row_step);
  return made;
}

// q . A of a strip: as computed for the whole item, or computed here into `products`.
HWY_INLINE TableProducts query_products_of(const Strip& s, float* products) {
  const PackedTable& table = s.problem.on_query;
  if (const float* all = s.query_products)
    return {all + s.row * table.count16, table.count16, 0, rows_met(s, table)};
  TableProducts made;
  with_queries(s, s.queries.of_tables, s.problem.table_columns16(),
               [&](auto queries) HWY_ATTR { made = multiply_table(s, table, queries, products); });
  return made;
}

// q . A (or r . A) for queries of a head, in panels, and all rows of A: to[rows][A.count16].
inline HWY_NOINLINE void multiply_queries(const Problem& p, const PackedTable& table, int64_t head,
                                          int64_t rows, const float* panels, float* to) {
  multiply_all_rows(
      table, head, rows,
      [&](int64_t i) {
        return LeftColumns{panels + round_down(i, kLanes) * p.table_columns16() + i % kLanes,
                           kLanes};
      },
      to);
}

// k . B for a tile of queries and the keys of `columns`. Tiles of B have keys for rows, so the
// products of a panel of keys are transposed to queries. Keys beyond the clip distance, all of
// whose queries meet one row, have one product each.
inline HWY_NOINLINE void multiply_keys(const Problem& p, const QueryTile& queries,
                                       const KeyTile& keys, KeyRange columns, float* products,
                                       const KeyProducts& to) {
  const PackedTable& table = p.on_key;
  const int64_t rows16 = round_up(queries.rows, kLanes), panel = kLanes * p.depth16;
  // The diagonal of a key and the first query, as B's map counts.
  const auto diagonal = [&](int64_t j) {
    return p.score.diagonals.count - 1 - queries.block->diagonal - (keys.keys.first + j) +
           queries.first;
  };
  const auto met = [&](int64_t j) {
    return table.map.rows_of(diagonal(j) - kLanes + 1, rows16 + kLanes - 1);
  };
  KeyRange rows = met(columns.first), next_rows = rows;
  for (int64_t j = columns.first, next; j < columns.last; j = next, rows = next_rows) {
    next = j;
    do {
      next += kLanes;
      if (next < columns.last) next_rows = met(next);
    } while (next < columns.last && rows.last - rows.first == 1 && next_rows == rows);
    if (rows.last - rows.first == 1) {
      multiply<Sum::kNew>(1, (next - j) / kLanes, table.columns,
                          LeftColumns{table.panel(queries.head, round_down(rows.first, kLanes)) +
                                          rows.first % kLanes,
                                      kLanes},
                          RightPanels{keys.plain + j * p.depth16, panel}, to.far + j, 0);
      for (int64_t at = j; at < next; at += kLanes) to.panels[at / kLanes] = {to.far + at, 0, 0};
      continue;
    }
    const KeyRange range = rounded_out(rows);
    const int64_t count = range.last - range.first;
    multiply<Sum::kNew>(kLanes, count / kLanes, table.columns,
                        LeftColumns{keys.plain + j * p.depth16, kLanes},
                        panels_from(table, queries.head, range.first), products, count);
    for (int64_t i = 0; i < rows16; i += kLanes) {
      const int64_t at = diagonal(j) + i;
      float* const lines = to.near + i * kScoreStride + j;
      if (table.map.rises(at - kLanes + 1, 2 * kLanes - 1)) {
        unpack_panel(products + *table.map.rows(at) - range.first, count - 1, kLanes, lines,
                     kScoreStride);
      } else {
        gather_by_row(table.map, at, kLanes, kLanes, products, count, range.first, to.across,
                      kLanes);
        unpack_panel(to.across, kLanes, kLanes, lines, kScoreStride);
      }
    }
    to.panels[j / kLanes] = {to.near + j, kScoreStride, 0};
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sextant::cpu
HWY_AFTER_NAMESPACE();

#endif
