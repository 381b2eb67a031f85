#include "bench/reading/read_and_multiply.h"

#include <cstddef>
#include <utility>

#include "sextant/attention/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/reading/read_and_multiply.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each target
//
#include "hwy/cache_control.h"
#include "sextant/attention/cpu/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::bench {
namespace HWY_NAMESPACE {
using namespace cpu::HWY_NAMESPACE;

// More multiply-adds in flight than any machine's latency times its units.
constexpr int kChains = 12;
constexpr int64_t kNear = 4096;   // numbers
constexpr int64_t kAhead = 2048;  // of them, where asking for them gained most: 8 KB

// Two lines of a cache, of vectors that begin at `from`.
template <int kEach>
HWY_INLINE void multiply_lines(const float* from, V* sums) {
  constexpr int kVectors = 32 / kPart;
  V read[kVectors];
  for (int n = 0; n < kVectors; ++n) read[n] = hn::LoadU(F32(), from + n * kPart);
  const auto step = [&](size_t n) HWY_ATTR {
    sums[n % kChains] = hn::MulAdd(read[n % kVectors], read[n % kVectors], sums[n % kChains]);
  };
  const auto steps = [&]<size_t... kStep>(std::index_sequence<kStep...>) HWY_ATTR {
    (step(kStep), ...);
  };
  if constexpr (kEach > 0)
    steps(std::make_index_sequence<static_cast<size_t>(kEach * kVectors)>());
  else  // read all the same
    for (int n = 0; n < kVectors; ++n) sums[n % kChains] = hn::Add(read[n], sums[n % kChains]);
}

template <int kEach>
HWY_NOINLINE float run(const float* from, int64_t count, bool near) {
  const F32 d;
  V sums[kChains];
  for (int n = 0; n < kChains; ++n) sums[n] = hn::Zero(d);
  for (int64_t n = 0; n < count / 2; n += 32)
    for (const int64_t place : {int64_t{0}, count / 2}) {
      const float* at = from + (near ? n % kNear : place + n);
      hwy::Prefetch(at + kAhead);
      hwy::Prefetch(at + kAhead + 16);
      multiply_lines<kEach>(at, sums);
    }
  V sum = hn::Zero(d);
  for (int n = 0; n < kChains; ++n) sum = hn::Add(sum, sums[n]);
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

float run_one_of(const float* from, int64_t count, bool near, int multiply_adds) {
  float sum = 0;
  const auto one_of = [&]<size_t... kAt>(std::index_sequence<kAt...>) {
    (void)((multiply_adds == kMultiplyAdds[kAt] &&
            (sum = run<kMultiplyAdds[kAt]>(from, count, near), true)) ||
           ...);
  };
  one_of(std::make_index_sequence<kMultiplyAdds.size()>());
  return sum;
}

}  // namespace HWY_NAMESPACE
}  // namespace sextant::bench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sextant::bench {
namespace {
HWY_EXPORT(run_one_of);
}  // namespace

float read_and_multiply(const float* from, int64_t count, bool near, int multiply_adds) {
  return HWY_DYNAMIC_DISPATCH(run_one_of)(from, count, near, multiply_adds);
}

}  // namespace sextant::bench
#endif
