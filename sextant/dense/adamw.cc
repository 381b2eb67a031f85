#include "sextant/dense/adamw.h"

#include <cmath>
#include <vector>

#include "sextant/base/simd/targets.h"
#include "sextant/dense/chunks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sextant/dense/adamw.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each target
//
#include "sextant/dense/vectors-inl.h"

#ifndef SEXTANT_DENSE_ADAMW_ONCE
#define SEXTANT_DENSE_ADAMW_ONCE
namespace sextant::dense {

// The constants of a step, rounded to float32.
struct AdamWFactors {
  float keep, scale;                 // 1 - rate decay; gradient_scale
  float beta1, rest1, beta2, rest2;  // rest: 1 - beta
  float rate, root, epsilon;         // rate / (1 - beta1^step), 1 / sqrt(1 - beta2^step)
};

}  // namespace sextant::dense
#endif

HWY_BEFORE_NAMESPACE();
namespace sextant::dense {
namespace HWY_NAMESPACE {

// Updates elements [n, last), as many at a time as d has lanes. Returns the first element that
// remains.
template <class D>
HWY_INLINE int64_t advance_by(D d, const AdamWFactors& f, const AdamWState& s, int64_t n,
                              int64_t last) {
  const auto lanes = static_cast<int64_t>(hn::MaxLanes(d));
  for (; n + lanes <= last; n += lanes) {
    const auto g = hn::Mul(hn::LoadU(d, s.gradient + n), hn::Set(d, f.scale));
    const auto m = hn::MulAdd(hn::LoadU(d, s.moment1 + n), hn::Set(d, f.beta1),
                              hn::Mul(g, hn::Set(d, f.rest1)));
    const auto v = hn::MulAdd(hn::LoadU(d, s.moment2 + n), hn::Set(d, f.beta2),
                              hn::Mul(hn::Mul(g, g), hn::Set(d, f.rest2)));
    const auto below = hn::MulAdd(hn::Sqrt(v), hn::Set(d, f.root), hn::Set(d, f.epsilon));
    const auto kept = hn::Mul(hn::LoadU(d, s.weight + n), hn::Set(d, f.keep));
    hn::StoreU(m, d, s.moment1 + n);
    hn::StoreU(v, d, s.moment2 + n);
    hn::StoreU(hn::NegMulAdd(hn::Div(m, below), hn::Set(d, f.rate), kept), d, s.weight + n);
  }
  return n;
}

void advance_part(const AdamWFactors& f, const AdamWState& s, int64_t first, int64_t last) {
  advance_by(hn::CappedTag<float, 1>(), f, s, advance_by(F32(), f, s, first, last), last);
}

double sum_of_squares_part(const float* x, int64_t first, int64_t last) {
  const hn::CappedTag<double, 8> d;
  const hn::Rebind<float, decltype(d)> f;
  const auto lanes = static_cast<int64_t>(hn::MaxLanes(d));
  auto sums = hn::Zero(d), more = hn::Zero(d);
  int64_t n = first;
  for (; n + 2 * lanes <= last; n += 2 * lanes) {
    const auto a = hn::PromoteTo(d, hn::LoadU(f, x + n));
    const auto b = hn::PromoteTo(d, hn::LoadU(f, x + n + lanes));
    sums = hn::MulAdd(a, a, sums);
    more = hn::MulAdd(b, b, more);
  }
  double sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(sums, more)));
  for (; n < last; ++n) sum += double{x[n]} * double{x[n]};
  return sum;
}

}  // namespace HWY_NAMESPACE
}  // namespace sextant::dense
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sextant::dense {
namespace {

SEXTANT_EXPORT(advance_part);
SEXTANT_EXPORT(sum_of_squares_part);

}  // namespace

void advance(const AdamW& adamw, const AdamWState& state, const Executor& executor) {
  const auto step = static_cast<double>(adamw.step);
  const auto rounded = [](double x) { return static_cast<float>(x); };
  const AdamWFactors factors = {.keep = rounded(1 - adamw.rate * adamw.decay),
                                .scale = rounded(adamw.gradient_scale),
                                .beta1 = rounded(adamw.beta1),
                                .rest1 = rounded(1 - adamw.beta1),
                                .beta2 = rounded(adamw.beta2),
                                .rest2 = rounded(1 - adamw.beta2),
                                .rate = rounded(adamw.rate / (1 - std::pow(adamw.beta1, step))),
                                .root = rounded(1 / std::sqrt(1 - std::pow(adamw.beta2, step))),
                                .epsilon = rounded(adamw.epsilon)};
  in_pieces(state.count, kNumbers, executor, [&](int64_t first, int64_t last) {
    SEXTANT_DISPATCH(advance_part)(factors, state, first, last);
  });
}

double sum_of_squares(const float* x, int64_t count, const Executor& executor) {
  std::vector<double> sums(static_cast<size_t>(pieces(count, kNumbers)));
  in_pieces(count, kNumbers, executor, [&](int64_t first, int64_t last) {
    sums[static_cast<size_t>(first / kNumbers)] =
        SEXTANT_DISPATCH(sum_of_squares_part)(x, first, last);
  });
  double sum = 0;
  for (const double part : sums) sum += part;
  return sum;
}

}  // namespace sextant::dense
#endif
