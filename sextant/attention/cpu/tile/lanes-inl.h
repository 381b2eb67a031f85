// Sixteen floats, whatever the target's vector length: one vector of AVX-512, two of AVX2, four of
// SSE4 or NEON. All kernels work in these units, so the order of their sums is the same on every
// target.
//
// The include guard is Highway's, because this file is compiled once for each target.
#if defined(SEXTANT_ATTENTION_CPU_TILE_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SEXTANT_ATTENTION_CPU_TILE_LANES_INL_H_
#undef SEXTANT_ATTENTION_CPU_TILE_LANES_INL_H_
#else
#define SEXTANT_ATTENTION_CPU_TILE_LANES_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"
#include "sextant/attention/cpu/sizes.h"
#include "sextant/base/simd/exp-inl.h"
#include "sextant/base/view.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::CappedTag<float, 16>;
using I32 = hn::RebindToSigned<F32>;
using V = hn::Vec<F32>;

inline constexpr int kVectorLanes = static_cast<int>(hn::MaxLanes(F32()));  // lanes of a vector
inline constexpr int kVectors = 16 / kVectorLanes;

// Floats that fit into the L2 cache, as a guess from the vector length: cores with AVX-512 have a
// MB or more, many others half of that.
inline constexpr int64_t kFloatsOfL2 = (kVectors == 1 ? 256 : 128) * 1024;

struct Lanes {
  V part[kVectors];
  // A declared constructor has the target's attributes, without which g++ cannot construct NEON's
  // vectors.
  Lanes() = default;
};

// A vector of float32 from values of any format.
template <class D>
HWY_INLINE hn::Vec<D> load_as(D d, const float* from) {
  return hn::LoadU(d, from);
}
template <class D>
HWY_INLINE hn::Vec<D> load_as(D d, const Bfloat16* from) {
  const hn::Rebind<uint16_t, D> d16;
  const hn::RebindToUnsigned<D> d32;
  const auto bits = hn::LoadU(d16, reinterpret_cast<const uint16_t*>(from));
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(d32, bits)));
}
template <class D>
HWY_INLINE hn::Vec<D> load_as(D d, const Float16* from) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2 && !defined(HWY_DISABLE_F16C)
  const hn::Rebind<hwy::float16_t, D> d16;
  return hn::PromoteTo(d, hn::LoadU(d16, reinterpret_cast<const hwy::float16_t*>(from)));
#else
  // The same steps as to_float(): Highway's conversion, where the machine has no instruction for
  // it, does not handle infinity.
  const hn::RebindToSigned<D> di;
  const hn::Rebind<uint16_t, D> d16;
  const auto bits = hn::PromoteTo(di, hn::LoadU(d16, reinterpret_cast<const uint16_t*>(from)));
  const auto magnitude = hn::And(bits, hn::Set(di, 0x7fff)), wide = hn::ShiftLeft<13>(magnitude);
  const auto subnormal = hn::Mul(hn::ConvertTo(d, magnitude), hn::Set(d, 0x1p-24F));
  const auto normal = hn::BitCast(d, hn::Add(wide, hn::Set(di, (127 - 15) << 23)));
  const auto special = hn::BitCast(d, hn::Or(wide, hn::Set(di, 0x7f800000)));
  const auto above = [&](int32_t least) HWY_ATTR {
    return hn::RebindMask(d, hn::Gt(wide, hn::Set(di, least - 1)));
  };
  const auto finite = hn::IfThenElse(above(1 << 23), normal, subnormal);
  const auto sign = hn::BitCast(d, hn::ShiftLeft<16>(hn::Sub(bits, magnitude)));
  return hn::Or(hn::IfThenElse(above(31 << 23), special, finite), sign);
#endif
}
template <class Number>
HWY_INLINE V load_part(const Number* from) {
  return load_as(F32(), from);
}

template <class Number>  // float, Bfloat16 or Float16
HWY_INLINE Lanes load(const Number* from) {
  Lanes x;
  for (int p = 0; p < kVectors; ++p) x.part[p] = load_part(from + p * kVectorLanes);
  return x;
}

// Calls f with `at` as a pointer to the type that `dtype` names.
template <class F>
HWY_INLINE void with_type(DType dtype, const void* at, F&& f) {
  switch (dtype) {
    case DType::kBfloat16:
      return f(static_cast<const Bfloat16*>(at));
    case DType::kFloat16:
      return f(static_cast<const Float16*>(at));
    case DType::kFloat32:
    case DType::kFloat64:  // refused by check_score.h
      return f(static_cast<const float*>(at));
  }
}

