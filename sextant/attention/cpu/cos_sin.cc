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
// A block in which that leaves open how some value rounds to float32 (1 in 200)
// is done again by exact phases.
#include "sextant/attention/cpu/cos_sin.h"

#include <algorithm>

#include "sextant/attention/cpu/targets.h"

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

// `blocks` blocks turned on from an anchor each. Returns those in which some value may round either way,
// one bit each: where a little less and a little more, cut where float32 ends, differ after half of its
// last place was added. (That is integer work, which has pipes of its own; conversions have few.)
uint32_t turn_on(const Multiples<kFew>& anchors, int64_t blocks, const Multiples<kBlock>& by,
                 float* cos, float* sin) {
  constexpr int kCut = 29;  // digits of a double that a float32 has no room for
  const F64 d;
  const hn::Rebind<float, F64> f;
  const hn::RebindToUnsigned<F64> u;
  const auto doubt = hn::Set(d, 0x1p-44);
  const auto half = hn::Set(u, uint64_t{1} << (kCut - 1));
  uint32_t result = 0;
  for (int64_t block = 0; block < blocks; ++block, cos += kBlock, sin += kBlock) {
    const auto a = hn::Set(d, anchors.cos[block]), b = hn::Set(d, anchors.sin[block]);
    auto open = hn::Zero(u);
    const auto write = [&](hn::Vec<F64> x, float* to) HWY_ATTR {
      const auto low = hn::Add(hn::BitCast(u, hn::Sub(x, doubt)), half);
      const auto high = hn::Add(hn::BitCast(u, hn::Add(x, doubt)), half);
      open = hn::Or(open, hn::Xor(low, high));
      hn::StoreU(hn::DemoteTo(f, x), f, to);
    };
    for (int64_t n = 0; n < kBlock; n += static_cast<int64_t>(hn::MaxLanes(d))) {
      const auto c = hn::Load(d, by.cos + n), s = hn::Load(d, by.sin + n);
      write(hn::NegMulAdd(b, s, hn::Mul(a, c)), cos + n);
      write(hn::MulAdd(a, s, hn::Mul(b, c)), sin + n);
    }
    const bool sure = hn::AllTrue(u, hn::Eq(hn::ShiftRight<kCut>(open), hn::Zero(u)));
    result |= uint32_t{!sure} << block;
  }
  return result;
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

void exact(Turns start, Turns step, int64_t count, float* cos, float* sin) {
  for (int64_t n = 0; n < count; ++n) {
    const CosSin value = cos_sin(start + step * n);
    cos[n] = static_cast<float>(value.cos);
    sin[n] = static_cast<float>(value.sin);
  }
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
    const uint32_t open = HWY_DYNAMIC_DISPATCH(turn_on)(anchors, some, by, cos + at, sin + at);
    for (int64_t i = 0; open >> i != 0; ++i)
      if ((open >> i & 1) != 0)
        exact(start + step * (at + i * kBlock), step, kBlock, cos + at + i * kBlock,
              sin + at + i * kBlock);
  }
  const int64_t whole = count / kBlock * kBlock;
  exact(start + step * whole, step, count - whole, cos + whole, sin + whole);
}

}  // namespace sextant::cpu
#endif
