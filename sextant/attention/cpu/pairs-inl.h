// Pairs of bfloat16 in the place of one float32 each, and their product: the sums of the cpu-bf16 backend.
//
//   pair = (x, y)      x in the lower 16 bits        c += a.x * b.x + a.y * b.y
//
// Whatever is paired lies in vectors one above the other, so that pairing moves nothing across lanes: columns 2 c
// and 2 c + 1 of queries and keys, which are lines of a panel; and, for weights and values, keys that are kLanes
// apart (pair_rows()). One instruction does it where the machine has AVX512_BF16 (or NEON's bfdot) and Highway knows
// it (from 1.2 on); elsewhere two multiply-adds of what is widened again, which differs in how sums are rounded.
#if defined(SEXTANT_ATTENTION_CPU_PAIRS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SEXTANT_ATTENTION_CPU_PAIRS_INL_H_
#undef SEXTANT_ATTENTION_CPU_PAIRS_INL_H_
#else
#define SEXTANT_ATTENTION_CPU_PAIRS_INL_H_
#endif

#include "sextant/attention/cpu/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::cpu {
namespace HWY_NAMESPACE {

template <class D>
using Bits = hn::Vec<hn::RebindToUnsigned<D>>;

inline constexpr uint32_t kUpper = 0xffff0000, kPairOfOnes = 0x3f803f80;

#if defined(HWY_NATIVE_DOT_BF16) && HWY_NATIVE_DOT_BF16  // not known before Highway 1.2
inline constexpr bool kHasDots = true;
#else
inline constexpr bool kHasDots = false;
#endif

// a * b of two pairs, added to sum.
template <class D, class VD = hn::Vec<D>>
HWY_INLINE VD add_dot(D d, VD a, VD b, VD sum) {
  if constexpr (kHasDots) {
    const hn::Repartition<hwy::bfloat16_t, D> pairs;
    VD unused = hn::Zero(d);
    return hn::ReorderWidenMulAccumulate(d, hn::BitCast(pairs, a), hn::BitCast(pairs, b), sum,
                                         unused);
  }
  const hn::RebindToUnsigned<D> bits;
  const auto lower = [&](VD x) HWY_ATTR {
    return hn::BitCast(d, hn::ShiftLeft<16>(hn::BitCast(bits, x)));
  };
  const auto upper = [&](VD x) HWY_ATTR {
    return hn::BitCast(d, hn::And(hn::BitCast(bits, x), hn::Set(bits, kUpper)));
  };
  return hn::MulAdd(lower(a), lower(b), hn::MulAdd(upper(a), upper(b), sum));
}

HWY_INLINE Bits<F32> only_upper(Bits<F32> x) {
  return hn::And(x, hn::Set(hn::RebindToUnsigned<F32>(), kUpper));
}

// The bits of the nearest bfloat16, of two the even one. NaN stays NaN; beyond the greatest is infinity.
HWY_INLINE Bits<F32> round(V x) {
  const hn::RebindToUnsigned<F32> d;
  const auto bits = hn::BitCast(d, x);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 1));
  const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(d, 0x7fff)));
  const auto quiet = hn::Or(bits, hn::Set(d, 0x00400000));
  return only_upper(hn::IfThenElse(hn::RebindMask(d, hn::Ne(x, x)), quiet, rounded));
}

// As that for weights, which have no sign, in half the time: of two the greater one.
HWY_INLINE Bits<F32> round_weight(V x) {
  const hn::RebindToUnsigned<F32> d;
  constexpr uint32_t kGreatest = 0x7fff7fff;  // NaN, too, must not be carried into the sign
  return only_upper(hn::Add(hn::Min(hn::BitCast(d, x), hn::Set(d, kGreatest)), hn::Set(d, 0x8000)));
}

// Two bfloat16, as float32 has them, into a pair.
HWY_INLINE V join(Bits<F32> x, Bits<F32> y) {
  return hn::BitCast(F32(), hn::Or(hn::ShiftRight<16>(x), y));
}

// Keys are paired by blocks of this many: of block n, the i-th with the one kLanes after it is pair kLanes n + i.
inline constexpr int64_t kPairBlock = 2 * kLanes;

// The pairs that have any of the keys [seen.first, seen.last), counted from the unit's first.
HWY_INLINE Run pairs_of(Run seen) {
  const int64_t first = round_down(seen.first, kPairBlock), last = round_up(seen.last, kPairBlock);
  const int64_t before = seen.first - first, after = last - seen.last;
  return {first / 2 + (before > kLanes ? before - kLanes : 0),
          last / 2 - (after > kLanes ? after - kLanes : 0)};
}

// Rows of keys in pairs, [width16] each, from rows whose width is padded to width16; those from `rows` on are 0.
HWY_INLINE void pair_rows(const float* from, int64_t row_stride, int64_t rows, int64_t width16,
                          float* to) {
  for (int64_t i = 0; i < rows; i += i % kLanes == kLanes - 1 ? kLanes + 1 : 1, to += width16) {
    const float* const lower = from + i * row_stride;
    const float* const upper = i + kLanes < rows ? lower + kLanes * row_stride : nullptr;
    for (int64_t c = 0; c < width16; c += kPart)
      hn::StoreU(
          join(round(load_part(lower + c)), round(upper ? load_part(upper + c) : hn::Zero(F32()))),
          F32(), to + c);
  }
}

// A panel of sixteen rows, [columns16][kLanes], into pairs of columns, [columns16 / 2][kLanes].
HWY_INLINE void pair_panel(const float* panel, int64_t columns16, float* to) {
  for (int64_t c = 0; c < columns16; c += 2, panel += 2 * kLanes, to += kLanes)
    for (int p = 0; p < kParts; ++p)
      hn::StoreU(
          join(round(load_part(panel + p * kPart)), round(load_part(panel + kLanes + p * kPart))),
          F32(), to + p * kPart);
}

}  // namespace HWY_NAMESPACE
}  // namespace sextant::cpu
HWY_AFTER_NAMESPACE();

#endif
