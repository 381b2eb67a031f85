// A strip of scores: kStrip queries of one head and some keys of one unit, and the rows of tables
// that it meets.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sextant/attention/cpu/panels.h"
#include "sextant/attention/cpu/visibility.h"

namespace sextant::cpu {

// The columns of `seen` in its unit, rounded out.
inline KeyRange columns_of(KeyRange seen, KeyRange unit) {
  if (empty(seen)) return {};
  return {round_down(seen.first - unit.first, kLanes), round_up(seen.last - unit.first, kLanes)};
}

// A strip and the operands of its scores. Columns are counted from the first key of the unit;
// `columns` is the hull of the keys that the strip sees, rounded out to multiples of kLanes.
struct Strip {
  const Problem& problem;
  const Visibility& visibility;
  const QueryTile& queries;
  const KeyTile& keys;
  int64_t row;   // first query of the strip, in the tile; a multiple of kStrip
  int64_t rows;  // at most kStrip
  KeyRange columns;
  const KeyProducts& key_products;  // k . B of the tile's queries, if there is a B
  // q . A of the tile's queries with all rows of a short A, [queries][A.count16]; or null.
  const float* query_products = nullptr;
  // <R q, R k>, [rotations] of [rows][kScoreStride], if it is computed already; or null.
  const float* const* products = nullptr;
  int64_t product_row = 0;  // the strip's first row in `products`

  int64_t count() const { return columns.last - columns.first; }
  // The diagonal of query `i` of the strip and the first of `columns`.
  int64_t diagonal(int64_t i) const {
    return queries.block->diagonal + keys.keys.first + columns.first - (queries.first + row + i);
  }
  // The columns as keys of the frame.
  KeyRange seen_keys() const {
    return {keys.keys.first + columns.first,
            std::min(keys.keys.first + columns.last, keys.keys.last)};
  }
};

// Memory for scoring a strip.
struct ScoreScratch {
  // The scores of one rotation among several, or terms of products that are computed already.
  ScoreStrip second;
  float* table_products;  // [kStrip][rows of A or C]
};

// The rows of a table that a strip meets.
inline KeyRange rows_met(const Strip& s, const PackedTable& table) {
  return table.map.rows_of(s.diagonal(s.rows - 1), s.count() + s.rows - 1);
}

// The one row of a table that all keys meet which query i of the strip sees, or -1.
inline int64_t only_row_met(const Strip& s, int64_t i, const PackedTable& table) {
  KeyRange seen;
  s.visibility.each_range(s.row + i, s.seen_keys(), kAllRotations,
                          [&](KeyRange range) { seen = hull(seen, range); });
  if (empty(seen)) return -1;
  const int64_t diagonal = s.diagonal(i) + seen.first - s.seen_keys().first;
  return table.map.stays(diagonal, seen.last - seen.first) ? *table.map.rows(diagonal) : -1;
}

// Products x . T of a strip's rows x with rows of a table: data[i * row_step + row - first].
struct TableProducts {
  const float* data = nullptr;
  int64_t row_step = 0, first = 0;
  KeyRange met;  // the rows that the strip meets

  // Products with whole panels of rows: data[strip's rows][rows].
  static TableProducts of_panels(const float* data, KeyRange met) {
    const KeyRange rows = rounded_out(met);
    return {data, rows.last - rows.first, rows.first, met};
  }
  const float* with(int64_t row) const { return data + row - first; }
};

}  // namespace sextant::cpu
