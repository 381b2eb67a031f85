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

HWY_INLINE void copy_lanes(int64_t rows, const float* from, int64_t from_row, float* to,
                           int64_t to_row) {
  for (int64_t i = 0; i < rows; ++i) store(load(from + i * from_row), to + i * to_row);
}

// Products of `rows` rows x with `count` rows of a table, given by their panels: to[rows][count].
// panel: what was kept of the unit before, [rows][kLanes], which is the first panel's if that is
// known; then the last's.
template <class A>
HWY_INLINE void multiply_onward(int64_t rows, int64_t depth, A x, RightPanels table, int64_t count,
                                bool first_known, float* panel, float* to) {
  const int64_t known = first_known ? kLanes : 0;
  if (first_known) copy_lanes(rows, panel, kLanes, to, count);
  multiply<Sum::kNew>(rows, (count - known) / kLanes, depth, x, from_block(table, known / kLanes),
                      to + known, count);
  copy_lanes(rows, to + count - kLanes, count, panel, kLanes);
}

// q . A, from what is known of it if anything is.
HWY_INLINE TableProducts query_products_of(const Strip& s, float* products) {
  const PackedTable& table = s.problem.on_query;
  const QueryProducts& known = s.query_products;
  if (known.whole)
    return {known.whole + s.row * table.count16, table.count16, 0, rows_met(s, table)};
  TableProducts made;
  with_queries(s, s.queries.plain, s.problem.depth16, [&](auto queries) HWY_ATTR {
    if (!known.panel) {
      made = multiply_table(s, table, queries, products);
      return;
    }
    made = TableProducts::of_panels(products, rows_met(s, table));
    int64_t& panel_row = known.panel_row[s.row / kStrip];
    multiply_onward(s.rows, table.columns, queries, panels_from(table, s.queries.head, made.first),
                    made.row_step, panel_row == made.first, known.panel + s.row * kLanes, products);
    panel_row = made.first + made.row_step - kLanes;
  });
  return made;
}

// q . A of some queries of a head, given by their panels, with all rows of A: to[rows][A.count16].
inline HWY_NOINLINE void multiply_queries(const Problem& p, int64_t head, int64_t rows,
                                          const float* panels, float* to) {
  const PackedTable& table = p.on_query;
  const int64_t panel = kLanes * p.depth16, whole = round_down(table.count, kLanes);
  // A row or two more than whole panels: with queries for columns, which fill vectors.
  const int64_t more = table.count - whole <= kThinRows ? table.count - whole : 0;
  const int64_t blocks = more > 0 ? whole / kLanes : table.count16 / kLanes;
  for (int64_t i = 0; i < rows; i += kStrip)
    multiply<Sum::kNew>(
        std::min(kStrip, rows - i), blocks, table.columns,
        LeftColumns{panels + round_down(i, kLanes) * p.depth16 + i % kLanes, kLanes},
        panels_from(table, head, 0), to + i * table.count16, table.count16);
  if (more == 0) return;
  constexpr int64_t kQueries = kThinBlocks * kLanes;
  HWY_ALIGN float across[kThinRows * kQueries];
  for (int64_t i = 0; i < rows; i += kQueries) {
    const int64_t some = std::min(kQueries, rows - i);
    multiply<Sum::kNew>(more, round_up(some, kLanes) / kLanes, table.columns,
                        LeftColumns{table.panel(head, whole), kLanes},
                        RightPanels{panels + i * p.depth16, panel}, across, kQueries);
    for (int64_t n = 0; n < some; ++n)
      for (int64_t row = 0; row < more; ++row)
        to[(i + n) * table.count16 + whole + row] = across[row * kQueries + n];
  }
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
