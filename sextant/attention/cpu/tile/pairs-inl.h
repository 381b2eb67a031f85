// Pairs of bfloat16, each in the place of one float32, and their product: the arithmetic of the
// cpu-bf16 backend on machines without AMX.
//
//   pair = (x, y)      x in the lower 16 bits        c += a.x * b.x + a.y * b.y
//
// Of queries and keys, columns 2 c and 2 c + 1 are paired; of weights and values, keys 2 j and 2 j
// + 1. With AVX512_BF16 (or NEON's bfdot, which Highway supports from 1.2 on) the product is one
// instruction, and so is the pairing of weights; elsewhere the product is two multiply-adds of
// values that are converted back to float32, which rounds sums differently.
#if defined(SEXTANT_ATTENTION_CPU_TILE_PAIRS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SEXTANT_ATTENTION_CPU_TILE_PAIRS_INL_H_
#undef SEXTANT_ATTENTION_CPU_TILE_PAIRS_INL_H_
#else
#define SEXTANT_ATTENTION_CPU_TILE_PAIRS_INL_H_
#endif

#include <type_traits>

#include "sextant/attention/cpu/tile/lanes-inl.h"
#include "sextant/base/simd/avx512-inl.h"
#include "sextant/base/simd/bfloat16-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::cpu {
namespace HWY_NAMESPACE {

using sextant::HWY_NAMESPACE::Bits;
using sextant::HWY_NAMESPACE::join;
using sextant::HWY_NAMESPACE::only_upper;
using sextant::HWY_NAMESPACE::round;

inline constexpr uint32_t kUpper = 0xffff0000, kPairOfOnes = 0x3f803f80;

// a * b of two pairs, added to sum, by two multiply-adds.
template <class D, class VD = hn::Vec<D>>
HWY_INLINE VD dot_in_steps(D d, VD a, VD b, VD sum) {
  const hn::RebindToUnsigned<D> bits;
  const auto lower = [&](VD x) HWY_ATTR {
    return hn::BitCast(d, hn::ShiftLeft<16>(hn::BitCast(bits, x)));
  };
  const auto upper = [&](VD x) HWY_ATTR {
    return hn::BitCast(d, hn::And(hn::BitCast(bits, x), hn::Set(bits, kUpper)));
  };
  return hn::MulAdd(lower(a), lower(b), hn::MulAdd(upper(a), upper(b), sum));
}

// round() for weights, which have no sign, in half the time: a tie goes away from zero.
HWY_INLINE Bits<F32> round_weight(V x) {
  const hn::RebindToUnsigned<F32> d;
  constexpr uint32_t kGreatest = 0x7fff7fff;  // NaN, too, must not be carried into the sign
  return only_upper(hn::Add(hn::Min(hn::BitCast(d, x), hn::Set(d, kGreatest)), hn::Set(d, 0x8000)));
}

// Rounds two consecutive vectors of weights into pairs of neighbours.
HWY_INLINE V pair_in_steps(V first, V second) {
#if HWY_TARGET == HWY_SCALAR
  return join(round_weight(first), round_weight(second));
#else
  return join(round_weight(hn::ConcatEven(F32(), second, first)),
              round_weight(hn::ConcatOdd(F32(), second, first)));
#endif
}

// The same by instructions, which round to even. kHaveDots: whether none, some or all machines of
// this target have them.
enum class Have { kNone, kSome, kAll };
#if HWY_NATIVE_DOT_BF16  // undefined, hence 0, before Highway 1.2
inline constexpr Have kHaveDots = Have::kAll;
inline bool has_dots() { return true; }
template <class D, class VD = hn::Vec<D>>
HWY_INLINE VD dot_at_once(D d, VD a, VD b, VD sum) {
  const hn::Repartition<hwy::bfloat16_t, D> pairs;
  VD unused = hn::Zero(d);
  return hn::ReorderWidenMulAccumulate(d, hn::BitCast(pairs, a), hn::BitCast(pairs, b), sum,
                                       unused);
}
HWY_INLINE V pair_at_once(V first, V second) {
  const hn::Repartition<hwy::bfloat16_t, F32> pairs;
  return hn::BitCast(F32(), hn::OrderedDemote2To(pairs, first, second));
}
#elif HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
inline constexpr Have kHaveDots = Have::kSome;
inline bool has_dots() { return sextant::HWY_NAMESPACE::has_bfloat16_products(); }
template <class D, class VD = hn::Vec<D>>
HWY_INLINE VD dot_at_once(D, VD a, VD b, VD sum) {
  return sextant::HWY_NAMESPACE::add_product_of_pairs(a, b, sum);
}
HWY_INLINE V pair_at_once(V first, V second) {
  return sextant::HWY_NAMESPACE::round_to_pairs(first, second);
}
#else
inline constexpr Have kHaveDots = Have::kNone;
inline bool has_dots() { return false; }
template <class D, class VD = hn::Vec<D>>
HWY_INLINE VD dot_at_once(D d, VD a, VD b, VD sum) {
  return dot_in_steps(d, a, b, sum);
}
HWY_INLINE V pair_at_once(V first, V second) { return pair_in_steps(first, second); }
#endif

// f(std::true_type()) if pairs are multiplied at once (Problem::dots), else f(std::false_type()).
template <class F>
HWY_INLINE void with_dots([[maybe_unused]] bool dots, F&& f) {
  if constexpr (kHaveDots != Have::kSome)
    // NOLINTNEXTLINE(bugprone-branch-clone): the types differ
    f(std::bool_constant<kHaveDots == Have::kAll>());
  else if (dots)
    f(std::true_type());
  else
    f(std::false_type());
}

// Rounds the values of two rows into pairs.
template <class Number>  // float or Float16
HWY_INLINE V pair_of(const Number* x, const Number* y) {
  return join(round(load_part(x)), round(load_part(y)));
}
HWY_INLINE V pair_of(const Bfloat16* x, const Bfloat16* y) {
  const hn::RebindToUnsigned<F32> d;
  return join(hn::BitCast(d, load_part(x)), hn::BitCast(d, load_part(y)));
}

// Pairs rows of width16 values, row 2 j with row 2 j + 1; the last of an odd number is paired with
// 0.
template <class Number>  // float, Bfloat16 or Float16
HWY_NOINLINE void pair_rows(const Number* from, int64_t row_stride, int64_t rows, int64_t width16,
                            float* to) {
  for (int64_t i = 0; i < rows; i += 2, from += 2 * row_stride, to += width16)
    for (int64_t c = 0; c < width16; c += kVectorLanes) {
      V pair;
      if (HWY_LIKELY(i + 1 < rows))
        pair = pair_of(from + c, from + row_stride + c);
      else
        pair = join(round(load_part(from + c)), hn::Zero(hn::RebindToUnsigned<F32>()));
      hn::StoreU(pair, F32(), to + c);
    }
}

// Pairs the columns of a panel of sixteen rows, [columns16][kLanes], into [columns16 / 2][kLanes].
HWY_INLINE void pair_panel(const float* panel, int64_t columns16, float* to) {
  for (int64_t c = 0; c < columns16; c += 2, panel += 2 * kLanes, to += kLanes)
    for (int p = 0; p < kVectors; ++p)
      hn::StoreU(join(round(load_part(panel + p * kVectorLanes)),
                      round(load_part(panel + kLanes + p * kVectorLanes))),
                 F32(), to + p * kVectorLanes);
}

}  // namespace HWY_NAMESPACE
}  // namespace sextant::cpu
HWY_AFTER_NAMESPACE();

#endif
