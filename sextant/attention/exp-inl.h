// e^x for the softmax, where x <= 0 but for rounding.
//
//   e^x = 2^n * 2^r,  n = x / ln 2 rounded,  |r| <= 1/2
//
// 2^r is a polynomial of degree 5 with relative error 9.8e-8 (minimax, by Remez exchange; 2^0 is 1
// exactly). With rounding: below 2.5e-7, and |x| * 2^-24 more from the product x / ln 2, which does
// not matter, for the result is small then. NaN stays NaN. Above 88: unspecified.
//
// Results below 2^-110 are exact zeros, and so is e^-infinity. Weights down to 2^-126 times values would begin
// many sums with subnormal numbers, with which Intel's cores take some hundred times as long: ALiBi, whose far
// keys have such weights, took 1.25 times as long there as plain attention.
#if defined(SEXTANT_ATTENTION_EXP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SEXTANT_ATTENTION_EXP_INL_H_
#undef SEXTANT_ATTENTION_EXP_INL_H_
#else
#define SEXTANT_ATTENTION_EXP_INL_H_
#endif

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace sextant {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// d: of float32.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp(D d, V x) {
  const hn::RebindToSigned<D> di;
  // Adding 1.5 * 2^23 rounds to an integer; 127 more makes its low bits the exponent field of 2^n.
  const V shift = hn::Set(d, 12582912.0F + 127.0F);
  const V per_ln2 = hn::Set(d, 1.44269504F);
  const V shifted = hn::MulAdd(x, per_ln2, shift);
  const V r = hn::MulSub(x, per_ln2, hn::Sub(shifted, shift));
  V p = hn::MulAdd(hn::Set(d, 0.00133029139F), r, hn::Set(d, 0.00967260543F));
  p = hn::MulAdd(p, r, hn::Set(d, 0.0555065088F));
  p = hn::MulAdd(p, r, hn::Set(d, 0.240222245F));
  p = hn::MulAdd(p, r, hn::Set(d, 0.693147004F));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0F));
  const V power = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(di, shifted)));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -76.246185F)), hn::Mul(p, power));
}

}  // namespace HWY_NAMESPACE
}  // namespace sextant
HWY_AFTER_NAMESPACE();

#endif
