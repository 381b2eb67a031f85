// The gradients of a tile: products of the weights and score gradients of a block of queries with
// rows of q, k, do and tables.
//
// Gradients of tables are products with E, the score gradients summed by table row. A has queries
// for rows,
//
//   E[i, r] = sum over keys j with row(d_ij) = r of e_ij       dq += E A      dA += E^T q
//
// C is the same with weights, and B has keys for rows.
#if defined(SEXTANT_ATTENTION_CPU_BACKWARD_TABLE_GRADS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SEXTANT_ATTENTION_CPU_BACKWARD_TABLE_GRADS_INL_H_
#undef SEXTANT_ATTENTION_CPU_BACKWARD_TABLE_GRADS_INL_H_
#else
#define SEXTANT_ATTENTION_CPU_BACKWARD_TABLE_GRADS_INL_H_
#endif

#include <algorithm>
#include <array>

#include "sextant/attention/cpu/backward/backward.h"
#include "sextant/attention/cpu/tile/multiply-inl.h"
#include "sextant/attention/cpu/tile/pack-inl.h"
#include "sextant/attention/cpu/tile/scatter-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::cpu {
namespace HWY_NAMESPACE {

// The range of things (keys, rounded out to multiples of kLanes, or rows of a table) that each
// strip of a block of queries meets: a staircase for causal keys, a slanted band for rows by
// distance.
struct Band {
  int64_t rows = 0;  // queries
  std::array<KeyRange, kQueryBlock / kStrip> strips = {};

  int64_t strip_count() const { return (rows + kStrip - 1) / kStrip; }
  int64_t strip_rows(int64_t n) const { return std::min(kStrip, rows - n * kStrip); }
  KeyRange strip(int64_t n) const { return strips[static_cast<size_t>(n)]; }
  KeyRange all() const {
    KeyRange range;
    for (int64_t n = 0; n < strip_count(); ++n) range = hull(range, strip(n));
    return range;
  }

  // Calls f(things, queries) for rectangles that cover the band.
  template <class F>
  void each_rectangle(F&& f) const {
    const KeyRange whole = all();
    const auto strips_end = strips.begin() + strip_count();
    if (std::all_of(strips.begin(), strips_end, [&](KeyRange range) { return range == whole; })) {
      if (!empty(whole)) f(whole, KeyRange{0, rows});
      return;
    }
    KeyRange things = {whole.first, whole.first}, queries;
    const auto emit = [&] {
      if (!empty(things) && !empty(queries)) f(things, queries);
    };
    for (int64_t at = whole.first; at < whole.last; at += kLanes) {
      const KeyRange some = {at, std::min(at + kLanes, whole.last)};
      KeyRange seen;
      for (int64_t n = 0; n < strip_count(); ++n)
        if (!empty(intersect(strip(n), some)))
          seen = hull(seen, {n * kStrip, n * kStrip + strip_rows(n)});
      if (!(seen == queries)) {
        emit();
        things.first = at;
        queries = seen;
      }
      things.last = some.last;
    }
    emit();
  }
};

// A tile of scores whose gradients are collected: a block of queries and columns of a unit.
struct Tile {
  const Problem& problem;
  const BatchFrame& block;
  int64_t head;
  int64_t first;      // query of the frame
  int64_t first_key;  // of the frame; column 0
  RotationsSeen rotations;
  Band columns;
  bool exactly = false;  // a hidden operand may be infinite or NaN
  bool by_amx = false;   // q k^T and do v^T come from AMX, and so do the other products of
                         // the tile if its weights and gradients fit into terms

