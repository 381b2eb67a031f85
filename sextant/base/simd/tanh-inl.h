// tanh x.
//
//   tanh x = x + x^3 P(x^2)             |x| < 0.6
//   tanh x = sign x (1 - e) / (1 + e)   else, e = e^(-2 |x|)
//
// P is a minimax polynomial of degree 3 (Lawson's algorithm), with a relative error of 8.4e-8 in
// tanh. With the errors of exp() and rounding the relative error is below 3e-7. NaN stays NaN.
#if defined(SEXTANT_BASE_SIMD_TANH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SEXTANT_BASE_SIMD_TANH_INL_H_
#undef SEXTANT_BASE_SIMD_TANH_INL_H_
#else
#define SEXTANT_BASE_SIMD_TANH_INL_H_
#endif

#include "hwy/highway.h"
#include "sextant/base/simd/exp-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sextant {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// d is a tag of float32.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V tanh(D d, V x) {
  const V size = hn::Abs(x), one = hn::Set(d, 1.0F);
  const V e = exp(d, hn::Mul(size, hn::Set(d, -2.0F)));
  const V far = hn::CopySignToAbs(hn::Div(hn::Sub(one, e), hn::Add(one, e)), x);
  const V z = hn::Mul(x, x);
  V p = hn::MulAdd(hn::Set(d, 0.0156126171F), z, hn::Set(d, -0.0522117987F));
  p = hn::MulAdd(p, z, hn::Set(d, 0.133131161F));
  p = hn::MulAdd(p, z, hn::Set(d, -0.333325982F));
  return hn::IfThenElse(hn::Lt(size, hn::Set(d, 0.6F)), hn::MulAdd(hn::Mul(p, z), x, x), far);
}

}  // namespace HWY_NAMESPACE
}  // namespace sextant
HWY_AFTER_NAMESPACE();

#endif
