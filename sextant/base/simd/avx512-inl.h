// AVX-512 instructions that Highway 1.0.3 has no function for.
#if defined(SEXTANT_BASE_SIMD_AVX512_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SEXTANT_BASE_SIMD_AVX512_INL_H_
#undef SEXTANT_BASE_SIMD_AVX512_INL_H_
#else
#define SEXTANT_BASE_SIMD_AVX512_INL_H_
#endif

#include "hwy/highway.h"

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
HWY_BEFORE_NAMESPACE();
namespace sextant {
namespace HWY_NAMESPACE {

using Floats512 = hwy::HWY_NAMESPACE::Vec512<float>;
using Ints = hwy::HWY_NAMESPACE::Vec512<int32_t>;

// Lane i of the result is the element with index (indices[i] mod 32) of `first` followed by
// `second`.
HWY_INLINE Ints look_up_32(Ints indices, Ints first, Ints second) {
  return Ints{_mm512_permutex2var_epi32(first.raw, indices.raw, second.raw)};
}

// Eight pairs of floats, selected by `indices`: 0 to 7 are pairs of a, 8 to 15 pairs of b.
HWY_INLINE Floats512 look_up_pairs(Floats512 a, Floats512 b, __m512i indices) {
  return Floats512{_mm512_castpd_ps(
      _mm512_permutex2var_pd(_mm512_castps_pd(a.raw), indices, _mm512_castps_pd(b.raw)))};
}

// Interleaves a and b, by pairs of floats or by blocks of four, from their lower or upper halves.
HWY_INLINE Floats512 interleave_pairs(Floats512 a, Floats512 b, bool upper) {
  return look_up_pairs(a, b,
                       upper ? _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15)
                             : _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11));
}
HWY_INLINE Floats512 interleave_blocks(Floats512 a, Floats512 b, bool upper) {
  return look_up_pairs(a, b,
                       upper ? _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15)
                             : _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11));
}

// Interleaves the even (odd) blocks of four floats of a and b.
HWY_INLINE Floats512 even_blocks(Floats512 a, Floats512 b) {
  return look_up_pairs(a, b, _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13));
}
HWY_INLINE Floats512 odd_blocks(Floats512 a, Floats512 b) {
  return look_up_pairs(a, b, _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15));
}

// The even (odd) blocks of a, followed by the same blocks of b.
HWY_INLINE Floats512 concat_even_blocks(Floats512 a, Floats512 b) {
  return Floats512{_mm512_shuffle_f32x4(a.raw, b.raw, 0x88)};
}
HWY_INLINE Floats512 concat_odd_blocks(Floats512 a, Floats512 b) {
  return Floats512{_mm512_shuffle_f32x4(a.raw, b.raw, 0xdd)};
}

// a * b + c, or 0 where x < least. A NaN in x does not give 0.
HWY_INLINE Floats512 mul_add_unless_less(Floats512 a, Floats512 b, Floats512 c, Floats512 x,
                                         Floats512 least) {
  const __mmask16 some = _mm512_cmp_ps_mask(x.raw, least.raw, _CMP_NLT_UQ);
  return Floats512{_mm512_maskz_fmadd_ps(some, a.raw, b.raw, c.raw)};
}

// add_product_of_pairs() returns sum + a.x * b.x + a.y * b.y for pairs of bfloat16, one pair in the
// place of a float32. round_to_pairs() rounds the values of two vectors, one after the other, to
// bfloat16 (ties to even). Both need AVX512_BF16 (has_bfloat16_products()), which is not a target
// of its own here, so that the compiler offers no intrinsics for it.
template <class V>
HWY_INLINE V add_product_of_pairs(V a, V b, V sum) {
  __asm__("vdpbf16ps %2, %1, %0" : "+v"(sum.raw) : "v"(a.raw), "v"(b.raw));
  return sum;
}
HWY_INLINE Floats512 round_to_pairs(Floats512 first, Floats512 second) {
  Floats512 pairs;
  __asm__("vcvtne2ps2bf16 %1, %2, %0" : "=v"(pairs.raw) : "v"(first.raw), "v"(second.raw));
  return pairs;
}
inline bool has_bfloat16_products() { return __builtin_cpu_supports("avx512bf16") != 0; }

}  // namespace HWY_NAMESPACE
}  // namespace sextant
HWY_AFTER_NAMESPACE();
#endif

#endif
