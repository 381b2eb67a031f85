// Products with tables of vectors: q . A of a strip, or of all queries of an item at once, and k .
// B of a tile of queries with a unit of keys.
#if defined(SEXTANT_ATTENTION_CPU_SCORE_TABLES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SEXTANT_ATTENTION_CPU_SCORE_TABLES_INL_H_
#undef SEXTANT_ATTENTION_CPU_SCORE_TABLES_INL_H_
#else
#define SEXTANT_ATTENTION_CPU_SCORE_TABLES_INL_H_
#endif

#include <algorithm>

#include "sextant/attention/cpu/score/strip.h"
#include "sextant/attention/cpu/tile/multiply-inl.h"
#include "sextant/attention/cpu/tile/pack-inl.h"
#include "sextant/attention/cpu/tile/scatter-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::cpu {
namespace HWY_NAMESPACE {

// Calls f with the strip's queries, which lie in panels or in rows. columns: of either.
template <class F>
HWY_INLINE void with_queries(const Strip& s, const float* queries, int64_t columns, F&& f) {
  const int64_t row = s.row;
  if (s.queries.in_rows)
    f(LeftRows{queries + row * columns, columns});
  else
    f(LeftColumns{queries + round_down(row, kLanes) * columns + row % kLanes, kLanes});
}

// The panels of a table from a row on, a multiple of kLanes.
HWY_INLINE RightPanels panels_from(const PackedTable& table, int64_t head, int64_t row) {
  return {table.panel(head, row), kLanes * table.columns16};
}

// x . T for rows x, given by their panels. products: [s.rows][rows of T].
template <class A>
HWY_INLINE TableProducts multiply_table(const Strip& s, const PackedTable& table, A x,
                                        float* products) {
  const auto made = TableProducts::of_panels(products, rows_met(s, table));
  multiply<Sum::kNew>(s.rows, made.row_step / kLanes, table.columns, x,
                      panels_from(table, s.queries.head, made.first), products, made.row_step);
  return made;
}

// q . A of a strip: as multiplied for the whole item, or made here in `products`.
HWY_INLINE TableProducts query_products_of(const Strip& s, float* products) {
  const PackedTable& table = s.problem.on_query;
  if (const float* all = s.query_products)
    return {all + s.row * table.count16, table.count16, 0, rows_met(s, table)};
  TableProducts made;
  with_queries(s, s.queries.plain, s.problem.depth16,
               [&](auto queries) HWY_ATTR { made = multiply_table(s, table, queries, products); });
  return made;
}

// q . A of some queries of a head, given by their panels, with all rows of A: to[rows][A.count16].
inline HWY_NOINLINE void multiply_queries(const Problem& p, int64_t head, int64_t rows,
                                          const float* panels, float* to) {
  const PackedTable& table = p.on_query;
  for (int64_t i = 0; i < rows; i += kStrip)
    multiply<Sum::kNew>(
        std::min(kStrip, rows - i), table.count16 / kLanes, table.columns,
        LeftColumns{panels + round_down(i, kLanes) * p.depth16 + i % kLanes, kLanes},
        panels_from(table, head, 0), to + i * table.count16, table.count16);
}

// k . B of a tile of queries with the keys of `columns`. Tiles of B have keys for rows, so a panel
// of keys is multiplied and transposed, each product to its query; but far keys, all of whose
// queries meet one row, have a number each.
inline HWY_NOINLINE void multiply_keys(const Problem& p, const QueryTile& queries,
                                       const KeyTile& keys, KeyRange columns, float* products,
                                       const KeyProducts& to) {
  const PackedTable& table = p.on_key;
  const int64_t rows16 = round_up(queries.rows, kLanes), panel = kLanes * p.depth16;
  // Of a key and the first query, counted as B's map counts.
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
