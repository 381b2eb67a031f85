// The scores of a strip: kStrip queries of one head and some keys of one unit.
//
//   product   <turn q, turn k> + q . A + k . B         one for each way of turning
//   score     w * product (or its modulus) + b + beta  the scale is in q and B already
//
// Products get their other terms as they are stored (addends.h), and so do scores their biases b
// and beta where there is no weight or modulus between the two; which terms there are is asked once
// for each strip. Forward, the one number of q . A that all keys of a query may have in common is
// not added to each (LeftOut). Keys that a query does not see get -infinity last, by overwriting,
// so that nothing that stands in them, NaN included, reaches a sum.
#if defined(SEXTANT_ATTENTION_CPU_SCORE_SCORES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SEXTANT_ATTENTION_CPU_SCORE_SCORES_INL_H_
#undef SEXTANT_ATTENTION_CPU_SCORE_SCORES_INL_H_
#else
#define SEXTANT_ATTENTION_CPU_SCORE_SCORES_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <limits>

#include "sextant/attention/cpu/panels.h"
#include "sextant/attention/cpu/tile/lanes-inl.h"
#include "sextant/attention/cpu/tile/multiply-inl.h"
#include "sextant/attention/cpu/tile/pack-inl.h"
#include "sextant/attention/cpu/tile/scatter-inl.h"
#include "sextant/attention/cpu/visibility.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::cpu {
namespace HWY_NAMESPACE {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Keys that are seen as columns of their unit, rounded out.
HWY_INLINE KeyRange columns_of(KeyRange seen, KeyRange unit) {
  if (empty(seen)) return {};
  return {round_down(seen.first - unit.first, kLanes), round_up(seen.last - unit.first, kLanes)};
}

// What a strip is, and what its scores are made of. Columns are counted from the first key of the
// unit; `columns` is what the strip sees, rounded out to multiples of kLanes.
struct Strip {
  const Problem& problem;
  const Visibility& visibility;
  const QueryTile& queries;
  const KeyTile& keys;
  int64_t row;   // first query of the strip, in the tile; a multiple of kStrip
  int64_t rows;  // at most kStrip
  KeyRange columns;
  const KeyProducts& key_products;  // of the tile's queries, if there is a B
  QueryProducts query_products;
  // <turn q, turn k> of the strip where it is known already, [ways] of [rows][kScoreStride]; or
  // null.
  const float* const* products = nullptr;
  int64_t product_row = 0;  // the strip's first

  int64_t count() const { return columns.last - columns.first; }
  // Of query `i` of the strip and the first of `columns`.
  int64_t diagonal(int64_t i) const {
    return queries.block->diagonal + keys.keys.first + columns.first - (queries.first + row + i);
  }
  // Keys of the frame that the columns are.
  KeyRange seen_keys() const {
    return {keys.keys.first + columns.first,
            std::min(keys.keys.first + columns.last, keys.keys.last)};
  }
};

// Memory for scoring a strip.
struct ScoreScratch {
  // For the scores of one way among several; or for terms of products that lie in their place
  // already.
  ScoreStrip second;
  float* table_products;  // [kStrip][rows of A or C]
};

// The rows of a table that a strip meets.
HWY_INLINE KeyRange rows_met(const Strip& s, const PackedTable& table) {
  return table.map.rows_of(s.diagonal(s.rows - 1), s.count() + s.rows - 1);
}

// The row of a table that all keys of the strip meet which query i sees, or -1.
HWY_INLINE int64_t only_row_met(const Strip& s, int64_t i, const PackedTable& table) {
  KeyRange seen;
  s.visibility.each_range(s.row + i, s.seen_keys(), kAllRotations,
                          [&](KeyRange range) { seen = hull(seen, range); });
  if (empty(seen)) return -1;
  const int64_t diagonal = s.diagonal(i) + seen.first - s.seen_keys().first;
  return table.map.stays(diagonal, seen.last - seen.first) ? *table.map.rows(diagonal) : -1;
}

// x . T of a strip's rows x with some rows of the table: data[i * row_step + row - first].
struct TableProducts {
  const float* data = nullptr;
  int64_t row_step = 0, first = 0;
  KeyRange met;  // the rows that the strip meets

