// As in position/turns.cc, a phase is turned on by multiples of a step whose
// cos and sin are known,
//
//   cos(a + t) = cos a cos t - sin a sin t,  sin(a + t) = sin a cos t + cos a
//   sin t
//
// in doubles; here with few exact phases, the rest of the multiples coming from
// products of those:
//
//   start + 512 i, step 1, 8, 64    exact        multiples 2 .. 7 of each step,
//   then all below 64 and
//                                                eight anchors: products
//
// An exact value is within 2^-50, so a vector (cos, sin) within 2^-49.5. A
// product adds up the errors of its factors and rounds (2^-51.5), so the
// seventh multiple is within 8.5 * 2^-49.5, a multiple below 64 within 17.25,
// an anchor within 9.75, and what is turned on within 27.25 * 2^-49.5 < 2^-44.
// Where that leaves open how a value rounds to float32 (in a block of 64 of small sines, as slow
// frequencies have, that is nearly always so for some), that one is done again by its exact phase.
#include "sextant/attention/cpu/cos_sin.h"

#include <algorithm>
#include <bit>

#include "sextant/attention/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sextant/attention/cpu/cos_sin.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each target
//
#include "hwy/highway.h"

#ifndef SEXTANT_ATTENTION_CPU_COS_SIN_ONCE
#define SEXTANT_ATTENTION_CPU_COS_SIN_ONCE
namespace sextant::cpu {

inline constexpr int64_t kFew = 8;              // multiples of one step
inline constexpr int64_t kBlock = kFew * kFew;  // phases

// cos and sin of the first multiples of a step.
template <int64_t kCount>
struct Multiples {
  alignas(64) double cos[kCount];
  alignas(64) double sin[kCount];
};

}  // namespace sextant::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace sextant::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F64 = hn::CappedTag<double, 8>;
using F32 = hn::Rebind<float, F64>;

// All multiples: coarse ones turned on by fine ones.
void multiply_out(const Multiples<kFew>& coarse, const Multiples<kFew>& fine,
                  Multiples<kBlock>& to) {
  const F64 d;
  for (int64_t m = 0; m < kFew; ++m) {
    const auto a = hn::Set(d, coarse.cos[m]), b = hn::Set(d, coarse.sin[m]);
    for (int64_t n = 0; n < kFew; n += static_cast<int64_t>(hn::MaxLanes(d))) {
      const auto c = hn::Load(d, fine.cos + n), s = hn::Load(d, fine.sin + n);
      hn::Store(hn::NegMulAdd(b, s, hn::Mul(a, c)), d, to.cos + m * kFew + n);
      hn::Store(hn::MulAdd(a, s, hn::Mul(b, c)), d, to.sin + m * kFew + n);
    }
  }
}

// What is turned on may be off by this.
inline constexpr double kDoubt = 0x1p-44;

// Rounds the least that some values may be to float32, and stores it. Returns what differs from the
// greatest that they may be, rounded: 0 where rounding is not in doubt.
HWY_INLINE hn::Vec<hn::RebindToUnsigned<F32>> round_least(hn::Vec<F64> least, float* to) {
  const F64 d;
  const F32 f;
  const hn::RebindToUnsigned<F32> u;
  const auto low = hn::DemoteTo(f, least);
  const auto high = hn::DemoteTo(f, hn::Add(least, hn::Set(d, 2 * kDoubt)));
  hn::StoreU(low, f, to);
  return hn::Xor(hn::BitCast(u, low), hn::BitCast(u, high));
}

