#include "sextant/dense/cross_entropy.h"

#include <algorithm>
#include <cmath>

#include "sextant/base/simd/targets.h"
#include "sextant/dense/chunks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sextant/dense/cross_entropy.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each target
//
#include "sextant/base/simd/exp-inl.h"
#include "sextant/dense/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::dense {
namespace HWY_NAMESPACE {
using sextant::HWY_NAMESPACE::exp;

// e^x of one element, with the same bits as in the vectors.
HWY_INLINE float exp_of(float x) { return hn::GetLane(exp(F32(), hn::Set(F32(), x))); }

void cross_entropy_rows(const Answers& answers, float* loss, float* lse, int64_t first,
                        int64_t last) {
  const F32 d;
  const int64_t columns = answers.columns;
  for (int64_t row = first; row < last; ++row) {
    const float* const x = answers.logits + row * columns;
    V tops = hn::Set(d, x[0]);
    int64_t n = 0;
    for (; n + kLanes <= columns; n += kLanes) tops = hn::Max(tops, hn::LoadU(d, x + n));
    float top = hn::GetLane(hn::MaxOfLanes(d, tops));
    for (; n < columns; ++n) top = std::max(top, x[n]);
    tops = hn::Set(d, top);
    V sums = hn::Zero(d);
    for (n = 0; n + kLanes <= columns; n += kLanes)
      sums = hn::Add(sums, exp(d, hn::Sub(hn::LoadU(d, x + n), tops)));
    float sum = hn::GetLane(hn::SumOfLanes(d, sums));
    for (; n < columns; ++n) sum += exp_of(x[n] - top);
    const double log = std::log(static_cast<double>(sum)), most = top;
    lse[row] = static_cast<float>(most + log);
    // The loss is not computed from lse, which is rounded: it is often small beside lse.
    loss[row] = static_cast<float>(log + (most - static_cast<double>(x[answers.targets[row]])));
  }
}

void differentiate_rows(const Answers& answers, const float* lse, const float* d_loss,
                        float* d_logits, int64_t first, int64_t last) {
  const F32 d;
  const int64_t columns = answers.columns;
  for (int64_t row = first; row < last; ++row) {
    const float* const x = answers.logits + row * columns;
    float* const to = d_logits + row * columns;
    const V all = hn::Set(d, lse[row]), factor = hn::Set(d, d_loss[row]);
    int64_t n = 0;
    for (; n + kLanes <= columns; n += kLanes)
      hn::StoreU(hn::Mul(factor, exp(d, hn::Sub(hn::LoadU(d, x + n), all))), d, to + n);
    for (; n < columns; ++n) to[n] = d_loss[row] * exp_of(x[n] - lse[row]);
    to[answers.targets[row]] -= d_loss[row];
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sextant::dense
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sextant::dense {
namespace {

SEXTANT_EXPORT(cross_entropy_rows);
SEXTANT_EXPORT(differentiate_rows);

// Rows per piece: some tens of microseconds of work.
int64_t rows_of_piece(const Answers& answers) {
  return std::max<int64_t>(1, kNumbers / std::max<int64_t>(1, answers.columns));
}

}  // namespace

void cross_entropy(const Answers& answers, float* loss, float* lse, const Executor& executor) {
  in_pieces(answers.rows, rows_of_piece(answers), executor, [&](int64_t first, int64_t last) {
    SEXTANT_DISPATCH(cross_entropy_rows)(answers, loss, lse, first, last);
  });
}

void differentiate_cross_entropy(const Answers& answers, const float* lse, const float* d_loss,
                                 float* d_logits, const Executor& executor) {
  in_pieces(answers.rows, rows_of_piece(answers), executor, [&](int64_t first, int64_t last) {
    SEXTANT_DISPATCH(differentiate_rows)(answers, lse, d_loss, d_logits, first, last);
  });
}

}  // namespace sextant::dense
#endif
