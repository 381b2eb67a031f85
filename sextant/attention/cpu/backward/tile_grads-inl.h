// The gradients of a tile: of the scores of its strips and their terms, and products of weights and
// score gradients with rows of q, k, do and tables.
//
// Through softcap, weight and modulus, s = tau(w |x|) + b + beta, with the ds of softmax
// (tile/softmax_grad-inl.h):
//
//   db = dbeta = ds      dw = ds tau' |x|      dx = ds tau' w x / |x|      tau' = 1 - tanh^2
//
// Gradients of tables are products with E, the score gradients summed by table row. A has queries
// for rows,
//
//   E[i, r] = sum over keys j with row(d_ij) = r of e_ij       dq += E A      dA += E^T q
//
// C is the same with weights, and B has keys for rows.
#if defined(SEXTANT_ATTENTION_CPU_BACKWARD_TILE_GRADS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SEXTANT_ATTENTION_CPU_BACKWARD_TILE_GRADS_INL_H_
#undef SEXTANT_ATTENTION_CPU_BACKWARD_TILE_GRADS_INL_H_
#else
#define SEXTANT_ATTENTION_CPU_BACKWARD_TILE_GRADS_INL_H_
#endif

#include <algorithm>
#include <array>
#include <cmath>

#include "sextant/attention/cpu/backward/backward.h"
#include "sextant/attention/cpu/score/dropout-inl.h"
#include "sextant/attention/cpu/score/scores-inl.h"
#include "sextant/attention/cpu/tile/multiply-inl.h"
#include "sextant/attention/cpu/tile/pack-inl.h"
#include "sextant/attention/cpu/tile/scatter-inl.h"
#include "sextant/attention/cpu/tile/softmax_grad-inl.h"

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

// Adds a strip's rows to sums by diagonal; to[0] is diagonal 0.
inline HWY_NOINLINE void add_diagonals(const Strip& s, const float* lines, float* to) {
  for (int64_t i = 0; i < s.rows; ++i) {
    const float* line = lines + i * kScoreStride;
    float* at = to + s.diagonal(i) - s.columns.first;
    for (int64_t j = s.columns.first; j < s.columns.last; j += kLanes)
      store(add(load(at + j), load(line + j)), at + j);
  }
}

// Writes a strip's rows as rows of a gradient by query and diagonal. No other strip writes the same
// elements.
inline HWY_NOINLINE void write_diagonals(const Strip& s, const float* lines,
                                         const HostView<float>& to) {
  for (int64_t i = 0; i < s.rows; ++i) {
    const auto [row, columns] = diagonals_of_query(s, to, i);
    for (int64_t j = columns.first; j < columns.last; ++j)
      row[j * to.column_stride] = lines[i * kScoreStride + j];
  }
}

// Adds a strip's rows to the gradients of its keys' biases.
inline HWY_NOINLINE void add_to_key_bias(const Strip& s, const float* lines,
                                         const HostView<float>& to) {
  const KeyRange seen = s.seen_keys();
  const Frame& frame = s.queries.block->frame;
  for (int64_t i = 0; i < s.rows; ++i) {
    const float* line = lines + i * kScoreStride + s.columns.first;
    float* row = to.at(frame.batch, s.queries.head, frame.key_row + seen.first);
    for (int64_t j = 0; j < seen.last - seen.first; ++j, row += to.row_stride) *row += line[j];
  }
}

// x / |x|, and 0 for 0.
HWY_INLINE Lanes direction(const Lanes& x, const Lanes& size) {
  Lanes y;
  for (int p = 0; p < kVectors; ++p) {
    const V zero = hn::Zero(F32());
    y.part[p] = hn::IfThenZeroElse(hn::Eq(size.part[p], zero), hn::Div(x.part[p], size.part[p]));
  }
  return y;
}

// Overwrites gradients of scores with gradients of products; products times gradients of scores go
// to `weighted`.
HWY_INLINE void differentiate_product(const Strip& s, const GradStrip& g, float* weighted) {
  const Problem& p = s.problem;
  const Lanes sign = set(std::copysign(1.0F, p.scale));
  const float* weight = p.weight ? p.weight.head(s.queries.head) : nullptr;
  for (int64_t i = 0; i < s.rows; ++i) {
    const int64_t at = i * kScoreStride, diagonal = s.diagonal(i) - s.columns.first;
    for (int64_t j = s.columns.first; j < s.columns.last; j += kLanes) {
      Lanes grad = load(g.grads + at + j), x = load(g.real + at + j), y = set(0), size = x;
      if (g.imaginary) {
        y = load(g.imaginary + at + j);
        size = modulus(x, y);
      }
      const Lanes product = g.imaginary ? mul(sign, size) : size;
      const Lanes factor = weight ? load(weight + diagonal + j) : set(1);
      if (p.score.softcap > 0) {
        const Lanes t = tanh_of(mul(factor, product), p);
        grad = mul(grad, mul(sub(set(1), t), add(set(1), t)));
      }
      if (weight) {
        store(mul(grad, product), weighted + at + j);
        grad = mul(grad, factor);
      }
      if (g.imaginary) {
        grad = mul(grad, sign);
        store(mul(grad, direction(y, size)), g.imaginary_grads + at + j);
        grad = mul(grad, direction(x, size));
      }
      store(grad, g.grads + at + j);
    }
  }
}

// g.grads holds dp first, and the gradients of scores after.
inline HWY_NOINLINE void differentiate_scores(const Strip& s, const GradStrip& g,
                                              const TableSums& sums, const HostGrad<float>& grad) {
  const Problem& p = s.problem;
  const int64_t h = s.queries.head - sums.first_head;
  if (g.dropped)
    differentiate_dropout(s.rows, s.columns, static_cast<float>(p.score.dropout.kept_factor()), g);
  else
    differentiate_softmax(s.rows, s.columns, g);
  fill_hidden(s, 0, g.weights);
  fill_hidden(s, 0, g.grads);
  if (sums.bias)
    add_diagonals(s, g.grads, sums.bias + p.bias.head_index(h) * p.bias.stride + RowMap::kMargin);
  if (sums.axis_bias)
    each_axis_bias(s, sums.axis_bias + p.axis_bias.head_index(h) * p.axis_bias.stride,
                   sums_lines(s, g.grads));
  if (grad.query_bias) write_diagonals(s, g.grads, grad.query_bias);
  if (grad.key_bias) add_to_key_bias(s, g.grads, grad.key_bias);
}

// g.grads holds the gradients of scores first, and those of products after.
inline HWY_NOINLINE void differentiate_products(const Strip& s, const GradStrip& g, float* weighted,
                                                const TableSums& sums) {
  const Problem& p = s.problem;
  if (!has_shape(p)) return;
  const int64_t h = s.queries.head - sums.first_head;
  differentiate_product(s, g, weighted);
  fill_hidden(s, 0, g.grads);
  if (g.imaginary) fill_hidden(s, 0, g.imaginary_grads);
  if (!sums.weight) return;
  fill_hidden(s, 0, weighted);
  add_diagonals(s, weighted,
                sums.weight + p.weight.head_index(h) * p.weight.stride + RowMap::kMargin);
}

}  // namespace HWY_NAMESPACE
}  // namespace sextant::cpu
HWY_AFTER_NAMESPACE();

#endif