  // With whole panels of rows: data[strip's rows][panels].
  static TableProducts of_panels(const float* data, KeyRange met) {
    const KeyRange rows = rounded_out(met);
    return {data, rows.last - rows.first, rows.first, met};
  }
  const float* with(int64_t row) const { return data + row - first; }
};

// What is left out of the scores of a strip's queries, because a query's keys have it in common:
// softmax takes no notice of it, and add() gives it to the greatest score. What a query sees
// decides that, and not what its neighbours do.
class LeftOut {
 public:
  // q . A where a query meets but one row of A (far keys of a clipped table). Nothing that is not
  // finite, which weights would show.
  HWY_INLINE void look(const Strip& s, const TableProducts& products) {
    const PackedTable& table = s.problem.on_query;
    if (products.met.last - products.met.first == 1) {
      const float* from = products.with(products.met.first);
      for (int64_t i = 0; i < kStrip; ++i)
        terms_[i] = i < s.rows ? from[i * products.row_step] : kNothingAdded;
      rows_ = (1U << s.rows) - 1;
      if (HWY_UNLIKELY(!finite())) keep_finite();
    } else if (!each_surely_meets_several(s, table.map)) {
      for (int64_t i = 0; i < s.rows; ++i)
        if (const int64_t row = only_row_met(s, i, table); row >= 0) {
          if (rows_ == 0) std::fill_n(terms_, kStrip, kNothingAdded);
          terms_[i] = products.with(row)[i * products.row_step];
          rows_ |= 1U << i;
        }
      if (rows_ != 0) keep_finite();
    }
  }
  bool any() const { return rows_ != 0; }
  bool of(int64_t i) const { return (rows_ >> i & 1U) != 0; }
  bool of_all(int64_t rows) const { return rows_ + 1 == 1U << rows; }
  HWY_INLINE void add(int64_t rows, float* row_max) const {
    if (!any()) return;
    if (HWY_LIKELY(rows == kStrip)) {
      const Some some;
      for (int i = 0; i < kStrip; i += kSome)
        hn::StoreU(hn::Add(hn::LoadU(some, row_max + i), hn::LoadU(some, terms_ + i)), some,
                   row_max + i);
    } else {
      for (int64_t i = 0; i < rows; ++i) row_max[i] += terms_[i];
    }
  }

 private:
  using Some = hn::CappedTag<float, kStrip>;
  static constexpr int kSome = static_cast<int>(hn::MaxLanes(Some()));

  // By vectors, for it is asked for each strip and unit.
  HWY_INLINE bool finite() const {
    bool all = true;
    for (int i = 0; i < kStrip; i += kSome)
      all = hn::AllTrue(Some(), hn::IsFinite(hn::LoadU(Some(), terms_ + i))) && all;
    return all;
  }
  // Whether every query meets several rows, as far as is known without asking for each.
  static bool each_surely_meets_several(const Strip& s, const RowMap& map) {
    const KeyRange seen = s.seen_keys();
    return map.rises(s.diagonal(s.rows - 1), s.count() + s.rows - 1) &&
           seen.last - seen.first > 1 && s.visibility.sees_all(s.row / kStrip, seen);
  }
  void keep_finite() {
    for (int64_t i = 0; i < kStrip; ++i)
      if (!std::isfinite(terms_[i])) {
        terms_[i] = kNothingAdded;
        rows_ &= ~(1U << i);
      }
  }

  unsigned rows_ = 0;    // bit i: of query i
  float terms_[kStrip];  // kNothingAdded of others, if there are any
};

// Calls f with the strip's queries, which lie in panels or in rows. columns: of either.
template <class F>
HWY_INLINE void with_queries(const Strip& s, const float* queries, int64_t columns, F&& f) {
  const int64_t row = s.row;
  if (s.queries.in_rows)
    f(LeftRows{queries + row * columns, columns});
  else
    f(LeftColumns{queries + round_down(row, kLanes) * columns + row % kLanes, kLanes});
}

template <Sum kSum, class Plus>
HWY_INLINE void multiply_keys_of(const Strip& s, int64_t depth, int64_t columns,
                                 const float* queries, const float* keys, float* to,
                                 Plus epilogue) {
  const int64_t panel = kLanes * columns;
  with_queries(s, queries, columns, [&](auto rows) HWY_ATTR {
    multiply<kSum>(s.rows, s.count() / kLanes, depth, rows,
                   RightPanels{keys + s.columns.first / kLanes * panel, panel},
                   to + s.columns.first, kScoreStride, Nothing(), epilogue);
  });
}

template <class Plus>
HWY_INLINE void key_product(const Strip& s, const float* queries, const float* keys, float* to,
                            Plus epilogue) {
  const int64_t depth = s.problem.depth, depth16 = s.problem.depth16;
  if (s.problem.pairs)
    with_dots(s.problem.dots, [&](auto dots) HWY_ATTR {
      multiply_keys_of<kNewOfPairs<dots()>>(s, (depth + 1) / 2, depth16 / 2, queries, keys, to,
                                            epilogue);
    });
  else
    multiply_keys_of<Sum::kNew>(s, depth, depth16, queries, keys, to, epilogue);
}

// What is added to the products of a strip.
class ScoreEpilogue {
 public:
  // Of `rows` queries and `columns` of their unit; `count` terms, each of which is put once.
  ScoreEpilogue(int64_t rows, KeyRange columns, int64_t count)
      : rows_(rows), columns_(columns), count_(count), step_(count) {}
  ScoreEpilogue(const ScoreEpilogue&) = delete;
  EpilogueTerms all() const { return {list_, count_, step_}; }

