// Weights from scores, and the merge of two softmax states.
#if defined(SEXTANT_ATTENTION_CPU_TILE_SOFTMAX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SEXTANT_ATTENTION_CPU_TILE_SOFTMAX_INL_H_
#undef SEXTANT_ATTENTION_CPU_TILE_SOFTMAX_INL_H_
#else
#define SEXTANT_ATTENTION_CPU_TILE_SOFTMAX_INL_H_
#endif

#include <algorithm>

#include "sextant/attention/cpu/tile/bf16x3-inl.h"
#include "sextant/attention/cpu/tile/lanes-inl.h"
#include "sextant/attention/cpu/tile/pack-inl.h"
#include "sextant/attention/cpu/tile/pairs-inl.h"
#include "sextant/attention/cpu/tile/softmax_state.h"
#include "sextant/position/frame.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::cpu {
namespace HWY_NAMESPACE {

// The value subtracted in the exponent: 0 for a row without scores, which must give zeros, because
// -infinity - -infinity is NaN.
HWY_INLINE float base_of(float row_max) { return row_max == -kInfinity ? 0 : row_max; }

// The maxima of all rows of scores, found first so that no row waits for its own, and their
// base_of().
HWY_INLINE void find_most(int64_t rows, KeyRange columns, const float* scores, float* row_max,
                          float* base) {
  for (int64_t i = 0; i < rows; ++i) {
    const float* line = scores + i * kScoreStride;
    Lanes high = load(line + columns.first);
    for (int64_t j = columns.first + kLanes; j < columns.last; j += kLanes)
      high = max(high, load(line + j));
    row_max[i] = max_of(high);
    base[i] = base_of(row_max[i]);
  }
}

HWY_INLINE V weights_of(const float* scores, float base) {
  return sextant::HWY_NAMESPACE::exp(F32(),
                                     hn::Sub(hn::LoadU(F32(), scores), hn::Set(F32(), base)));
}

// Bit j of row i: whether the weight of query i and column j is dropped.
class DroppedColumns {
 public:
  static constexpr int64_t kBytes = kUnit / 8 + 16;  // LoadMaskBits() reads eight

  uint8_t* row(int64_t i) { return bits_ + i * kBytes; }
  HWY_INLINE auto at(int64_t i, int64_t j) const {
    const uint8_t* const byte = bits_ + i * kBytes + j / 8;
    if constexpr (kVectorLanes >= 8) return hn::LoadMaskBits(F32(), byte);
    const uint8_t some[8] = {static_cast<uint8_t>(*byte >> (j % 8))};
    return hn::LoadMaskBits(F32(), some);
  }

 private:
  uint8_t bits_[kStrip * kBytes];
};

// The weights that are multiplied with values: all of them.
struct KeepAll {
  HWY_INLINE V operator()(int64_t /*row*/, int64_t /*column*/, V weights) const { return weights; }
};

// With dropout: zeros for dropped weights. The sums of all weights, which the product with values
// no longer gives, are added up here.
class Drop {
 public:
  Drop() {
    for (V& sum : sums_) sum = hn::Zero(F32());
  }
  Drop(const Drop&) = delete;
  DroppedColumns& columns() { return dropped_; }  // for find_dropped(), before any call
  HWY_INLINE V operator()(int64_t row, int64_t column, V weights) {
    sums_[row] = hn::Add(sums_[row], weights);
    return hn::IfThenZeroElse(dropped_.at(row, column), weights);
  }
  HWY_INLINE void write_sums(int64_t rows, float* to) const {
    for (int64_t i = 0; i < rows; ++i) to[i] = hn::GetLane(hn::SumOfLanes(F32(), sums_[i]));
  }

