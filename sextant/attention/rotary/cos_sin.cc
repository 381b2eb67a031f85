// A phase is advanced by multiples of a step whose cos and sin are known,
//
//   cos(a + t) = cos a cos t - sin a sin t,  sin(a + t) = sin a cos t + cos a sin t
//
// in doubles. The choice of steps depends on the rotary position (`time`) alone and not on where a
// run begins:
//
//   time = 2048 h + 256 b + 32 m + l,  0 <= b < 8,  0 <= m < 8,  0 <= l < 32
//   offset + f 2048 h       exact, for each h; f: the frequency
//   f, f 32                 exact
//   f 256 b, f 32 m, f l    products of these: their powers 1, 2, 4 ... by squaring, and one power
//                           for each bit of b, m and l
//
// The operations are always the same, so a value has the same bits in every run.
//
// Error bound. An exact cos or sin is within a relative error of 2^-50. A product adds the errors
// of its factors, and rounds the vector (cos, sin) by less than 2^-51.5. A value has at most 1 + 63
// + 31 exact factors, so before it is rounded to float32 it is within 95 * 2^-50 + 94 * 2^-51.5 < E
// = 2^-42.9. This is too much next to a zero, so values less than 2^-16 of a turn from a quarter
// turn (one in 2^13) are recomputed from their exact phase. All others are above 6.28 * 2^-16, and
// E is 2^-29.5 of that: at most 0.023 ulp of float32, 0.523 with the rounding.
//
// Slow pairs stay near a zero for many positions. There the smaller one of cos and sin has a small
// error, too: each product in its sum has a small factor, so by the same counting it is within E
// times the sum of its factors' angles. At distance d (in turns) from a quarter turn this sum is at
// most 2 pi (d + 2 * 2048 |frequency|), and the value is at least 2 pi d * 0.9. So where
// |frequency| < 2^-15-s, only values within 2^-16-s turns have to be recomputed: the error of all
// others is at most E (1 + 2^13) / 0.9 < 2^-29.5 of the value. s is the largest integer for which
// this holds.
//
// The distance of a phase from a quarter turn is tested on integers, the first 32 bits behind the
// binary point of 4 * 2^s * phase. (They are near zero at other multiples of 2^-2-s turns as well,
// where recomputing does no harm.)
#include "sextant/attention/rotary/cos_sin.h"

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "sextant/base/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sextant/attention/rotary/cos_sin.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each target
//
#include "hwy/highway.h"

#ifndef SEXTANT_ATTENTION_COS_SIN_ONCE
#define SEXTANT_ATTENTION_COS_SIN_ONCE
namespace sextant {

inline constexpr int64_t kGroup = 32;                          // positions for each m
inline constexpr int64_t kGroups = 8;                          // m for each b
inline constexpr int64_t kPositionsAtOnce = kGroups * kGroup;  // positions for each b
inline constexpr int64_t kLap = 8 * kPositionsAtOnce;          // positions for each h

// cos and sin of `count` phases.
template <int64_t count>
struct Arrows {
  alignas(64) double cos[count];
  alignas(64) double sin[count];
};

// Finds the positions of a lap (2048 positions) whose phase is near a zero: their mark is below
// kWidth.
class NearZeros {
 public:
  // 2^-16-s turns, plus the truncation errors of a lap's first mark and of the steps.
  static constexpr uint32_t kHalf = (uint32_t{1} << 18) + kLap;
  static constexpr uint32_t kWidth = 2 * kHalf + 1;

  explicit NearZeros(Turns frequency) {
    const Turns size = frequency.high >> 63 != 0 ? Turns{} - frequency : frequency;
    const int zeros =
        size.high != 0 ? std::countl_zero(size.high) : 64 + std::countl_zero(size.low);
    shift_ = 2 + std::max(zeros - 15, 0);
    step_ = bits(frequency);
  }

  // The mark of a lap's first position, and the increment from one position to the next.
  uint32_t first(Turns phase) const { return bits(phase) + kHalf; }
  uint32_t step() const { return step_; }

 private:
  uint32_t bits(Turns a) const {
    const uint64_t top =
        shift_ < 64 ? a.high << shift_ | a.low >> (64 - shift_) : a.low << (shift_ - 64);
    return static_cast<uint32_t>(top >> 32);
  }

  int shift_ = 2;
  uint32_t step_ = 0;
};

}  // namespace sextant
#endif

