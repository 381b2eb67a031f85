// The gradient of softmax, one strip at a time: from scores to weights and score gradients.
//
//   p = e^(s - lse)      ds = p (dp - mean)      dp = do (v + C)      mean = do . out = sum_j p dp
//
// with dropout p (dp - mean) of dp = m do (v + C), and dv = (p m)^T do.
#if defined(SEXTANT_ATTENTION_CPU_TILE_SOFTMAX_GRAD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SEXTANT_ATTENTION_CPU_TILE_SOFTMAX_GRAD_INL_H_
#undef SEXTANT_ATTENTION_CPU_TILE_SOFTMAX_GRAD_INL_H_
#else
#define SEXTANT_ATTENTION_CPU_TILE_SOFTMAX_GRAD_INL_H_
#endif

#include "sextant/attention/cpu/tile/lanes-inl.h"
#include "sextant/attention/cpu/tile/softmax-inl.h"
#include "sextant/position/frame.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::cpu {
namespace HWY_NAMESPACE {

// The rows of a strip, [kStrip][kScoreStride] each.
struct GradStrip {
  float* weights;                 // holds scores first
  float* grads;                   // gradients of the (real) product
  float* imaginary_grads;         // null without a modulus
  const float *real, *imaginary;  // the product
  const float *lse, *mean;        // [kStrip]; lse: +infinity where a query sees nothing
  const DroppedColumns* dropped;  // null without dropout
};

// factor x, and 0 where x is dropped.
HWY_INLINE Lanes kept(const Lanes& x, V factor, const DroppedColumns& dropped, int64_t row,
                      int64_t column) {
  Lanes y;
  for (int n = 0; n < kVectors; ++n)
    y.part[n] =
        hn::IfThenZeroElse(dropped.at(row, column + n * kVectorLanes), hn::Mul(x.part[n], factor));
  return y;
}

// The same as differentiate_softmax() with dropout; g.weights become those of the values.
HWY_INLINE void differentiate_dropout(int64_t rows, KeyRange columns, float kept_factor,
                                      const GradStrip& g) {
  const V factor = hn::Set(F32(), kept_factor);
  for (int64_t i = 0; i < rows; ++i) {
    const Lanes lse = set(g.lse[i]), mean = set(g.mean[i]);
    float *const weights = g.weights + i * kScoreStride, *const grads = g.grads + i * kScoreStride;
    for (int64_t j = columns.first; j < columns.last; j += kLanes) {
      const Lanes weight = exp(sub(load(weights + j), lse));
      store(kept(weight, factor, *g.dropped, i, j), weights + j);
      const Lanes grad = kept(load(grads + j), factor, *g.dropped, i, j);
      store(mul(weight, sub(grad, mean)), grads + j);
    }
  }
}

HWY_INLINE void differentiate_softmax(int64_t rows, KeyRange columns, const GradStrip& g) {
  for (int64_t i = 0; i < rows; ++i) {
    const Lanes lse = set(g.lse[i]), mean = set(g.mean[i]);
    for (int64_t j = i * kScoreStride + columns.first; j < i * kScoreStride + columns.last;
         j += kLanes) {
      const Lanes weight = exp(sub(load(g.weights + j), lse));
      store(weight, g.weights + j);
      store(mul(weight, sub(load(g.grads + j), mean)), g.grads + j);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sextant::cpu
HWY_AFTER_NAMESPACE();

#endif
