// The scores of a strip: kStrip queries of one head and some keys of one unit.
//
//   product   <R q, R k> + q . A + k . B               one for each rotation R
//   score     tau(w * product (or its modulus)) + b + r . A + beta  the scale is in q and B already
//
// The other terms of a product are added before it is stored (epilogue.h), and so are the biases b
// and beta if nothing stands between (has_shape()); the list of terms is made once for each strip.
// The scores of hidden keys are overwritten with -infinity last, so that none of their values, NaN
// included, reaches a sum.
#if defined(SEXTANT_ATTENTION_CPU_SCORE_SCORES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SEXTANT_ATTENTION_CPU_SCORE_SCORES_INL_H_
#undef SEXTANT_ATTENTION_CPU_SCORE_SCORES_INL_H_
#else
#define SEXTANT_ATTENTION_CPU_SCORE_SCORES_INL_H_
#endif

#include <algorithm>
#include <cmath>

#include "sextant/attention/cpu/score/strip.h"
#include "sextant/attention/cpu/score/tables-inl.h"
#include "sextant/attention/cpu/score/terms-inl.h"
#include "sextant/attention/cpu/tile/lanes-inl.h"
#include "sextant/attention/cpu/tile/multiply-inl.h"
#include "sextant/attention/cpu/tile/softmax_state.h"
#include "sextant/base/simd/tanh-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::cpu {
namespace HWY_NAMESPACE {

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

// sqrt(a * a + b * b) without intermediate overflow. Max and Min may drop a NaN, but the sum |a| +
// |b| keeps it; the sum is also the result where the ratio is NaN: for two zeros and two
// infinities.
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

// Whether a score has another shape than its product. If not, biases are terms of the product.
HWY_INLINE bool has_shape(const Problem& p) {
  return p.weight || p.score.q_imag || p.score.softcap > 0;
}

// tanh(x / softcap) for scores.
HWY_INLINE Lanes tanh_of(const Lanes& x, const Problem& p) {
  const V factor = hn::Set(F32(), static_cast<float>(1 / p.score.softcap));
  Lanes y;
  for (int n = 0; n < kVectors; ++n)
    y.part[n] = sextant::HWY_NAMESPACE::tanh(F32(), hn::Mul(x.part[n], factor));
  return y;
}

// Makes scores from products by weight, modulus and softcap.
HWY_INLINE void finish_scores(const Strip& s, const ScoreStrip& to) {
  const Problem& p = s.problem;
  if (!has_shape(p)) return;
  const Lanes cap = set(static_cast<float>(p.score.softcap));
  const Lanes sign = set(std::copysign(1.0F, p.scale));  // a modulus must not lose it
  const float* weight = p.weight ? p.weight.head(s.queries.head) : nullptr;
  const float* bias = p.bias ? p.bias.head(s.queries.head) : nullptr;
  for (int64_t i = 0; i < s.rows; ++i) {
    const int64_t at = i * kScoreStride, diagonal = s.diagonal(i) - s.columns.first;
    for (int64_t j = s.columns.first; j < s.columns.last; j += kLanes) {
      Lanes x = load(to.real + at + j);
      if (to.imaginary) x = mul(sign, modulus(x, load(to.imaginary + at + j)));
      if (weight) x = mul(load(weight + diagonal + j), x);
      if (p.score.softcap > 0) x = mul(cap, tanh_of(x, p));
      if (bias) x = add(load(bias + diagonal + j), x);
      store(x, to.scores + at + j);
    }
  }
}

// Adds products with the rows of A to scores.
inline HWY_NOINLINE void add_table_products(const Strip& s, const TableProducts& products,
                                            float* to) {
  const RowMap& map = s.problem.on_query.map;
  for (int64_t i = 0; i < s.rows; ++i)
    add_spread_row(map, s.diagonal(i), s.count(),
                   products.data + i * products.row_step - products.first,
                   to + i * kScoreStride + s.columns.first);
}

// All scores of a strip as if every key were seen in one rotation.
HWY_INLINE void score_rotation(const Strip& s, size_t rotation, const ScoreScratch& scratch,
                               const ScoreStrip& to) {
  const Problem& p = s.problem;
  const bool adds_bias = p.bias && !has_shape(p);
  const bool puts_query_bias = !has_shape(p) && can_put_query_bias(s);
  const bool is_outside = p.table_query16 > 0;  // r . A is no term of the product
  const bool puts_table = p.on_query && !(is_outside && has_shape(p));
  const int64_t count = int64_t{puts_table ? 1 : 0} + (p.on_key ? 1 : 0) + (adds_bias ? 1 : 0) +
                        (puts_query_bias ? 1 : 0);
  ScoreEpilogue epilogue_terms(s.rows, s.columns, count);
  if (puts_table)
    epilogue_terms.put_table_products(p.on_query.map, s.diagonal(0),
                                      query_products_of(s, scratch.table_products),
                                      s.products ? scratch.second.real : to.real);
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
  if (p.axis_on_query && !is_outside) add_axis_products(s, to.real);
  finish_scores(s, to);
  if (p.axis_on_query && is_outside) add_axis_products(s, to.scores);
  if (p.on_query && !puts_table)
    add_table_products(s, query_products_of(s, scratch.table_products), to.scores);
  if (p.axis_bias) add_axis_bias(s, to.scores);
  if (p.score.query_bias && !puts_query_bias) add_query_bias(s, to.scores);
}

// Whether scores equal the products of q and k where all keys are seen.
HWY_INLINE bool scores_are_products(const Problem& p) {
  return p.rotations.list.size() == 1 && !p.on_query && !p.on_key && !p.bias &&
         !p.has_axis_terms() && !p.score.query_bias && !p.score.key_bias && !has_shape(p) &&
         !p.score.mask;
}

// Overwrites the columns that the dense mask hides.
HWY_INLINE void fill_masked(const Strip& s, float value, float* lines) {
  const HostView<const uint8_t>& mask = s.problem.score.mask;
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

// Overwrites the columns that the strip's queries do not see, for whatever reason.
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

// Copies the scores of the keys that are seen in one rotation.
HWY_INLINE void merge_rotation(const Strip& s, size_t rotation, const float* from, float* to) {
  for (int64_t i = 0; i < s.rows; ++i)
    s.visibility.each_range(s.row + i, s.seen_keys(), {rotation, false}, [&](KeyRange range) {
      const int64_t at = i * kScoreStride - s.keys.keys.first;
      std::copy(from + at + range.first, from + at + range.last, to + at + range.first);
    });
}

inline HWY_NOINLINE void score_strip(const Strip& s, const ScoreScratch& scratch,
                                     const ScoreStrip& to) {
  const RotationsSeen seen =
      s.visibility.rotations_seen(s.row / kStrip, s.row / kStrip + 1, s.seen_keys());
  if (!seen.several) {
    score_rotation(s, seen.rotation, scratch, to);
  } else {
    for (size_t rotation = 0; rotation < s.problem.rotations.list.size(); ++rotation) {
      Strip part = s;
      part.columns = columns_of(
          s.visibility.hull_keys_in(s.row / kStrip, s.seen_keys(), {rotation, false}), s.keys.keys);
      if (empty(part.columns)) continue;
      score_rotation(part, rotation, scratch, scratch.second);
      merge_rotation(part, rotation, scratch.second.scores, to.scores);
      if (to.real != to.scores) merge_rotation(part, rotation, scratch.second.real, to.real);
      if (to.imaginary) merge_rotation(part, rotation, scratch.second.imaginary, to.imaginary);
    }
  }
  if (s.problem.score.key_bias) add_key_bias(s, to.scores);
  fill_hidden(s, -kInfinity, to.scores);
}

}  // namespace HWY_NAMESPACE
}  // namespace sextant::cpu
HWY_AFTER_NAMESPACE();

#endif
