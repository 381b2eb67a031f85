// The gradients of a strip of scores, and of their terms. Through softcap, weight and modulus,
// s = tau(w |x|) + b + beta:
//
//   db = dbeta = ds      dw = ds tau' |x|      dx = ds tau' w x / |x|      tau' = 1 - tanh^2
//
// where ds is that of softmax (tile/softmax_grad-inl.h).
#if defined(SEXTANT_ATTENTION_CPU_BACKWARD_SCORE_GRADS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SEXTANT_ATTENTION_CPU_BACKWARD_SCORE_GRADS_INL_H_
#undef SEXTANT_ATTENTION_CPU_BACKWARD_SCORE_GRADS_INL_H_
#else
#define SEXTANT_ATTENTION_CPU_BACKWARD_SCORE_GRADS_INL_H_
#endif

#include <cmath>

#include "sextant/attention/cpu/backward/backward.h"
#include "sextant/attention/cpu/score/dropout-inl.h"
#include "sextant/attention/cpu/score/scores-inl.h"
#include "sextant/attention/cpu/tile/softmax_grad-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::cpu {
namespace HWY_NAMESPACE {

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

// g.grads holds dp first, and the gradients of products after.
inline HWY_NOINLINE void differentiate_strip(const Strip& s, const GradStrip& g, float* weighted,
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
  if (grad.query_bias) write_diagonals(s, g.grads, grad.query_bias);
  if (grad.key_bias) add_to_key_bias(s, g.grads, grad.key_bias);
  if (!has_shape(p)) return;
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
