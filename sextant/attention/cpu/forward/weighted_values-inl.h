// Weighted sums of values: out_i = sum_j p_ij (v_j + C[row(d_ij)]).
#if defined(SEXTANT_ATTENTION_CPU_FORWARD_WEIGHTED_VALUES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SEXTANT_ATTENTION_CPU_FORWARD_WEIGHTED_VALUES_INL_H_
#undef SEXTANT_ATTENTION_CPU_FORWARD_WEIGHTED_VALUES_INL_H_
#else
#define SEXTANT_ATTENTION_CPU_FORWARD_WEIGHTED_VALUES_INL_H_
#endif

#include <algorithm>

#include "sextant/attention/cpu/prepare-inl.h"
#include "sextant/attention/cpu/score/scores-inl.h"
#include "sextant/attention/cpu/tile/multiply-inl.h"
#include "sextant/attention/cpu/tile/scatter-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::cpu {
namespace HWY_NAMESPACE {

HWY_INLINE bool shown(const Strip& s, int64_t i, int64_t key) {
  const HostView<const uint8_t>& mask = s.problem.score.mask;
  const Frame& frame = s.queries.block->frame;
  return !mask || mask(frame.batch, s.queries.head, frame.query_row + s.queries.first + s.row + i,
                       frame.key_row + key) != 0;
}

// out += p v, key by key, over the keys that each query sees.
inline HWY_NOINLINE void multiply_pv_exactly(const Strip& s, const float* weights, Matrix values,
                                             float* out) {
  const int64_t width16 = s.problem.width16;
  for (int64_t i = 0; i < s.rows; ++i)
    s.visibility.each_range(s.row + i, s.seen_keys(), kAllRotations, [&](KeyRange range) HWY_ATTR {
      for (int64_t key = range.first; key < range.last; ++key) {
        if (!shown(s, i, key)) continue;
        const int64_t j = key - s.keys.keys.first;
        multiply<Sum::kAdded>(1, width16 / kLanes, 1, LeftRows{weights + i * kScoreStride + j, 0},
                              RightRows{values.data + j * values.stride, 0}, out + i * width16,
                              width16);
      }
    });
}

// out += W C, where W is the weights summed by table row. A query whose keys all meet one row
// (beyond the clip distance) has its total there: that depends on its own keys and not on its
// neighbours in the strip, so bits are batch invariant. sums: [kStrip][rows of C].
inline HWY_NOINLINE void add_table_pv(const Strip& s, const float* weights, const float* totals,
                                      bool exactly, float* sums, float* out) {
  const PackedTable& table = s.problem.on_value;
  const int64_t width16 = s.problem.width16;
  const KeyRange range = rows_met(s, table);
  const int64_t count = range.last - range.first;
  const float* rows = table.row(s.queries.head, range.first);
  if (count == 1 && !exactly) {  // one row for all queries: too short a product for tiles
    for (int64_t i = 0; i < s.rows; ++i) {
      const Lanes total = set(totals[i]);
      for (int64_t c = 0; c < width16; c += kLanes)
        store(mul_add(total, load(rows + c), load(out + i * width16 + c)), out + i * width16 + c);
    }
    return;
  }
  std::fill_n(sums, s.rows * count, 0.0F);
  for (int64_t i = 0; i < s.rows; ++i) {
    if (const int64_t row = only_row_met(s, i, table); row >= 0)
      sums[i * count + row - range.first] = totals[i];
    else
      collect_row(table.map, s.diagonal(i), s.count(), weights + i * kScoreStride + s.columns.first,
                  range.first, sums + i * count);
  }
  const LeftRows left = {sums, count};
  const RightRows right = {rows, table.columns16};
  if (exactly)
    multiply_exactly(s.rows, width16 / kLanes, count, left, right, out, width16);
  else
    multiply<Sum::kAdded>(s.rows, width16 / kLanes, count, left, right, out, width16);
}

// Completes p v to p (v + C). values(): gives the unit's values, which are needed only if the
// result is not finite. totals: the sum of each query's weights.
template <class Values>
HWY_INLINE void finish_pv(const Strip& s, const float* weights, const Values& values,
                          float* table_sums, float* out, const float* totals) {
  const int64_t width16 = s.problem.width16;
  if (s.problem.on_value) add_table_pv(s, weights, totals, false, table_sums, out);
  if (all_finite(out, s.rows * width16)) return;
  // A weight of 0 was multiplied by an infinity or NaN, maybe of a hidden key.
  std::fill_n(out, s.rows * width16, 0.0F);
  multiply_pv_exactly(s, weights, values(), out);
  if (s.problem.on_value) add_table_pv(s, weights, totals, true, table_sums, out);
}

// Values of a unit, as rows, or as pairs of rows (pair_rows()) if products are of pairs.
struct Values {
  Matrix rows;
  const float* pairs = nullptr;
};

// Rounds weights, [rows][kScoreStride], as pairing does: the instruction rounds to even.
inline HWY_NOINLINE void round_weights(int64_t rows, KeyRange columns, bool dots, float* weights) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = columns.first; j < columns.last; j += kVectorLanes) {
      float* const at = weights + i * kScoreStride + j;
      const V x = load_part(at);
      hn::StoreU(hn::BitCast(F32(), dots ? round(x) : round_weight(x)), F32(), at);
    }
}

// finish_pv() for a p v of rounded weights and values.
template <class Values>
HWY_INLINE void finish_rounded_pv(const Strip& s, float* weights, const Values& values,
                                  float* table_sums, float* out, const float* totals) {
  if (!s.problem.on_value && all_finite(out, s.rows * s.problem.width16)) return;
  round_weights(s.rows, s.columns, s.problem.dots, weights);
  finish_pv(s, weights, values, table_sums, out, totals);
}

// out = p (v + C), and the sum of each query's weights. panel: the weights, or pairs of them. seen:
// the columns that any query sees, not rounded out. rows(): gives values as rows, which a result
// that is not finite needs.
template <class Rows>
HWY_INLINE void multiply_pv(const Strip& s, float* weights, const float* panel, KeyRange seen,
                            const Values& values, const Rows& rows, float* table_sums, float* out,
                            float* sum) {
  const int64_t width16 = s.problem.width16, blocks = width16 / kLanes;
  if (values.pairs) {
    const KeyRange some = {seen.first / 2, (seen.last + 1) / 2};
    with_dots(s.problem.dots, [&](auto dots) HWY_ATTR {
      multiply_and_total<kNewOfPairs<dots()>>(
          s.rows, blocks, some.last - some.first, panel + some.first * kStrip,
          RightRows{values.pairs + some.first * width16, width16}, out, width16, sum);
    });
    return finish_rounded_pv(s, weights, rows, table_sums, out, sum);
  }
  const auto [data, stride] = values.rows;
  multiply_and_total<Sum::kNew>(s.rows, blocks, seen.last - seen.first, panel + seen.first * kStrip,
                                RightRows{data + seen.first * stride, stride}, out, width16, sum);
  finish_pv(s, weights, rows, table_sums, out, sum);
}

}  // namespace HWY_NAMESPACE
}  // namespace sextant::cpu
HWY_AFTER_NAMESPACE();

#endif
