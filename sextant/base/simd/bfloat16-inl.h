// float32 values as bfloat16, stored in pairs, one pair in the place of a float32. There is one
// term, the rounded value, or three whose sum is the value:
//
//   x = a + b + c      a: x rounded to 8 bits
//                      b: the rest x - a, truncated to 8 bits
//                      c: the rest x - a - b
//
// The sum is exact if |x| >= 2^-100 or x = 0. Smaller values, whose terms AMX would flush to zero,
// and values that round to infinity do not `fit`; they are multiplied as float32 instead.
#if defined(SEXTANT_BASE_SIMD_BFLOAT16_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SEXTANT_BASE_SIMD_BFLOAT16_INL_H_
#undef SEXTANT_BASE_SIMD_BFLOAT16_INL_H_
#else
#define SEXTANT_BASE_SIMD_BFLOAT16_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace sextant {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D>
using Bits = hn::Vec<hn::RebindToUnsigned<D>>;

using Wide = hn::CappedTag<float, 16>;
using WideVec = hn::Vec<Wide>;
using WideInts = hn::RebindToSigned<Wide>;

HWY_INLINE Bits<Wide> only_upper(Bits<Wide> x) {
  return hn::And(x, hn::Set(hn::RebindToUnsigned<Wide>(), 0xffff0000));
}

// The bits of x rounded to bfloat16, ties to even. NaN stays NaN; values past the largest bfloat16
// become infinity.
HWY_INLINE Bits<Wide> round(WideVec x) {
  const hn::RebindToUnsigned<Wide> d;
  const auto bits = hn::BitCast(d, x);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 1));
  const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(d, 0x7fff)));
  const auto quiet = hn::Or(bits, hn::Set(d, 0x00400000));
  return only_upper(hn::IfThenElse(hn::RebindMask(d, hn::Ne(x, x)), quiet, rounded));
}

// Joins the upper halves of x and y, which are bfloat16, into a pair.
HWY_INLINE WideVec join(Bits<Wide> x, Bits<Wide> y) {
  const hn::RebindToUnsigned<Wide> d;
  return hn::BitCast(Wide(), hn::OrAnd(hn::ShiftRight<16>(x), y, hn::Set(d, 0xffff0000)));
}

// The bfloat16 terms of a vector of values, each in the upper half of a lane.
template <int kCount>
struct TermsOf {
  Bits<Wide> part[kCount];
};

template <int kCount>
HWY_INLINE TermsOf<kCount> split(WideVec x) {
  const hn::RebindToUnsigned<Wide> d;
  TermsOf<kCount> terms;
  if constexpr (kCount == 1) {
    terms.part[0] = round(x);
  } else {
    const Wide f;
    terms.part[0] = only_upper(hn::Add(hn::BitCast(d, x), hn::Set(d, 0x8000)));
    const WideVec left = hn::Sub(x, hn::BitCast(f, terms.part[0]));
    terms.part[1] = only_upper(hn::BitCast(d, left));
    // For |x| < 2^-110 this term has more than 8 bits, and join() drops the excess.
    terms.part[2] = hn::BitCast(d, hn::Sub(left, hn::BitCast(f, terms.part[1])));
  }
  return terms;
}

// Tracks the largest magnitude, to decide whether the values can be split into terms.
class Greatest {
 public:
  HWY_INLINE Greatest() : most_(hn::Zero(WideInts())) {}
  HWY_INLINE hn::Vec<WideInts> look(WideVec x) {
    const auto size = hn::And(hn::BitCast(WideInts(), x), hn::Set(WideInts(), 0x7fffffff));
    most_ = hn::Max(most_, size);
    return size;
  }
  // Whether no value is infinite or NaN, or rounds to infinity.
  HWY_INLINE bool finite() const {
    return hn::AllTrue(WideInts(), hn::Lt(most_, hn::Set(WideInts(), kMost)));
  }
  // Whether the largest value has exact terms, or all are 0; the error of smaller values is at most
  // 2^-26 of the largest.
  HWY_INLINE bool fits() const {
    const WideInts d;
    const bool some = !hn::AllFalse(d, hn::Gt(most_, hn::Set(d, kLeast - 1)));
    return finite() && (HWY_LIKELY(some) || hn::AllTrue(d, hn::Eq(most_, hn::Zero(d))));
  }

 protected:
  static constexpr int32_t kMost = 0x7f7f8000;          // the smallest that rounds to infinity
  static constexpr int32_t kLeast = (127 - 100) << 23;  // 2^-100

 private:
  hn::Vec<WideInts> most_;
};

// Tracks the smallest magnitude that is not 0, too.
class Fit : private Greatest {
 public:
  HWY_INLINE Fit() : least_(hn::Set(WideInts(), kMost)) {}
  HWY_INLINE void look(WideVec x) {
    const WideInts d;
    const auto size = Greatest::look(x);
    const auto none = hn::Eq(size, hn::Zero(d));
    least_ = hn::Min(least_, hn::IfThenElse(none, hn::Set(d, kMost), size));
  }
  // Whether all values have exact terms.
  HWY_INLINE bool all() const {
    return finite() && hn::AllTrue(WideInts(), hn::Gt(least_, hn::Set(WideInts(), kLeast - 1)));
  }

 private:
  hn::Vec<WideInts> least_;
};

// Stores pairs of x and y, one vector per term.
template <int kCount>
HWY_INLINE void put_pairs(const TermsOf<kCount>& x, const TermsOf<kCount>& y, float* to,
                          int64_t term_step) {
  for (int n = 0; n < kCount; ++n)
    hn::StoreU(join(x.part[n], y.part[n]), Wide(), to + n * term_step);
}

}  // namespace HWY_NAMESPACE
}  // namespace sextant
HWY_AFTER_NAMESPACE();

#endif