  // Of row i and column j, counted from the first: data[i * row_step + j / kLanes * block_step + j
  // % kLanes].
  HWY_INLINE void put(const float* data, int64_t row_step, int64_t block_step) {
    if (count_ == 1) {  // one for all blocks
      *list_ = {data, row_step, block_step};
      step_ = 0;
      return;
    }
    for (EpilogueTerm* to = list_ + put_++; to < end(); to += count_, data += block_step)
      *to = {data, row_step, 0};
  }
  // k . B; first_row: of the strip, in the tile.
  HWY_INLINE void put_key_products(const KeyProducts& products, int64_t first_row) {
    const EpilogueTerm* from = products.panels + columns_.first / kLanes;
    for (EpilogueTerm* to = list_ + put_++; to < end(); to += count_, ++from)
      *to = {from->data + first_row * from->row_step, from->row_step, 0};
  }
  // x . T[row(diagonal)] for rows x and the one table of this strip. diagonal: of the first row and
  // the first column. Products are read where they lie if rows rise. place: lines of a strip, to
  // which go those that must be moved.
  HWY_INLINE void put_table_products(const RowMap& map, int64_t diagonal,
                                     const TableProducts& products, float* place) {
    const auto number_of_each = [&](int64_t row) HWY_ATTR {  // far keys of a clipped table
      return spread_number(products.with(row), products.row_step, row);
    };
    const KeyRange met = products.met;
    const int64_t before = rows_ - 1;  // the next query's diagonals are one before
    if (met.last - met.first == 1) return put(number_of_each(met.first), kLanes, 0);
    if (map.rises(diagonal - before, columns_.last - columns_.first + before))
      return put(products.with(*map.rows(diagonal)), products.row_step - 1, kLanes);
    EpilogueTerm* to = list_ + put_++;
    for (int64_t j = columns_.first; j < columns_.last; j += kLanes, to += count_) {
      const int64_t at = diagonal + j - columns_.first, row = *map.rows(at);
      if (map.rises(at - before, kLanes + before)) {
        *to = {products.with(row), products.row_step - 1, 0};
        continue;
      }
      const float* far = map.stays(at - before, kLanes + before) ? number_of_each(row) : nullptr;
      if (!far) spread_to(place + j, map, at, products);
      *to = far ? EpilogueTerm{far, kLanes, 0} : EpilogueTerm{place + j, kScoreStride, 0};
    }
  }
  // As that, but queries whose product is left out get nothing added.
  HWY_INLINE void put_table_products(const RowMap& map, int64_t diagonal,
                                     const TableProducts& products, const LeftOut& left_out,
                                     float* place) {
    EpilogueTerm* to = list_ + put_++;
    for (int64_t j = columns_.first; j < columns_.last; j += kLanes, to += count_) {
      spread_to(place + j, map, diagonal + j - columns_.first, products);
      for (int64_t i = 0; i < rows_; ++i)
        if (left_out.of(i)) store(set(kNothingAdded), place + j + i * kScoreStride);
      *to = {place + j, kScoreStride, 0};
    }
  }

 private:
  static constexpr int64_t kMost = 4;
  static constexpr int64_t kMostSpread = 2;  // rows of a table: one on either side
  const EpilogueTerm* end() const {
    return list_ + (columns_.last - columns_.first) / kLanes * count_;
  }

  HWY_INLINE void spread_to(float* to, const RowMap& map, int64_t diagonal,
                            const TableProducts& products) const {
    gather_by_row(map, diagonal, rows_, kLanes, products.data, products.row_step, products.first,
                  to, kScoreStride);
  }