// `blocks` blocks turned on from an anchor each. open: for each block, in which phases some value may
// round either way, one bit each.
void turn_on(const Multiples<kFew>& anchors, int64_t blocks, const Multiples<kBlock>& by,
             float* cos, float* sin, uint64_t* open) {
  const F64 d;
  const hn::RebindToUnsigned<F32> u;
  constexpr auto kVector = static_cast<int64_t>(hn::MaxLanes(d));
  const auto zero = hn::Zero(u);
  for (int64_t block = 0; block < blocks; ++block, cos += kBlock, sin += kBlock) {
    const auto a = hn::Set(d, anchors.cos[block]), b = hn::Set(d, anchors.sin[block]);
    const auto doubt = hn::Set(d, kDoubt);
    // Of the phases from the n-th on, as many as a vector has.
    const auto round_both = [&](int64_t n) HWY_ATTR {
      const auto c = hn::Load(d, by.cos + n), s = hn::Load(d, by.sin + n);
      return hn::Or(round_least(hn::NegMulAdd(b, s, hn::MulSub(a, c, doubt)), cos + n),
                    round_least(hn::MulAdd(a, s, hn::MulSub(b, c, doubt)), sin + n));
    };
    auto any = zero;
    for (int64_t n = 0; n < kBlock; n += kVector) any = hn::Or(any, round_both(n));
    open[block] = 0;
    if (hn::AllTrue(u, hn::Eq(any, zero))) continue;
    for (int64_t n = 0; n < kBlock; n += kVector) {
      uint8_t bits[8] = {};
      hn::StoreMaskBits(u, hn::Ne(round_both(n), zero), bits);
      open[block] |= uint64_t{bits[0]} << n;
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sextant::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sextant::cpu {
namespace {

HWY_EXPORT(multiply_out);
HWY_EXPORT(turn_on);

CosSin product(CosSin a, CosSin b) {
  return {a.cos * b.cos - a.sin * b.sin, a.sin * b.cos + a.cos * b.sin};
}

Multiples<kFew> few_multiples(Turns step) {
  CosSin few[kFew];
  few[1] = cos_sin(step);
  for (int64_t n = 2; n < kFew; ++n) few[n] = product(few[n / 2], few[n - n / 2]);
  Multiples<kFew> result;
  for (int64_t n = 0; n < kFew; ++n) {
    result.cos[n] = few[n].cos;
    result.sin[n] = few[n].sin;
  }
  return result;
}

// The phases of a block whose bits are set, of those below `count`.
void exact(Turns start, Turns step, int64_t count, uint64_t open, float* cos, float* sin) {
  for (; open != 0; open &= open - 1) {
    const int64_t n = std::countr_zero(open);
    if (n >= count) return;
    const CosSin value = cos_sin(start + step * n);
    cos[n] = static_cast<float>(value.cos);
    sin[n] = static_cast<float>(value.sin);
  }
}

// The first `count` phases of one block.
void turn_on_part(Turns start, Turns step, int64_t count, const Multiples<kBlock>& by, float* cos,
                  float* sin) {
  const CosSin first = cos_sin(start);
  Multiples<kFew> anchor;
  anchor.cos[0] = first.cos;
  anchor.sin[0] = first.sin;
  float block[2][kBlock];
  uint64_t open = 0;
  HWY_DYNAMIC_DISPATCH(turn_on)(anchor, 1, by, block[0], block[1], &open);
  std::copy_n(block[0], count, cos);
  std::copy_n(block[1], count, sin);
  exact(start, step, count, open, cos, sin);
}

}  // namespace

void fast_cos_sin_run(Turns start, Turns step, int64_t count, float* cos, float* sin) {
  constexpr int64_t kShortest = 2 * kBlock;
  if (count < kShortest) return cos_sin_run(start, step, count, cos, sin);
  Multiples<kBlock> by;
  HWY_DYNAMIC_DISPATCH(multiply_out)(few_multiples(step * kFew), few_multiples(step), by);
  const Multiples<kFew> blocks = few_multiples(step * kBlock);
  for (int64_t at = 0; at + kBlock <= count; at += kFew * kBlock) {
    const int64_t some = std::min(kFew, (count - at) / kBlock);
    const CosSin first = cos_sin(start + step * at);
    Multiples<kFew> anchors;
    for (int64_t i = 0; i < kFew; ++i) {
      const CosSin anchor = product(first, {blocks.cos[i], blocks.sin[i]});
      anchors.cos[i] = anchor.cos;
      anchors.sin[i] = anchor.sin;
    }
    uint64_t open[kFew];
    HWY_DYNAMIC_DISPATCH(turn_on)(anchors, some, by, cos + at, sin + at, open);
    for (int64_t i = 0; i < some; ++i) {
      const int64_t block = at + i * kBlock;
      exact(start + step * block, step, kBlock, open[i], cos + block, sin + block);
    }
  }
  const int64_t whole = count / kBlock * kBlock;
  if (whole < count)
    turn_on_part(start + step * whole, step, count - whole, by, cos + whole, sin + whole);
}

}  // namespace sextant::cpu
#endif
