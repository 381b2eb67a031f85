// The scores of a strip: kStrip queries of one head and some keys of one unit.
//
//   product   <turn q, turn k> + q . A + k . B         one for each way of turning
//   score     w * product (or its modulus) + b + beta  the scale is in q and B already
//
// Every term is added to the whole strip while it lies in the L1 cache; which terms there are is
// asked once for each strip. Keys that a query does not see get -infinity last, by overwriting, so
// that nothing that stands in them, NaN included, reaches a sum.
#if defined(SEXTANT_ATTENTION_CPU_SCORES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SEXTANT_ATTENTION_CPU_SCORES_INL_H_
#undef SEXTANT_ATTENTION_CPU_SCORES_INL_H_
#else
#define SEXTANT_ATTENTION_CPU_SCORES_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <limits>

#include "sextant/attention/cpu/by_distance-inl.h"
#include "sextant/attention/cpu/lanes-inl.h"
#include "sextant/attention/cpu/multiply-inl.h"
#include "sextant/attention/cpu/operands.h"
#include "sextant/attention/cpu/pack-inl.h"
#include "sextant/attention/cpu/sight.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::cpu {
namespace HWY_NAMESPACE {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Keys that are seen as columns of their unit, rounded out.
HWY_INLINE Run columns_of(Run seen, Run unit) {
  if (empty(seen)) return {};
  return {round_down(seen.first - unit.first, kLanes), round_up(seen.last - unit.first, kLanes)};
}

// What a strip is, and what its scores are made of. Columns are counted from the first key of the
// unit; `columns` is what the strip sees, rounded out to multiples of kLanes.
struct Strip {
  const Problem& problem;
  const Sight& sight;
  const QueryTile& queries;
  const KeyTile& keys;
  int64_t row;   // first query of the strip, in the tile; a multiple of kStrip
  int64_t rows;  // at most kStrip
  Run columns;
  const KeyProducts& key_products;  // of the tile's queries, if there is a B
  // q . A of the tile's queries with all rows of A, [queries][A.count16]; or null.
  const float* query_products;
  // <turn q, turn k> of the strip where it is known already, [ways] of [rows][kScoreRow]; or null.
  const float* const* products = nullptr;
  int64_t product_row = 0;  // the strip's first