HWY_BEFORE_NAMESPACE();
namespace sextant {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F64 = hn::CappedTag<double, 8>;
using F32 = hn::Rebind<float, F64>;
using U32 = hn::CappedTag<uint32_t, 16>;

inline constexpr auto kVector = static_cast<int64_t>(hn::MaxLanes(F64()));
inline constexpr auto kMarks = static_cast<int64_t>(hn::MaxLanes(U32()));

struct Arrow {
  hn::Vec<F64> cos, sin;
  // A constructor declared here has the target's attributes, without which g++ cannot create NEON
  // vectors in it.
  Arrow() = default;
  HWY_INLINE Arrow(hn::Vec<F64> cos_, hn::Vec<F64> sin_) : cos(cos_), sin(sin_) {}
};

HWY_INLINE Arrow all(double cos, double sin) { return {hn::Set(F64(), cos), hn::Set(F64(), sin)}; }

HWY_INLINE Arrow rotated(Arrow a, Arrow by) {
  return {hn::NegMulAdd(a.sin, by.sin, hn::Mul(a.cos, by.cos)),
          hn::MulAdd(a.cos, by.sin, hn::Mul(a.sin, by.cos))};
}

template <int64_t count>
HWY_INLINE Arrow load(const Arrows<count>& from, int64_t n) {
  return {hn::Load(F64(), from.cos + n), hn::Load(F64(), from.sin + n)};
}

template <int64_t count>
HWY_INLINE void store(Arrow a, Arrows<count>& to, int64_t n) {
  hn::Store(a.cos, F64(), to.cos + n);
  hn::Store(a.sin, F64(), to.sin + n);
}

// The powers 1, 2, 4 ... of a step, each broadcast to all lanes.
template <size_t count>
HWY_INLINE void square_on(CosSin step, Arrow (&powers)[count]) {
  powers[0] = all(step.cos, step.sin);
  for (size_t n = 1; n < count; ++n) powers[n] = rotated(powers[n - 1], powers[n - 1]);
}

// The multiples 0 .. 7 of a step.
template <int64_t count>
HWY_INLINE void multiply_out(const Arrow* powers, Arrows<count>& to) {
  const F64 d;
  const hn::RebindToSigned<F64> i;
  const Arrow none = all(1, 0);
  for (int64_t n = 0; n < 8; n += kVector) {
    const auto multiple = hn::Iota(i, n);
    const auto where = [&](int64_t bit, Arrow a) HWY_ATTR -> Arrow {
      const auto has = hn::RebindMask(d, hn::TestBit(multiple, hn::Set(i, bit)));
      return {hn::IfThenElse(has, a.cos, none.cos), hn::IfThenElse(has, a.sin, none.sin)};
    };
    const Arrow low = rotated(where(1, powers[0]), where(2, powers[1]));
    store(rotated(low, where(4, powers[2])), to, n);
  }
}

// Computes the phases of one pair.
class Wheel {
 public:
  // `time` is the first position to be computed: its exact phase need not wait for the multiples.
  Wheel(Turns frequency, Turns offset, int64_t time)
      : frequency_(frequency), offset_(offset), near_(frequency) {
    const CosSin step = cos_sin(frequency), group_step = cos_sin(frequency * kGroup);
    start_lap(time & -kLap);
    Arrow powers[5];
    square_on(step, powers);
    multiply_out(powers, in_group_);
    for (int64_t bit = 3, have = 8; have < kGroup; ++bit, have *= 2)
      for (int64_t n = 0; n < have; n += kVector)
        store(rotated(load(in_group_, n), powers[bit]), in_group_, have + n);
    Arrow group_powers[6];
    square_on(group_step, group_powers);
    multiply_out(group_powers, groups_);
    std::copy_n(group_powers + 3, 3, blocks_);
  }

  // Computes the positions of a run, one block of 256 at a time. run.step is not 0.
  void rotate(const PositionRun& run, float* cos, float* sin) {
    for (int64_t n = 0; n < run.count;) {
      const int64_t time = run.first + n * run.step, at = time & (kLap - 1);
      if (time - at != lap_) start_lap(time - at);
      const int64_t ahead =
          run.step > 0 ? kPositionsAtOnce - 1 - at % kPositionsAtOnce : at % kPositionsAtOnce;
      const int64_t in_block = std::min(ahead / std::abs(run.step) + 1, run.count - n);
      rotate_in_block(at, run.step, in_block, cos + n, sin + n);
      n += in_block;
    }
  }

 private:
  // `time` is the lap's first position.
  void start_lap(int64_t time) {
    const Turns phase = offset_ + frequency_ * time;
    lap_ = time;
    mark_ = near_.first(phase);
    exact_ = cos_sin(phase);
  }

  // Computes positions at, at + step ... of the lap, all in one block. It computes whole groups and
  // drops the positions between.
  HWY_INLINE void rotate_in_block(int64_t at, int64_t step, int64_t count, float* cos, float* sin) {
    const int64_t end = at + (count - 1) * step;
    const int64_t first = std::min(at, end) & -kGroup;
    const int64_t groups = (std::max(at, end) - first) / kGroup + 1;
    const bool whole = step == 1 && groups * kGroup == count;
    float part[2][kPositionsAtOnce];
    float* const c = whole ? cos : part[0];
    float* const s = whole ? sin : part[1];
    Arrows<kGroups> anchors;
    turn_anchors(first / kPositionsAtOnce, anchors);
    if (HWY_UNLIKELY(turn_groups(anchors, first, groups, c, s)))
      do_again(first, groups * kGroup, c, s);
    if (whole) return;
    for (int64_t n = 0; n < count; ++n) {
      cos[n] = c[at - first + n * step];
      sin[n] = s[at - first + n * step];
    }
  }