HWY_INLINE void store(const Lanes& x, float* to) {
  for (int p = 0; p < kVectors; ++p) hn::StoreU(x.part[p], F32(), to + p * kVectorLanes);
}

HWY_INLINE Lanes set(float value) {
  Lanes x;
  for (int p = 0; p < kVectors; ++p) x.part[p] = hn::Set(F32(), value);
  return x;
}

HWY_INLINE Lanes add(const Lanes& a, const Lanes& b) {
  Lanes x;
  for (int p = 0; p < kVectors; ++p) x.part[p] = hn::Add(a.part[p], b.part[p]);
  return x;
}

HWY_INLINE Lanes sub(const Lanes& a, const Lanes& b) {
  Lanes x;
  for (int p = 0; p < kVectors; ++p) x.part[p] = hn::Sub(a.part[p], b.part[p]);
  return x;
}

HWY_INLINE Lanes mul(const Lanes& a, const Lanes& b) {
  Lanes x;
  for (int p = 0; p < kVectors; ++p) x.part[p] = hn::Mul(a.part[p], b.part[p]);
  return x;
}

// a * b + c
HWY_INLINE Lanes mul_add(const Lanes& a, const Lanes& b, const Lanes& c) {
  Lanes x;
  for (int p = 0; p < kVectors; ++p) x.part[p] = hn::MulAdd(a.part[p], b.part[p], c.part[p]);
  return x;
}

// c - a * b
HWY_INLINE Lanes neg_mul_add(const Lanes& a, const Lanes& b, const Lanes& c) {
  Lanes x;
  for (int p = 0; p < kVectors; ++p) x.part[p] = hn::NegMulAdd(a.part[p], b.part[p], c.part[p]);
  return x;
}

// With a NaN the result is either operand, depending on the target.
HWY_INLINE Lanes max(const Lanes& a, const Lanes& b) {
  Lanes x;
  for (int p = 0; p < kVectors; ++p) x.part[p] = hn::Max(a.part[p], b.part[p]);
  return x;
}

HWY_INLINE Lanes exp(const Lanes& a) {
  Lanes x;
  for (int p = 0; p < kVectors; ++p) x.part[p] = sextant::HWY_NAMESPACE::exp(F32(), a.part[p]);
  return x;
}

// Lanes [first, last), and zeros in the others.
HWY_INLINE Lanes only(const Lanes& a, int64_t first, int64_t last) {
  Lanes x;
  for (int p = 0; p < kVectors; ++p) {
    const auto before = [&](int64_t n) HWY_ATTR {
      const int64_t mine = n - p * kVectorLanes;
      return hn::FirstN(F32(), static_cast<size_t>(mine < 0              ? 0
                                                   : mine > kVectorLanes ? kVectorLanes
                                                                         : mine));
    };
    x.part[p] = hn::IfThenZeroElse(before(first), hn::IfThenElseZero(before(last), a.part[p]));
  }
  return x;
}

// The order of the sum depends on the target.
HWY_INLINE float sum_of(const Lanes& x) {
  V sum = x.part[0];
  for (int p = 1; p < kVectors; ++p) sum = hn::Add(sum, x.part[p]);
  return hn::GetLane(hn::SumOfLanes(F32(), sum));
}

HWY_INLINE float max_of(const Lanes& x) {
  V row_max = x.part[0];
  for (int p = 1; p < kVectors; ++p) row_max = hn::Max(row_max, x.part[p]);
  return hn::GetLane(hn::MaxOfLanes(F32(), row_max));
}

// False if any of `count` floats (a multiple of kLanes) is infinite or NaN: times 0 these are NaN.
inline HWY_NOINLINE bool all_finite(const float* x, int64_t count) {
  const Lanes zero = set(0);
  constexpr int64_t kAtOnce = 4;  // independent sums, for latency
  Lanes sum[kAtOnce] = {zero, zero, zero, zero};
  int64_t n = 0;
  for (; n + kAtOnce * kLanes <= count; n += kAtOnce * kLanes)
    for (int64_t i = 0; i < kAtOnce; ++i) sum[i] = mul_add(load(x + n + i * kLanes), zero, sum[i]);
  for (; n < count; n += kLanes) sum[0] = mul_add(load(x + n), zero, sum[0]);
  return sum_of(add(add(sum[0], sum[1]), add(sum[2], sum[3]))) == 0;
}

}  // namespace HWY_NAMESPACE
}  // namespace sextant::cpu
HWY_AFTER_NAMESPACE();

#endif