  int64_t count() const { return columns.last - columns.first; }
  // Of query `i` of the strip and the first of `columns`.
  int64_t diagonal(int64_t i) const {
    return queries.block->diagonal + keys.keys.first + columns.first - (queries.first + row + i);
  }
  // Keys of the frame that the columns are.
  Run seen_keys() const {
    return {keys.keys.first + columns.first,
            std::min(keys.keys.first + columns.last, keys.keys.last)};
  }
};

// Memory for scoring a strip.
struct ScoreScratch {
  ScoreStrip second;      // for the scores of one way among several
  float* table_products;  // [kStrip][rows of A or C]
};

HWY_INLINE Left query_rows(const Strip& s, const float* panels) {
  const int64_t row = s.row;
  return {panels + round_down(row, kLanes) * s.problem.depth16 + row % kLanes, 1, kLanes};
}

HWY_INLINE void key_product(const Strip& s, const float* queries, const float* keys, float* to) {
  const int64_t panel = kLanes * s.problem.depth16;
  multiply<Sum::kNew>(s.rows, s.count() / kLanes, s.problem.depth, query_rows(s, queries),
                      {keys + s.columns.first / kLanes * panel, kLanes, panel},
                      to + s.columns.first, kScoreRow);
}

// from: may be `to`.
HWY_INLINE void copy_product(const Strip& s, const float* from, float* to) {
  if (from == to) return;
  for (int64_t i = 0; i < s.rows; ++i)
    std::copy(from + i * kScoreRow + s.columns.first, from + i * kScoreRow + s.columns.last,
              to + i * kScoreRow + s.columns.first);
}

// to += x . T[row(diagonal)] for rows x, given by their panels. products: [s.rows][rows of T].
HWY_INLINE void add_table_product(const Strip& s, const Vectors& table, Left x, float* products,
                                  float* to) {
  const Run range = table.map.range(s.diagonal(s.rows - 1), s.count() + s.rows - 1);
  const int64_t count = range.last - range.first;
  multiply<Sum::kNew>(s.rows, count / kLanes, table.columns, x,
                      {table.panel(s.queries.head, range.first), kLanes, kLanes * table.columns16},
                      products, count);
  spread(table.map, s.diagonal(0), s.rows, s.count(), products, count, range.first,
         to + s.columns.first, kScoreRow);
}

// The same from the products with all rows of T: products[s.rows][T.count16].
HWY_INLINE void add_known_product(const Strip& s, const Vectors& table, const float* products,
                                  float* to) {
  spread(table.map, s.diagonal(0), s.rows, s.count(), products, table.count16, 0,
         to + s.columns.first, kScoreRow);
}

// to += k . B
HWY_INLINE void add_key_products(const Strip& s, float* to) {
  for (int64_t j = s.columns.first; j < s.columns.last; j += kLanes) {
    const KeyProducts::Panel& panel = s.key_products.panels[j / kLanes];
    for (int64_t i = 0; i < s.rows; ++i) {
      float* x = to + i * kScoreRow + j;
      store(add(load(x), load(panel.data + (s.row + i) * panel.row_step)), x);
    }
  }
}

// sqrt(a * a + b * b) without overflow in between.
HWY_INLINE V modulus(V a, V b) {
  const F32 d;
  const V x = hn::Abs(a), y = hn::Abs(b);
  const V high = hn::Max(x, y);
  const V ratio = hn::Div(hn::Min(x, y), high);
  const V size = hn::Mul(high, hn::Sqrt(hn::MulAdd(ratio, ratio, hn::Set(d, 1.0F))));
  return hn::IfThenElse(hn::Eq(high, hn::Zero(d)), hn::Add(x, y), size);
}

HWY_INLINE Lanes modulus(const Lanes& a, const Lanes& b) {
  Lanes x;
  for (int p = 0; p < kParts; ++p) x.part[p] = modulus(a.part[p], b.part[p]);
  return x;
}

// A query's row of `matrix` ([batch, heads, queries, diagonals]) beside the strip's columns: column j meets
// element j of `data`, for the columns that have a diagonal.
template <class T>
struct DiagonalsOfQuery {
  T* data;
  Run columns;
};
template <class T>
HWY_INLINE DiagonalsOfQuery<T> diagonals_of_query(const Strip& s, const View<T>& matrix,
                                                  int64_t i) {
  const Frame& frame = s.queries.block->frame;
  const int64_t first = s.diagonal(i) - s.columns.first;
  T* row = matrix.at(frame.batch, s.queries.head, frame.query_row + s.queries.first + s.row + i);
  return {row + first * matrix.column_stride, meet(s.columns, {-first, matrix.columns - first})};
}

HWY_INLINE void add_query_bias(const Strip& s, float* to) {
  const View<const float>& bias = s.problem.score.query_bias;
  for (int64_t i = 0; i < s.rows; ++i) {
    const auto [from, columns] = diagonals_of_query(s, bias, i);
    float* line = to + i * kScoreRow;
    int64_t j = columns.first;
    for (; bias.column_stride == 1 && j + kLanes <= columns.last; j += kLanes)
      store(add(load(line + j), load(from + j)), line + j);
    for (; j < columns.last; ++j) line[j] += from[j * bias.column_stride];
  }
}

// From products to scores.
HWY_INLINE void finish_scores(const Strip& s, const ScoreStrip& to) {
  const Problem& p = s.problem;
  const Lanes sign = set(std::copysign(1.0F, p.scale));  // the modulus must not lose the scale's
  const float* weight = p.weight ? p.weight.head(s.queries.head) : nullptr;
  const float* bias = p.bias ? p.bias.head(s.queries.head) : nullptr;
  if (!weight && !bias && !to.imaginary) return;
  for (int64_t i = 0; i < s.rows; ++i) {
    const int64_t at = i * kScoreRow, diagonal = s.diagonal(i) - s.columns.first;
    for (int64_t j = s.columns.first; j < s.columns.last; j += kLanes) {
      Lanes x = load(to.real + at + j);
      if (to.imaginary) x = mul(sign, modulus(x, load(to.imaginary + at + j)));
      if (weight) x = mul(load(weight + diagonal + j), x);
      if (bias) x = add(load(bias + diagonal + j), x);
      store(x, to.scores + at + j);
    }
  }
}

// All scores of a strip as if every key were seen in one way.
HWY_INLINE void score_way(const Strip& s, size_t way, float* table_products, const ScoreStrip& to) {
  const Problem& p = s.problem;
  if (s.products)
    copy_product(s, s.products[way] + s.product_row * kScoreRow, to.real);
  else
    key_product(s, s.queries.turned[way], s.keys.turned[way], to.real);
  if (to.imaginary) key_product(s, s.queries.imaginary[way], s.keys.turned[way], to.imaginary);
  if (p.on_query && s.query_products)
    add_known_product(s, p.on_query, s.query_products + s.row * p.on_query.count16, to.real);
  else if (p.on_query)
    add_table_product(s, p.on_query, query_rows(s, s.queries.plain), table_products, to.real);
  if (p.on_key) add_key_products(s, to.real);
  finish_scores(s, to);
  if (p.score.query_bias) add_query_bias(s, to.scores);
}

// Overwrites what the dense mask hides.
HWY_INLINE void fill_masked(const Strip& s, float value, float* lines) {
  const View<const uint8_t>& mask = s.problem.score.mask;
  if (!mask) return;
  const Frame& frame = s.queries.block->frame;
  const Run seen = s.seen_keys();
  for (int64_t i = 0; i < s.rows; ++i) {
    const uint8_t* shown =
        mask.at(frame.batch, s.queries.head, frame.query_row + s.queries.first + s.row + i) +
        (frame.key_row + seen.first) * mask.column_stride;
    float* line = lines + i * kScoreRow + s.columns.first;
    for (int64_t j = 0; j < seen.last - seen.first; ++j)
      line[j] = shown[j * mask.column_stride] != 0 ? line[j] : value;
  }
}

// Overwrites what the strip's queries do not see, whatever the reason.
HWY_INLINE void fill_hidden(const Strip& s, float value, float* lines) {
  const Run seen = s.seen_keys();
  const bool whole = s.count() == seen.last - seen.first && s.sight.sees_all(s.row / kStrip, seen);
  for (int64_t i = 0; i < s.rows && !whole; ++i) {
    float* line = lines + i * kScoreRow + s.columns.first;
    s.sight.fill_unseen(s.row + i, seen, value, line);
    std::fill(line + (seen.last - seen.first), line + s.count(), value);
  }
  fill_masked(s, value, lines);
}

// Takes over from the scores of one way those keys that are seen in that way.
HWY_INLINE void merge_way(const Strip& s, size_t way, const float* from, float* to) {
  for (int64_t i = 0; i < s.rows; ++i)
    s.sight.each_run(s.row + i, s.seen_keys(), {way, false}, [&](Run run) {
      const int64_t at = i * kScoreRow - s.keys.keys.first;
      std::copy(from + at + run.first, from + at + run.last, to + at + run.first);
    });
}

inline HWY_NOINLINE void score_strip(const Strip& s, const ScoreScratch& scratch,
                                     const ScoreStrip& to) {
  const WaysSeen seen = s.sight.ways_seen(s.row / kStrip, s.row / kStrip + 1, s.seen_keys());
  if (!seen.several) {
    score_way(s, seen.way, scratch.table_products, to);
  } else {
    for (size_t way = 0; way < s.problem.ways.list.size(); ++way) {
      Strip part = s;
      part.columns =
          columns_of(s.sight.band_in(s.row / kStrip, s.seen_keys(), {way, false}), s.keys.keys);
      if (empty(part.columns)) continue;
      score_way(part, way, scratch.table_products, scratch.second);
      merge_way(part, way, scratch.second.scores, to.scores);
      if (to.real != to.scores) merge_way(part, way, scratch.second.real, to.real);
      if (to.imaginary) merge_way(part, way, scratch.second.imaginary, to.imaginary);
    }
  }
  fill_hidden(s, -kInfinity, to.scores);
}

// q . A of some queries of a head, given by their panels, with all rows of A: to[rows][A.count16].
inline HWY_NOINLINE void multiply_queries(const Problem& p, int64_t head, int64_t rows,
                                          const float* panels, float* to) {
  const Vectors& table = p.on_query;
  for (int64_t i = 0; i < rows; i += kLanes)
    multiply<Sum::kNew>(std::min(kLanes, rows - i), table.count16 / kLanes, table.columns,
                        {panels + i * p.depth16, 1, kLanes},
                        {table.panel(head, 0), kLanes, kLanes * table.columns16},
                        to + i * table.count16, table.count16);
}

// k . B of a tile of queries with the keys of `columns`. Tiles of B have keys for rows, so a panel of keys
// is multiplied, spread over the queries, and transposed; but far keys, all of whose queries meet one row,
// have a number each.
inline HWY_NOINLINE void multiply_keys(const Problem& p, const QueryTile& queries,
                                       const KeyTile& keys, Run columns, float* products,
                                       const KeyProducts& to) {
  const Vectors& table = p.on_key;
  const int64_t rows16 = round_up(queries.rows, kLanes), panel = kLanes * p.depth16;
  // Of a key and the first query, counted as B's map counts.
  const auto diagonal = [&](int64_t j) {
    return p.score.diagonals.count - 1 - queries.block->diagonal - (keys.keys.first + j) +
           queries.first;
  };
  const auto met = [&](int64_t j) {
    return table.map.rows_of(diagonal(j) - kLanes + 1, rows16 + kLanes - 1);
  };
  for (int64_t j = columns.first, next; j < columns.last; j = next) {
    const Run rows = met(j);
    next = j + kLanes;
    if (rows.last - rows.first == 1) {
      while (next < columns.last && met(next) == rows) next += kLanes;
      multiply<Sum::kNew>(1, (next - j) / kLanes, table.columns,
                          {table.row(queries.head, rows.first), 0, 1},
                          {keys.plain + j * p.depth16, kLanes, panel}, to.far + j, 0);
      for (int64_t at = j; at < next; at += kLanes) to.panels[at / kLanes] = {to.far + at, 0};
      continue;
    }
    const Run range = {round_down(rows.first, kLanes), round_up(rows.last, kLanes)};
    const int64_t count = range.last - range.first;
    multiply<Sum::kNew>(kLanes, count / kLanes, table.columns,
                        {keys.plain + j * p.depth16, 1, kLanes},
                        {table.panel(queries.head, range.first), kLanes, kLanes * table.columns16},
                        products, count);
    std::fill_n(to.across, kLanes * rows16, 0.0F);
    spread(table.map, diagonal(j), kLanes, rows16, products, count, range.first, to.across, rows16);
    for (int64_t i = 0; i < rows16; i += kLanes)
      unpack_panel(to.across + i, rows16, kLanes, to.near + i * kScoreRow + j, kScoreRow);
    to.panels[j / kLanes] = {to.near + j, kScoreRow};
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sextant::cpu
HWY_AFTER_NAMESPACE();

#endif
