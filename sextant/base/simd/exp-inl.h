// e^x for the softmax, where x <= 0 but for rounding.
//
//   e^x = 2^n * 2^r                   n = x / ln 2 rounded,       |r| <= 1/2
//   e^x = 2^n * 2^(j/32) * 2^r        n + j/32 rounded so,        |r| <= 1/64      (vectors of
//   sixteen lanes)
//
// 2^r is a polynomial, of degree 5 with relative error 9.8e-8 or of degree 2 with 5.4e-8 (minimax,
// by Remez exchange; 2^0 is 1 exactly), and 2^(j/32) a number of a table that lies in two registers
// of AVX-512: that takes five multiply-adds and products instead of eight, and q k and p v need the
// same units. With rounding: below 2.5e-7, or 1.8e-7 so. Where there is fused multiply-add |x| *
// 2^-26 more, from 1 / ln 2, and elsewhere |x| * 2^-23 more, from the product with that, too; it
// does not matter, for the result is small then. NaN stays NaN. Above 88: unspecified.
//
// Results below 2^-110 are exact zeros, and so is e^-infinity. Weights down to 2^-126 times values
// would begin many sums with subnormal numbers, with which Intel's cores take some hundred times as
// long: ALiBi, whose far keys have such weights, took 1.25 times as long there as plain attention.
#if defined(SEXTANT_BASE_SIMD_EXP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SEXTANT_BASE_SIMD_EXP_INL_H_
#undef SEXTANT_BASE_SIMD_EXP_INL_H_
#else
#define SEXTANT_BASE_SIMD_EXP_INL_H_
#endif

#include "hwy/highway.h"
#include "sextant/base/simd/avx512-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sextant {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Bits of 2^(j/32) less those of 1 and less j << 18: what is added to the bits of 32 n + j, moved
// up by 18.
alignas(64) inline constexpr int32_t kPowers[32] = {
    0,       -78457,  -152893, -223217, -289342, -351174, -408621, -461584,
    -509968, -553670, -592590, -626621, -655657, -679589, -698305, -711690,
    -719629, -722001, -718684, -709555, -694486, -673346, -646004, -612322,
    -572163, -525384, -471841, -411385, -343865, -269126, -187011, -97357};

// d: of float32.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp(D d, V x) {
  const hn::RebindToSigned<D> di;
  constexpr bool kLooksUp = HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3 && hn::MaxLanes(d) == 16;
  constexpr int kFraction = kLooksUp ? 5 : 0, kExponent = 23 - kFraction;
  // Adding 1.5 * 2^kExponent rounds to so many bits of a fraction; 127 more makes the bits before
  // those the exponent field of 2^n.
  const V shift = hn::Set(d, 1.5F * (1 << kExponent) + 127.0F);
  const V per_ln2 = hn::Set(d, 1.44269504F);
  const V shifted = hn::MulAdd(x, per_ln2, shift);
  const V r = hn::MulSub(x, per_ln2, hn::Sub(shifted, shift));
  const auto bits = hn::BitCast(di, shifted), power = hn::ShiftLeft<kExponent>(bits);
  const V least = hn::Set(d, -76.246185F);
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  if constexpr (kLooksUp) {
    const auto of_j = look_up_32(bits, hn::Load(di, kPowers), hn::Load(di, kPowers + 16));
    const V scale = hn::BitCast(d, hn::Add(of_j, power));
    const V p = hn::MulAdd(hn::Set(d, 0.240227565F), r, hn::Set(d, 0.693157315F));
    return mul_add_unless_less(scale, hn::Mul(p, r), scale, x, least);
  }
#endif
  V p = hn::MulAdd(hn::Set(d, 0.00133029139F), r, hn::Set(d, 0.00967260543F));
  p = hn::MulAdd(p, r, hn::Set(d, 0.0555065088F));
  p = hn::MulAdd(p, r, hn::Set(d, 0.240222245F));
  p = hn::MulAdd(p, r, hn::Set(d, 0.693147004F));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0F));
  return hn::IfThenZeroElse(hn::Lt(x, least), hn::Mul(p, hn::BitCast(d, power)));
}

}  // namespace HWY_NAMESPACE
}  // namespace sextant
HWY_AFTER_NAMESPACE();

#endif