  // One number for each row, in all lanes: [rows][kLanes]. Null if there are too many already.
  HWY_INLINE const float* spread_number(const float* numbers, int64_t step, int64_t table_row) {
    int64_t n = 0;
    while (n < spread_count_ && spread_rows_[n] != table_row) ++n;
    if (n == kMostSpread) return nullptr;
    float* const to = spread_ + n * kStrip * kLanes;
    if (n < spread_count_) return to;
    spread_rows_[spread_count_++] = table_row;
    for (int64_t i = 0; i < rows_; ++i) store(set(numbers[i * step]), to + i * kLanes);
    return to;
  }

  int64_t rows_;
  KeyRange columns_;
  int64_t count_, step_, put_ = 0;
  EpilogueTerm list_[kMost * kUnit / kLanes];
  int64_t spread_count_ = 0, spread_rows_[kMostSpread];
  HWY_ALIGN float spread_[kMostSpread * kStrip * kLanes];
};

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

// Products that are known, and what is added to them. from: may be `to`.
HWY_INLINE void add_to_products(const Strip& s, const float* from,
                                const EpilogueTerms& epilogue_terms, float* to) {
  if (from == to && epilogue_terms.count == 0) return;
  for (int64_t n = 0; n < s.count() / kLanes; ++n)
    for (int64_t i = 0; i < s.rows; ++i) {
      const int64_t at = i * kScoreStride + s.columns.first + n * kLanes;
      Lanes x = load(from + at);
      for (int64_t m = 0; m < epilogue_terms.count; ++m) {
        const EpilogueTerm& term = epilogue_terms.of(n)[m];
        x = add(x, load(epilogue_terms.at(term, n) + i * term.row_step));
      }
      store(x, to + at);
    }
}

// sqrt(a * a + b * b) without overflow in between. Max and Min may drop a NaN; the sum of both has
// it, and is right, too, where the ratio is none: of zeros and of infinities.
HWY_INLINE V modulus(V a, V b) {
  const F32 d;
  const V x = hn::Abs(a), y = hn::Abs(b), sum = hn::Add(x, y);
  const V high = hn::Max(x, y);
  const V ratio = hn::Div(hn::Min(x, y), high);
  const V size = hn::Mul(high, hn::Sqrt(hn::MulAdd(ratio, ratio, hn::Set(d, 1.0F))));
  return hn::IfThenElse(hn::IsNaN(hn::Add(ratio, sum)), sum, size);
}

HWY_INLINE Lanes modulus(const Lanes& a, const Lanes& b) {
  Lanes x;
  for (int p = 0; p < kVectors; ++p) x.part[p] = modulus(a.part[p], b.part[p]);
  return x;
}

// A query's row of `matrix` ([batch, heads, queries, diagonals]) beside the strip's columns: column
// j meets element j of `data`, for the columns that have a diagonal.
template <class T>
struct DiagonalsOfQuery {
  T* data;
  KeyRange columns;
};
template <class T>
HWY_INLINE DiagonalsOfQuery<T> diagonals_of_query(const Strip& s, const View<T>& matrix,
                                                  int64_t i) {
  const Frame& frame = s.queries.block->frame;
  const int64_t first = s.diagonal(i) - s.columns.first;
  T* row = matrix.at(frame.batch, s.queries.head, frame.query_row + s.queries.first + s.row + i);
  return {row + first * matrix.column_stride,
          intersect(s.columns, {-first, matrix.columns - first})};
}

// Where every column of every query has a diagonal, the numbers are one more term of the product:
// the next query's begin one diagonal before.
HWY_INLINE bool can_put_query_bias(const Strip& s) {
  const View<const float>& bias = s.problem.score.query_bias;
  return bias && bias.column_stride == 1 && s.diagonal(s.rows - 1) >= 0 &&
         s.diagonal(0) + s.count() <= bias.columns;
}
HWY_INLINE void put_query_bias(const Strip& s, ScoreEpilogue& to) {
  const View<const float>& bias = s.problem.score.query_bias;
  const auto [from, columns] = diagonals_of_query(s, bias, 0);
  to.put(from + columns.first, bias.row_stride - 1, kLanes);
}

HWY_INLINE void add_query_bias(const Strip& s, float* to) {
  const View<const float>& bias = s.problem.score.query_bias;
  for (int64_t i = 0; i < s.rows; ++i) {
    const auto [from, columns] = diagonals_of_query(s, bias, i);
    float* line = to + i * kScoreStride;
    int64_t j = columns.first;
    for (; bias.column_stride == 1 && j + kLanes <= columns.last; j += kLanes)
      store(add(load(line + j), load(from + j)), line + j);
    for (; j < columns.last; ++j) line[j] += from[j * bias.column_stride];
  }
}

// Adds the biases of the strip's keys, each query's less that of its last key.
inline HWY_NOINLINE void add_key_bias(const Strip& s, float* to) {
  const Problem& p = s.problem;
  const hn::CappedTag<double, kLanes / 2> d64;
  const hn::Rebind<float, decltype(d64)> d32;
  constexpr auto kStep = static_cast<int64_t>(hn::MaxLanes(d64));
  const Frame& frame = s.queries.block->frame;
  const KeyRange seen = s.seen_keys();
  const View<const double>& bias = p.score.key_bias;
  const double* from = bias.at(frame.batch, s.queries.head, frame.key_row + seen.first);
  const int64_t step = bias.row_stride, count = seen.last - seen.first;
  for (int64_t i = 0; i < s.rows; ++i) {
    const double origin = key_bias_origin(p.score, p.last_key, frame.batch, s.queries.head,
                                          frame.query_row + s.queries.first + s.row + i);
    float* line = to + i * kScoreStride + s.columns.first;
    int64_t j = 0;
    for (; step == 1 && j + kStep <= count; j += kStep)
      hn::StoreU(
          hn::Add(hn::LoadU(d32, line + j),
                  hn::DemoteTo(d32, hn::Sub(hn::LoadU(d64, from + j), hn::Set(d64, origin)))),
          d32, line + j);
    for (; j < count; ++j) line[j] += static_cast<float>(from[j * step] - origin);
  }
}

// Without these, biases are more terms of a product.
HWY_INLINE bool has_weight_or_modulus(const Problem& p) { return p.weight || p.score.q_imag; }

// From products to scores, through weight and modulus.
HWY_INLINE void finish_scores(const Strip& s, const ScoreStrip& to) {
  const Problem& p = s.problem;
  if (!has_weight_or_modulus(p)) return;
  const Lanes sign = set(std::copysign(1.0F, p.scale));  // the modulus must not lose the scale's
  const float* weight = p.weight ? p.weight.head(s.queries.head) : nullptr;
  const float* bias = p.bias ? p.bias.head(s.queries.head) : nullptr;
  for (int64_t i = 0; i < s.rows; ++i) {
    const int64_t at = i * kScoreStride, diagonal = s.diagonal(i) - s.columns.first;
    for (int64_t j = s.columns.first; j < s.columns.last; j += kLanes) {
      Lanes x = load(to.real + at + j);
      if (to.imaginary) x = mul(sign, modulus(x, load(to.imaginary + at + j)));
      if (weight) x = mul(load(weight + diagonal + j), x);
      if (bias) x = add(load(bias + diagonal + j), x);
      store(x, to.scores + at + j);
    }
  }
}

// All scores of a strip as if every key were seen in one way. left_out: where what is left out may
// be noted; or null.
HWY_INLINE void score_rotation(const Strip& s, size_t rotation, const ScoreScratch& scratch,
                               const ScoreStrip& to, LeftOut* left_out) {
  const Problem& p = s.problem;
  const bool adds_bias = p.bias && !has_weight_or_modulus(p);
  const bool puts_query_bias = !has_weight_or_modulus(p) && can_put_query_bias(s);
  TableProducts on_query;
  bool adds_on_query = false;
  if (p.on_query) {
    on_query = query_products_of(s, scratch.table_products);
    if (left_out) left_out->look(s, on_query);
    adds_on_query = !left_out || !left_out->of_all(s.rows);
  }
  const int64_t count = int64_t{adds_on_query ? 1 : 0} + (p.on_key ? 1 : 0) + (adds_bias ? 1 : 0) +
                        (puts_query_bias ? 1 : 0);
  ScoreEpilogue epilogue_terms(s.rows, s.columns, count);
  if (adds_on_query) {
    float* const place = s.products ? scratch.second.real : to.real;
    if (left_out && left_out->any())
      epilogue_terms.put_table_products(p.on_query.map, s.diagonal(0), on_query, *left_out, place);
    else
      epilogue_terms.put_table_products(p.on_query.map, s.diagonal(0), on_query, place);
  }
  if (p.on_key) epilogue_terms.put_key_products(s.key_products, s.row);
  if (adds_bias) epilogue_terms.put(p.bias.head(s.queries.head) + s.diagonal(0), -1, kLanes);
  if (puts_query_bias) put_query_bias(s, epilogue_terms);

  if (s.products)
    add_to_products(s, s.products[rotation] + s.product_row * kScoreStride, epilogue_terms.all(),
                    to.real);
  else if (count == 0)
    key_product(s, s.queries.rotated[rotation], s.keys.rotated[rotation], to.real, Nothing());
  else
    key_product(s, s.queries.rotated[rotation], s.keys.rotated[rotation], to.real,
                epilogue_terms.all());
  if (to.imaginary)
    key_product(s, s.queries.imaginary[rotation], s.keys.rotated[rotation], to.imaginary,
                Nothing());
  finish_scores(s, to);
  if (p.score.query_bias && !puts_query_bias) add_query_bias(s, to.scores);
}

// Whether scores are the products of q and k as they are, where all keys are seen.
HWY_INLINE bool scores_are_products(const Problem& p) {
  return p.rotations.list.size() == 1 && !p.on_query && !p.on_key && !p.bias &&
         !p.score.query_bias && !p.score.key_bias && !has_weight_or_modulus(p) && !p.score.mask;
}

// Overwrites what the dense mask hides.
HWY_INLINE void fill_masked(const Strip& s, float value, float* lines) {
  const View<const uint8_t>& mask = s.problem.score.mask;
  if (!mask) return;
  const Frame& frame = s.queries.block->frame;
  const KeyRange seen = s.seen_keys();
  for (int64_t i = 0; i < s.rows; ++i) {
    const uint8_t* shown =
        mask.at(frame.batch, s.queries.head, frame.query_row + s.queries.first + s.row + i) +
        (frame.key_row + seen.first) * mask.column_stride;
    float* line = lines + i * kScoreStride + s.columns.first;
    for (int64_t j = 0; j < seen.last - seen.first; ++j)
      line[j] = shown[j * mask.column_stride] != 0 ? line[j] : value;
  }
}

// Overwrites what the strip's queries do not see, whatever the reason.
HWY_INLINE void fill_hidden(const Strip& s, float value, float* lines) {
  const KeyRange seen = s.seen_keys();
  const bool whole =
      s.count() == seen.last - seen.first && s.visibility.sees_all(s.row / kStrip, seen);
  for (int64_t i = 0; i < s.rows && !whole; ++i) {
    float* line = lines + i * kScoreStride + s.columns.first;
    s.visibility.fill_unseen(s.row + i, seen, value, line);
    std::fill(line + (seen.last - seen.first), line + s.count(), value);
  }
  fill_masked(s, value, lines);
}

// Takes over from the scores of one way those keys that are seen in that way.
HWY_INLINE void merge_rotation(const Strip& s, size_t rotation, const float* from, float* to) {
  for (int64_t i = 0; i < s.rows; ++i)
    s.visibility.each_range(s.row + i, s.seen_keys(), {rotation, false}, [&](KeyRange range) {
      const int64_t at = i * kScoreStride - s.keys.keys.first;
      std::copy(from + at + range.first, from + at + range.last, to + at + range.first);
    });
}

// left_out: nothing yet; null where nothing may be.
inline HWY_NOINLINE void score_strip(const Strip& s, const ScoreScratch& scratch,
                                     const ScoreStrip& to, LeftOut* left_out) {
  // Not where there are several ways: whether a strip sees more than one depends on neighbours.
  const bool can_leave_out =
      s.problem.rotations.list.size() == 1 && !has_weight_or_modulus(s.problem);
  const RotationsSeen seen =
      s.visibility.rotations_seen(s.row / kStrip, s.row / kStrip + 1, s.seen_keys());
  if (!seen.several) {
    score_rotation(s, seen.rotation, scratch, to, can_leave_out ? left_out : nullptr);
  } else {
    for (size_t rotation = 0; rotation < s.problem.rotations.list.size(); ++rotation) {
      Strip part = s;
      part.columns = columns_of(
          s.visibility.hull_keys_in(s.row / kStrip, s.seen_keys(), {rotation, false}), s.keys.keys);
      if (empty(part.columns)) continue;
      score_rotation(part, rotation, scratch, scratch.second, nullptr);
      merge_rotation(part, rotation, scratch.second.scores, to.scores);
      if (to.real != to.scores) merge_rotation(part, rotation, scratch.second.real, to.real);
      if (to.imaginary) merge_rotation(part, rotation, scratch.second.imaginary, to.imaginary);
    }
  }
  if (s.problem.score.key_bias) add_key_bias(s, to.scores);
  fill_hidden(s, -kInfinity, to.scores);
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
