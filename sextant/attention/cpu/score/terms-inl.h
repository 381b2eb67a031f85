// The terms that are added to the products of a strip before these are stored (epilogue.h):
// products with tables, each at the keys that meet its row, and biases.
#if defined(SEXTANT_ATTENTION_CPU_SCORE_TERMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SEXTANT_ATTENTION_CPU_SCORE_TERMS_INL_H_
#undef SEXTANT_ATTENTION_CPU_SCORE_TERMS_INL_H_
#else
#define SEXTANT_ATTENTION_CPU_SCORE_TERMS_INL_H_
#endif

#include <algorithm>
#include <cmath>

#include "sextant/attention/cpu/score/strip.h"
#include "sextant/attention/cpu/tile/epilogue.h"
#include "sextant/attention/cpu/tile/lanes-inl.h"
#include "sextant/attention/cpu/tile/scatter-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::cpu {
namespace HWY_NAMESPACE {

// The list of terms of a strip's products.
class ScoreEpilogue {
 public:
  // The strip has `rows` queries and `columns` of its unit. Each of `count` terms is put once.
  ScoreEpilogue(int64_t rows, KeyRange columns, int64_t count)
      : rows_(rows), columns_(columns), count_(count), step_(count) {}
  ScoreEpilogue(const ScoreEpilogue&) = delete;
  EpilogueTerms all() const { return {list_, count_, step_}; }

  // Puts a term whose value for row i and column j, counted from the first, is data[i * row_step +
  // j / kLanes * block_step + j % kLanes].
  HWY_INLINE void put(const float* data, int64_t row_step, int64_t block_step) {
    if (count_ == 1) {  // one for all blocks
      *list_ = {data, row_step, block_step};
      step_ = 0;
      return;
    }
    for (EpilogueTerm* to = list_ + put_++; to < end(); to += count_, data += block_step)
      *to = {data, row_step, 0};
  }
  // Puts k . B. first_row: the strip's first row in the tile.
  HWY_INLINE void put_key_products(const KeyProducts& products, int64_t first_row) {
    const EpilogueTerm* from = products.panels + columns_.first / kLanes;
    for (EpilogueTerm* to = list_ + put_++; to < end(); to += count_, ++from)
      *to = {from->data + first_row * from->row_step, from->row_step, 0};
  }
  // Puts x . T[row(diagonal)] for rows x. diagonal: that of the first row and the first column.
  // Where table rows rise, products are read in place; elsewhere they are gathered into `place`,
  // the rows of a strip.
  HWY_INLINE void put_table_products(const RowMap& map, int64_t diagonal,
                                     const TableProducts& products, float* place) {
    // The term of keys that all meet one row, as those beyond the clip distance.
    const auto one_for_all = [&](int64_t row) HWY_ATTR {
      return broadcast(products.with(row), products.row_step, row);
    };
    const KeyRange met = products.met;
    const int64_t before = rows_ - 1;  // the diagonals of the next query are one less
    if (met.last - met.first == 1) return put(one_for_all(met.first), kLanes, 0);
    if (map.rises(diagonal - before, columns_.last - columns_.first + before))
      return put(products.with(*map.rows(diagonal)), products.row_step - 1, kLanes);
    EpilogueTerm* to = list_ + put_++;
    for (int64_t j = columns_.first; j < columns_.last; j += kLanes, to += count_) {
      const int64_t at = diagonal + j - columns_.first, row = *map.rows(at);
      if (map.rises(at - before, kLanes + before)) {
        *to = {products.with(row), products.row_step - 1, 0};
        continue;
      }
      const float* far = map.stays(at - before, kLanes + before) ? one_for_all(row) : nullptr;
      if (!far) gather_to(place + j, map, at, products);
      *to = far ? EpilogueTerm{far, kLanes, 0} : EpilogueTerm{place + j, kScoreStride, 0};
    }
  }

 private:
  static constexpr int64_t kMost = 4;
  static constexpr int64_t kMostBroadcasts = 2;  // table rows: one for each clip distance
  const EpilogueTerm* end() const {
    return list_ + (columns_.last - columns_.first) / kLanes * count_;
  }

  HWY_INLINE void gather_to(float* to, const RowMap& map, int64_t diagonal,
                            const TableProducts& products) const {
    gather_by_row(map, diagonal, rows_, kLanes, products.data, products.row_step, products.first,
                  to, kScoreStride);
  }

