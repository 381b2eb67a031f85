// Values mixed by weights: out_i = sum_j p_ij (v_j + C[row(d_ij)]).
#if defined(SEXTANT_ATTENTION_CPU_MIX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SEXTANT_ATTENTION_CPU_MIX_INL_H_
#undef SEXTANT_ATTENTION_CPU_MIX_INL_H_
#else
#define SEXTANT_ATTENTION_CPU_MIX_INL_H_
#endif

#include <algorithm>

#include "sextant/attention/cpu/by_distance-inl.h"
#include "sextant/attention/cpu/multiply-inl.h"
#include "sextant/attention/cpu/prepare-inl.h"
#include "sextant/attention/cpu/scores-inl.h"
#include "sextant/attention/cpu/totals-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::cpu {
namespace HWY_NAMESPACE {

// False if any of the floats (a multiple of kLanes) is infinite or NaN: those times 0 are NaN.
inline HWY_NOINLINE bool all_finite(const float* x, int64_t count) {
  const Lanes zero = set(0);
  Lanes sum = zero;
  for (int64_t n = 0; n < count; n += kLanes) sum = mul_add(load(x + n), zero, sum);
  return sum_of(sum) == 0;
}

// c += a * b like multiply(), but where a is 0, b is not read: b may hold what must not be seen.
inline HWY_NOINLINE void multiply_exactly(int64_t rows, int64_t blocks, int64_t depth, Left a,
                                          Right b, float* c, int64_t c_row) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t k = 0; k < depth; ++k)
      if (a.data[i * a.row_step + k * a.depth_step] != 0)
        multiply<Sum::kAdded>(
            1, blocks, 1, {a.data + i * a.row_step + k * a.depth_step, a.row_step, a.depth_step},
            {b.data + k * b.depth_step, b.depth_step, b.block_step}, c + i * c_row, c_row);
}

HWY_INLINE bool shown(const Strip& s, int64_t i, int64_t key) {
  const View<const uint8_t>& mask = s.problem.score.mask;
  const Frame& frame = s.queries.block->frame;
  return !mask || mask(frame.batch, s.queries.head, frame.query_row + s.queries.first + s.row + i,
                       frame.key_row + key) != 0;
}

// out += p v, key by key and only over what each query sees.
inline HWY_NOINLINE void mix_values_exactly(const Strip& s, const float* weights, Matrix values,
                                            float* out) {
  const int64_t width16 = s.problem.width16;
  for (int64_t i = 0; i < s.rows; ++i)
    s.sight.each_run(s.row + i, s.seen_keys(), kEveryWay, [&](Run run) HWY_ATTR {
      for (int64_t key = run.first; key < run.last; ++key) {
        if (!shown(s, i, key)) continue;
        const int64_t j = key - s.keys.keys.first;
        multiply<Sum::kAdded>(1, width16 / kLanes, 1, {weights + i * kScoreRow + j, 0, 0},
                              {values.data + j * values.stride, 0, kLanes}, out + i * width16,
                              width16);
      }
    });
}

// out += W C, where W is the weights summed by table row. sums: [kStrip][rows of C].
inline HWY_NOINLINE void mix_table(const Strip& s, const float* weights, bool exactly, float* sums,
                                   float* out) {
  const Vectors& table = s.problem.on_value;
  const Run range = table.map.rows_of(s.diagonal(s.rows - 1), s.count() + s.rows - 1);
  const int64_t count = range.last - range.first;
  std::fill_n(sums, s.rows * count, 0.0F);
  collect(table.map, s.diagonal(0), s.rows, s.count(), weights + s.columns.first, kScoreRow,
          range.first, sums, count);
  const Left left = {sums, count, 1};
  const Right right = {table.row(s.queries.head, range.first), table.columns16, kLanes};
  const int64_t blocks = s.problem.width16 / kLanes;
  if (exactly)
    multiply_exactly(s.rows, blocks, count, left, right, out, s.problem.width16);
  else
    multiply<Sum::kAdded>(s.rows, blocks, count, left, right, out, s.problem.width16);
}

// From p v to p (v + C). values(): the Matrix of the unit's, which is seldom wanted.
template <class Values>
HWY_INLINE void finish_mix(const Strip& s, const float* weights, const Values& values,
                           float* table_sums, float* out) {
  const int64_t width16 = s.problem.width16;
  if (s.problem.on_value) mix_table(s, weights, false, table_sums, out);
  if (all_finite(out, s.rows * width16)) return;
  // A weight of 0 has met an infinity or a NaN, maybe one that its query does not see.
  std::fill_n(out, s.rows * width16, 0.0F);
  mix_values_exactly(s, weights, values(), out);
  if (s.problem.on_value) mix_table(s, weights, true, table_sums, out);
}

// out = p (v + C), and the sum of each query's weights. seen: the columns that some query sees, not
// rounded out.
HWY_INLINE void mix(const Strip& s, const float* weights, Run seen, Matrix values,
                    float* table_sums, float* out, float* sum) {
  const int64_t width16 = s.problem.width16;
  multiply_and_total<Sum::kNew>(
      s.rows, width16 / kLanes, seen.last - seen.first, {weights + seen.first, kScoreRow, 1},
      {values.data + seen.first * values.stride, values.stride, kLanes}, out, width16, sum);
  finish_mix(
      s, weights, [&] { return values; }, table_sums, out);
}

}  // namespace HWY_NAMESPACE
}  // namespace sextant::cpu
HWY_AFTER_NAMESPACE();

#endif
