// e^x for the softmax, where x <= 0 up to rounding.
//
//   e^x = 2^n * 2^r                   n = round(x / ln 2),              |r| <= 1/2
//   e^x = 2^n * 2^(j/32) * 2^r        n + j/32 = x / ln 2 rounded
//                                     to multiples of 1/32,             |r| <= 1/64
//
// The second form is for AVX-512 with vectors of sixteen lanes. 2^r is a minimax polynomial (Remez
// exchange; 2^0 is exactly 1), of degree 5 with relative error 9.8e-8, or of degree 2 with 5.4e-8
// in the second form. 2^(j/32) comes from a table in two AVX-512 registers: this takes five
// multiply-adds and products instead of eight, and q k and p v compete for the same units. With
// rounding the relative error is below 2.5e-7, or 1.8e-7 in the second form. With fused
// multiply-add, the rounding of 1 / ln 2 adds |x| * 2^-26; without, the rounding of the product
// adds |x| * 2^-23, too. This does not matter, because the result is small for large |x|. NaN stays
// NaN. Results for x above 88 are unspecified.
//
// Results below 2^-110 are exact zeros, and so is e^-infinity. Products of values with weights down
// to 2^-126 would make many sums begin with subnormal numbers, which take about a hundred times as
// long on Intel cores: ALiBi, whose far keys have such weights, took 1.25 times as long as plain
// attention.
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

// The bits of 2^(j/32), minus the bits of 1, minus j << 18. exp() adds them to the bits of 32 n + j
// shifted left by 18.
alignas(64) inline constexpr int32_t kPowers[32] = {
    0,       -78457,  -152893, -223217, -289342, -351174, -408621, -461584,
    -509968, -553670, -592590, -626621, -655657, -679589, -698305, -711690,
    -719629, -722001, -718684, -709555, -694486, -673346, -646004, -612322,
    -572163, -525384, -471841, -411385, -343865, -269126, -187011, -97357};

// d is a tag of float32.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp(D d, V x) {
  const hn::RebindToSigned<D> di;
  constexpr bool kLooksUp = HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3 && hn::MaxLanes(d) == 16;
  constexpr int kFraction = kLooksUp ? 5 : 0, kExponent = 23 - kFraction;
  // Adding 1.5 * 2^kExponent rounds to kFraction bits of fraction; adding 127 more turns the bits
  // above the fraction into the exponent field of 2^n.
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
