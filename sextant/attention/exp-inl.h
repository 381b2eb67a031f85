// e^x for the softmax, where x <= 0 but for rounding.
//
//   e^x = 2^n * 2^r                   n = x / ln 2 rounded,       |r| <= 1/2
//   e^x = 2^n * 2^(j/16) * 2^r        n + j/16 rounded so,        |r| <= 1/32      (vectors of sixteen lanes)
//
// 2^r is a polynomial, of degree 5 with relative error 9.8e-8 or of degree 3 with 1.6e-09 (minimax, by
// Remez exchange; 2^0 is 1 exactly), and 2^(j/16) a number of a table that lies in one register of
// AVX-512: that takes six multiply-adds and products instead of eight, and q k and p v need the same
// units. With rounding: below 2.5e-7, or 1.3e-7 so. Where there is fused multiply-add |x| * 2^-26 more,
// from 1 / ln 2, and elsewhere |x| * 2^-23 more, from the product with that, too; it does not matter, for
// the result is small then. NaN stays NaN. Above 88: unspecified.
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

// Bits of 2^(j/16) less those of 1 and less j << 19: what is added to the bits of 16 n + j, moved up by 19.
alignas(64) inline constexpr int32_t kPowers[16] = {
    0,       -152893, -289342, -408621, -509968, -592590, -655657, -698305,
    -719629, -718684, -694486, -646004, -572163, -471841, -343865, -187011};

// d: of float32.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp(D d, V x) {
  const hn::RebindToSigned<D> di;
  constexpr bool kLooksUp = HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3 && hn::MaxLanes(d) == 16;
  constexpr int kFraction = kLooksUp ? 4 : 0, kExponent = 23 - kFraction;
  // Adding 1.5 * 2^kExponent rounds to so many bits of a fraction; 127 more makes the bits before those the exponent
  // field of 2^n.
  const V shift = hn::Set(d, 1.5F * (1 << kExponent) + 127.0F);
  const V per_ln2 = hn::Set(d, 1.44269504F);
  const V shifted = hn::MulAdd(x, per_ln2, shift);
  const V r = hn::MulSub(x, per_ln2, hn::Sub(shifted, shift));
  const auto bits = hn::BitCast(di, shifted), power = hn::ShiftLeft<kExponent>(bits);
  V result;
  if constexpr (kLooksUp) {
    const auto j = hn::IndicesFromVec(di, hn::And(bits, hn::Set(di, 15)));
    const auto of_j = hn::TableLookupLanes(hn::Load(di, kPowers), j);
    const V scale = hn::BitCast(d, hn::Add(of_j, power));
    V p = hn::MulAdd(hn::Set(d, 0.0555041097F), r, hn::Set(d, 0.2402343F));
    p = hn::MulAdd(p, r, hn::Set(d, 0.693147182F));
    result = hn::MulAdd(scale, hn::Mul(p, r), scale);
  } else {
    V p = hn::MulAdd(hn::Set(d, 0.00133029139F), r, hn::Set(d, 0.00967260543F));
    p = hn::MulAdd(p, r, hn::Set(d, 0.0555065088F));
    p = hn::MulAdd(p, r, hn::Set(d, 0.240222245F));
    p = hn::MulAdd(p, r, hn::Set(d, 0.693147004F));
    p = hn::MulAdd(p, r, hn::Set(d, 1.0F));
    result = hn::Mul(p, hn::BitCast(d, power));
  }
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -76.246185F)), result);
}

}  // namespace HWY_NAMESPACE
}  // namespace sextant
HWY_AFTER_NAMESPACE();

#endif