 private:
  DroppedColumns dropped_;
  V sums_[kStrip];
};

// Overwrites the scores of up to kStrip queries, [rows][kScoreStride], with weights e^(score -
// max), and writes these into a panel as well: [kUnit][kStrip]. keep: KeepAll or Drop.
template <class Keep>
HWY_NOINLINE void softmax_strip(int64_t rows, KeyRange columns, float* scores, float* row_max,
                                float* panel, Keep& keep) {
  float base[kStrip] = {};
  find_most(rows, columns, scores, row_max, base);
  for (int64_t j = columns.first; j < columns.last; j += kVectorLanes) {
    V weights[kStrip];
    for (int64_t i = 0; i < kStrip; ++i) {
      weights[i] = hn::Zero(F32());
      if (HWY_UNLIKELY(i >= rows)) continue;
      float* const at = scores + i * kScoreStride + j;
      weights[i] = keep(i, j, weights_of(at, base[i]));
      hn::StoreU(weights[i], F32(), at);
    }
    transpose_strip(weights, panel + j * kStrip);
  }
}

// The same with a panel of pairs, [kUnit / 2][kStrip], of weights that are rounded to bfloat16; the
// weights in place of the scores are not rounded (round_weights()).
template <bool kDots, class Keep>
HWY_NOINLINE void softmax_pairs(int64_t rows, KeyRange columns, float* scores, float* row_max,
                                float* panel, Keep& keep) {
  float base[kStrip] = {};
  find_most(rows, columns, scores, row_max, base);
  constexpr int64_t kBoth = 2 * kVectorLanes;
  const auto pair = [](V first, V second) HWY_ATTR {
    return kDots ? pair_at_once(first, second) : pair_in_steps(first, second);
  };
  for (int64_t j = round_down(columns.first, kBoth); j < columns.last; j += kBoth) {
    const auto weights = [&](int64_t i, int64_t at) HWY_ATTR {
      float* const score = scores + i * kScoreStride + at;
      const V some = keep(i, at, weights_of(score, base[i]));
      hn::StoreU(some, F32(), score);
      return some;
    };
    const auto weights_if_any = [&](int64_t i, int64_t at) HWY_ATTR {
      const bool any = i < rows && at >= columns.first && at < columns.last;
      return any ? weights(i, at) : hn::Zero(F32());
    };
    V pairs[kStrip];
    if (HWY_LIKELY(rows == kStrip && j >= columns.first && j + kBoth <= columns.last)) {
#if HWY_COMPILER_GCC_ACTUAL  // g++ would else keep pairs in memory
#pragma GCC unroll 8
#endif
      for (int64_t i = 0; i < kStrip; ++i) {
        const V first = weights(i, j);
        pairs[i] = pair(first, weights(i, j + kVectorLanes));
      }
    } else {
      for (int64_t i = 0; i < kStrip; ++i) {
        const V first = weights_if_any(i, j);
        pairs[i] = pair(first, weights_if_any(i, j + kVectorLanes));
      }
    }
    transpose_strip(pairs, panel + j / 2 * kStrip);
  }
}

// The number of calls of `policy` that softmax_terms() makes for a row.
constexpr int64_t calls_of_row(int64_t columns) {
  return 2 * ((columns + kBetween - 1) / kBetween);
}

// The same for tiles of AMX: weights row-major, split into terms and paired (bf16x3-inl.h). all:
// the columns of the product, multiples of amx::kDepth; columns outside of `columns` get zeros.
// policy(): is called every kBetween columns.
template <int kCount, class Keep, class Prefetch>
HWY_NOINLINE void softmax_terms(int64_t rows, KeyRange columns, KeyRange all, float* scores,
                                float* row_max, float* to, int64_t term_step, Keep& keep,
                                Prefetch policy) {
  float base[kStrip] = {};
  find_most(rows, columns, scores, row_max, base);
  for (int64_t i = 0; i < rows; ++i, scores += kScoreStride, to += kPairStride) {
    // Exponentials and pairing are two passes: each is a chain of dependent steps, and both
    // together fill a core's scheduler so that hardly two weights overlap.
    for (int64_t j = columns.first; j < columns.last;) {
      const int64_t end = std::min(j + kBetween, columns.last);
      for (; j < end; j += kVectorLanes)
        hn::StoreU(keep(i, j, weights_of(scores + j, base[i])), F32(), scores + j);
      policy();
    }
    for (int64_t j = all.first; j < all.last; j += kBetween) {
      pair_line<kCount>(scores, columns, {j, std::min(j + kBetween, all.last)}, to, term_step);
      policy();
    }
  }
}

// Merges `part` into `all`, at most kLanes rows. Sums are merged like values, so that they stay
// equal to the result of values that are all 1.
inline HWY_NOINLINE void merge(int64_t rows, int64_t width16, const SoftmaxState& part,
                               const SoftmaxState& all) {
  float keep[kLanes] = {}, take[kLanes] = {}, sum[kLanes] = {}, part_sum[kLanes] = {};
  for (int64_t i = 0; i < rows; ++i) {
    const float row_max = std::max(all.row_max[i], part.row_max[i]);
    keep[i] = all.row_max[i] - base_of(row_max);
    take[i] = part.row_max[i] - base_of(row_max);
    all.row_max[i] = row_max;
  }
  std::copy_n(all.row_sum, rows, sum);
  std::copy_n(part.row_sum, rows, part_sum);
  const Lanes kept = exp(load(keep)), taken = exp(load(take));
  store(kept, keep);
  store(taken, take);
  store(mul_add(load(part_sum), taken, mul(load(sum), kept)), sum);
  std::copy_n(sum, rows, all.row_sum);
  for (int64_t i = 0; i < rows; ++i) {
    const Lanes a = set(keep[i]), b = set(take[i]);
    for (int64_t c = 0; c < width16; c += kLanes) {
      float* to = all.out + i * width16 + c;
      store(mul_add(load(part.out + i * width16 + c), b, mul(load(to), a)), to);
    }
  }
}

HWY_INLINE void clear(int64_t rows, int64_t width16, const SoftmaxState& partial) {
  std::fill_n(partial.row_max, rows, -kInfinity);
  std::fill_n(partial.row_sum, rows, 0.0F);
  std::fill_n(partial.out, rows * width16, 0.0F);
}

}  // namespace HWY_NAMESPACE
}  // namespace sextant::cpu
HWY_AFTER_NAMESPACE();

#endif