  int64_t rows() const { return columns.rows; }
  // The diagonal of its first query and a column.
  int64_t diagonal(int64_t column) const { return block.diagonal + first_key + column - first; }
};

// c (+)= a b. exactly: by multiply_exactly().
template <Sum kSum, class A>
HWY_INLINE void add_product(bool exactly, int64_t rows, int64_t columns16, int64_t depth, A a,
                            RightRows b, float* c, int64_t c_row) {
  if (!exactly) return multiply<kSum>(rows, columns16 / kLanes, depth, a, b, c, c_row);
  for (int64_t i = 0; i < rows && kSum == Sum::kNew; ++i)
    std::fill_n(c + i * c_row, columns16, 0.0F);
  multiply_exactly(rows, columns16 / kLanes, depth, a, b, c, c_row);
}

// Gradients of queries: to[i] (+)= sum over things of lines(i, thing) * things[thing].
template <Sum kSum>
HWY_NOINLINE void collect_queries(const Band& band, bool exactly, const float* lines, int64_t line,
                                  const float* things, int64_t columns16, float* to,
                                  int64_t to_row) {
  for (int64_t n = 0, next; n < band.strip_count(); n = next) {
    const KeyRange range = band.strip(n);
    // Strips with equal ranges are one product: tiles of six rows do not fit a single strip of
    // eight.
    for (next = n + 1; next < band.strip_count() && band.strip(next) == range;) ++next;
    if (kSum == Sum::kAdded && empty(range)) continue;  // an empty new sum must still write 0
    add_product<kSum>(
        exactly, std::min(next * kStrip, band.rows) - n * kStrip, columns16,
        range.last - range.first, LeftRows{lines + n * kStrip * line + range.first, line},
        RightRows{things + range.first * columns16, columns16}, to + n * kStrip * to_row, to_row);
  }
}

// Gradients of keys, values and tables: to[thing] += sum over queries of lines(i, thing) *
// queries[i].
inline HWY_NOINLINE void collect_things(const Band& band, bool exactly, const float* lines,
                                        int64_t line, Matrix queries, int64_t columns16,
                                        float* to) {
  band.each_rectangle([&](KeyRange things, KeyRange rows) HWY_ATTR {
    add_product<Sum::kAdded>(exactly, things.last - things.first, columns16, rows.last - rows.first,
                             LeftColumns{lines + rows.first * line + things.first, line},
                             RightRows{queries.data + rows.first * queries.stride, queries.stride},
                             to + things.first * columns16, columns16);
  });
}

// E, with table rows counted from the first of `range`; `sums` is memory for it. Where rows rise by
// one from key to key, E is the lines themselves with a row stride of kScoreStride + 1; the zeros
// in their margins are the rows that no key meets.
inline HWY_NOINLINE LeftRows sums_by_row(const Tile& t, const PackedTable& table, KeyRange range,
                                         const float* lines, float* sums) {
  const KeyRange columns = t.columns.all();
  const int64_t last = t.rows() - 1, lowest = t.diagonal(columns.first) - last;
  // Diagonals beyond the last have no rows, and their gradients are 0.
  const int64_t diagonals =
      std::min(columns.last - columns.first + last, t.problem.score.diagonals.count - lowest);
  if (lowest >= 0 && diagonals > 0 && table.map.rises(lowest, diagonals))
    return {lines + columns.first - last + range.first - *table.map.rows(lowest), kScoreStride + 1};
  const int64_t count = range.last - range.first;
  std::fill_n(sums, t.rows() * count, 0.0F);
  for (int64_t n = 0; n < t.columns.strip_count(); ++n) {
    const KeyRange seen = t.columns.strip(n);
    if (empty(seen)) continue;
    scatter_add_by_row(table.map, t.diagonal(seen.first) - n * kStrip, t.columns.strip_rows(n),
                       seen.last - seen.first, lines + n * kStrip * kScoreStride + seen.first,
                       kScoreStride, range.first, sums + n * kStrip * count, count);
  }
  return {sums, count};
}

// A table with queries for rows: sums lines by row into E, then adds E^T x to the table's gradient
// and E T to x's gradient; either may be null. sums: [kQueryBlock][rows of the table].
inline HWY_NOINLINE void collect_table(const Tile& t, const PackedTable& table, const float* lines,
                                       Matrix x, float* sums, float* table_grad, float* x_grad,
                                       int64_t x_grad_row) {
  Band rows = {.rows = t.rows()};  // ranges of table rows
  for (int64_t n = 0; n < t.columns.strip_count(); ++n) {
    const KeyRange columns = t.columns.strip(n);
    if (empty(columns)) continue;
    const int64_t more = t.columns.strip_rows(n) - 1;
    rows.strips[static_cast<size_t>(n)] = table.map.rows_of(
        t.diagonal(columns.first) - n * kStrip - more, columns.last - columns.first + more);
  }
  const KeyRange all = rows.all();
  // From here on, table rows are counted from the first of `all`.
  for (KeyRange& range : rows.strips) range = {range.first - all.first, range.last - all.first};
  const LeftRows by_row = sums_by_row(t, table, all, lines, sums);
  if (x_grad)
    collect_queries<Sum::kAdded>(rows, t.exactly || !table.all_finite(t.head, all), by_row.data,
                                 by_row.row_step, table.row(t.head, all.first), table.columns16,
                                 x_grad, x_grad_row);
  if (table_grad)
    collect_things(rows, t.exactly, by_row.data, by_row.row_step, x, table.columns16,
                   table_grad + all.first * table.columns16);
}

// The same for B, with keys for rows, one panel at a time. keys, key_grads: [unit][depth16].
// across: [kLanes][kQueryBlock].
inline HWY_NOINLINE void collect_key_table(const Tile& t, const float* lines, const float* keys,
                                           float* across, float* sums, float* table_grad,
                                           float* key_grads) {
  const Problem& p = t.problem;
  const PackedTable& table = p.on_key;
  const int64_t rows16 = round_up(t.rows(), kLanes);
  const KeyRange columns = t.columns.all();
  for (int64_t j = columns.first; j < columns.last; j += kLanes) {
    unpack_panel(lines + j, kScoreStride, rows16, across, kQueryBlock);
    const int64_t diagonal = p.score.diagonals.count - 1 - t.diagonal(j);
    const KeyRange range = table.map.rows_of(diagonal - kLanes + 1, rows16 + kLanes - 1);
    const int64_t count = range.last - range.first;
    std::fill_n(sums, kLanes * count, 0.0F);
    scatter_add_by_row(table.map, diagonal, kLanes, rows16, across, kQueryBlock, range.first, sums,
                       count);
    const bool exactly = t.exactly || !table.all_finite(t.head, range);
    add_product<Sum::kAdded>(exactly, kLanes, table.columns16, count, LeftRows{sums, count},
                             {table.row(t.head, range.first), table.columns16},
                             key_grads + j * p.depth16, p.depth16);
    if (table_grad)
      add_product<Sum::kAdded>(t.exactly, count, table.columns16, kLanes, LeftColumns{sums, count},
                               {keys + j * p.depth16, p.depth16},
                               table_grad + range.first * table.columns16, table.columns16);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sextant::cpu
HWY_AFTER_NAMESPACE();

#endif