  // Computes the first phase of each group of a block.
  HWY_INLINE void turn_anchors(int64_t block, Arrows<kGroups>& anchors) const {
    const Arrow lap = all(exact_.cos, exact_.sin);
    for (int64_t m = 0; m < kGroups; m += kVector) {
      Arrow multiple = load(groups_, m);
      for (int64_t bit = 0; bit < 3; ++bit)
        if ((block >> bit & 1) != 0) multiple = rotated(multiple, blocks_[bit]);
      store(rotated(lap, multiple), anchors, m);
    }
  }

  // Computes whole groups from position `at` of the lap on. Returns whether some phases are near a
  // zero.
  HWY_INLINE bool turn_groups(const Arrows<kGroups>& anchors, int64_t at, int64_t groups,
                              float* cos, float* sin) const {
    const F32 f;
    const U32 u;
    const int64_t first = at % kPositionsAtOnce / kGroup;
    auto marks = marks_from(at);
    const auto next = hn::Set(u, static_cast<uint32_t>(kMarks) * near_.step());
    auto least = marks;
    for (int64_t m = first; m < first + groups; ++m, cos += kGroup, sin += kGroup) {
      const Arrow anchor = all(anchors.cos[m], anchors.sin[m]);
      for (int64_t n = 0; n < kGroup; n += kVector) {
        const Arrow value = rotated(anchor, load(in_group_, n));
        hn::StoreU(hn::DemoteTo(f, value.cos), f, cos + n);
        hn::StoreU(hn::DemoteTo(f, value.sin), f, sin + n);
      }
      for (int64_t n = 0; n < kGroup; n += kMarks) {
        least = hn::Min(least, marks);
        marks = hn::Add(marks, next);
      }
    }
    return any_near(least);
  }

  HWY_NOINLINE void do_again(int64_t at, int64_t count, float* cos, float* sin) const {
    for (int64_t n = 0; n < count; n += kMarks) {
      if (!any_near(marks_from(at + n))) continue;
      for (int64_t i = n; i < n + kMarks; ++i) {
        if (mark(at + i) >= NearZeros::kWidth) continue;
        const CosSin value = cos_sin(offset_ + frequency_ * (lap_ + at + i));
        cos[i] = static_cast<float>(value.cos);
        sin[i] = static_cast<float>(value.sin);
      }
    }
  }

  uint32_t mark(int64_t at) const { return mark_ + static_cast<uint32_t>(at) * near_.step(); }
  HWY_INLINE hn::Vec<U32> marks_from(int64_t at) const {
    const U32 u;
    return hn::Add(hn::Set(u, mark(at)), hn::Mul(hn::Iota(u, 0), hn::Set(u, near_.step())));
  }
  HWY_INLINE static bool any_near(hn::Vec<U32> marks) {
    const U32 u;
    return !hn::AllFalse(u, hn::Lt(marks, hn::Set(u, NearZeros::kWidth)));
  }

  Turns frequency_, offset_;
  NearZeros near_;
  Arrows<kGroup> in_group_;  // multiples 0 .. 31 of the frequency
  Arrows<kGroups> groups_;   // 0, 32, 64 .. 224
  Arrow blocks_[3];          // 256, 512 and 1024, each broadcast to all lanes
  // The current lap: its first position, the mark of this position, and its exact cos and sin.
  int64_t lap_;
  uint32_t mark_;
  CosSin exact_;
};

void rotate_runs(Turns frequency, Turns offset, std::span<const PositionRun> runs, float* cos,
                 float* sin) {
  Wheel wheel(frequency, offset, runs.front().first);
  for (const PositionRun& run : runs) {
    if (run.step != 0) {
      wheel.rotate(run, cos, sin);
    } else if (run.count > 0) {
      wheel.rotate({.first = run.first, .count = 1}, cos, sin);
      std::fill_n(cos + 1, run.count - 1, *cos);
      std::fill_n(sin + 1, run.count - 1, *sin);
    }
    cos += run.count;
    sin += run.count;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sextant
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sextant {

SEXTANT_EXPORT(rotate_runs);

void cos_sin_of_positions(Turns frequency, Turns offset, std::span<const PositionRun> runs,
                          float* cos, float* sin) {
  if (runs.empty()) return;
  if (frequency == Turns{}) {  // always near the same zero, or never
    int64_t count = 0;
    for (const PositionRun& run : runs) count += run.count;
    const CosSin value = cos_sin(offset);
    std::fill_n(cos, count, static_cast<float>(value.cos));
    std::fill_n(sin, count, static_cast<float>(value.sin));
    return;
  }
  SEXTANT_DISPATCH(rotate_runs)(frequency, offset, runs, cos, sin);
}

}  // namespace sextant
#endif