  // Broadcasts one value for each row to all lanes: [rows][kLanes]. Null if there is no memory
  // left.
  HWY_INLINE const float* broadcast(const float* numbers, int64_t step, int64_t table_row) {
    int64_t n = 0;
    while (n < broadcasts_ && broadcast_rows_[n] != table_row) ++n;
    if (n == kMostBroadcasts) return nullptr;
    float* const to = broadcast_ + n * kStrip * kLanes;
    if (n < broadcasts_) return to;
    broadcast_rows_[broadcasts_++] = table_row;
    for (int64_t i = 0; i < rows_; ++i) store(set(numbers[i * step]), to + i * kLanes);
    return to;
  }

  int64_t rows_;
  KeyRange columns_;
  int64_t count_, step_, put_ = 0;
  EpilogueTerm list_[kMost * kUnit / kLanes];
  int64_t broadcasts_ = 0, broadcast_rows_[kMostBroadcasts];
  HWY_ALIGN float broadcast_[kMostBroadcasts * kStrip * kLanes];
};

// Adds the terms to products that are computed already. `from` may be `to`.
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

// A query's row of a matrix [batch, heads, queries, diagonals], aligned with the strip: element j
// of `data` belongs to column j, for the `columns` that have a diagonal.
template <class T>
struct DiagonalsOfQuery {
  T* data;
  KeyRange columns;
};
template <class T>
HWY_INLINE DiagonalsOfQuery<T> diagonals_of_query(const Strip& s, const HostView<T>& matrix,
                                                  int64_t i) {
  const Frame& frame = s.queries.block->frame;
  const int64_t first = s.diagonal(i) - s.columns.first;
  T* row = matrix.at(frame.batch, s.queries.head, frame.query_row + s.queries.first + s.row + i);
  return {row + first * matrix.column_stride,
          intersect(s.columns, {-first, matrix.columns - first})};
}

// Where every column of every query has a diagonal, query_bias is a term of the product: the row of
// the next query starts one diagonal earlier.
HWY_INLINE bool can_put_query_bias(const Strip& s) {
  const HostView<const float>& bias = s.problem.score.query_bias;
  return bias && bias.column_stride == 1 && s.diagonal(s.rows - 1) >= 0 &&
         s.diagonal(0) + s.count() <= bias.columns;
}
HWY_INLINE void put_query_bias(const Strip& s, ScoreEpilogue& to) {
  const HostView<const float>& bias = s.problem.score.query_bias;
  const auto [from, columns] = diagonals_of_query(s, bias, 0);
  to.put(from + columns.first, bias.row_stride - 1, kLanes);
}

HWY_INLINE void add_query_bias(const Strip& s, float* to) {
  const HostView<const float>& bias = s.problem.score.query_bias;
  for (int64_t i = 0; i < s.rows; ++i) {
    const auto [from, columns] = diagonals_of_query(s, bias, i);
    float* line = to + i * kScoreStride;
    int64_t j = columns.first;
    for (; bias.column_stride == 1 && j + kLanes <= columns.last; j += kLanes)
      store(add(load(line + j), load(from + j)), line + j);
    for (; j < columns.last; ++j) line[j] += from[j * bias.column_stride];
  }
}

// Adds the biases of the strip's keys, relative to the largest that the query sees (key_bias.h).
inline HWY_NOINLINE void add_key_bias(const Strip& s, float* to) {
  const Problem& p = s.problem;
  const hn::CappedTag<double, kLanes / 2> d64;
  const hn::Rebind<float, decltype(d64)> d32;
  constexpr auto kStep = static_cast<int64_t>(hn::MaxLanes(d64));
  const Frame& frame = s.queries.block->frame;
  const KeyRange seen = s.seen_keys();
  const HostView<const double>& bias = p.score.key_bias;
  const double* from = bias.at(frame.batch, s.queries.head, frame.key_row + seen.first);
  const int64_t step = bias.row_stride, count = seen.last - seen.first;
  for (int64_t i = 0; i < s.rows; ++i) {
    const double origin =
        p.origins.at(frame.batch, s.queries.head, frame.query_row + s.queries.first + s.row + i);
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

}  // namespace HWY_NAMESPACE
}  // namespace sextant::cpu
HWY_AFTER_NAMESPACE();

#endif
