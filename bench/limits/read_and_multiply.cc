#include "bench/limits/read_and_multiply.h"

#include <cstddef>
#include <utility>

#include "sextant/base/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/limits/read_and_multiply.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each target
//
#include "hwy/cache_control.h"
#include "sextant/attention/cpu/tile/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::bench {
namespace HWY_NAMESPACE {
using namespace cpu::HWY_NAMESPACE;

// At least as many multiply-adds in flight as the latency times the units of any machine.
constexpr int kChains = 12;
constexpr int kLines = 4;                      // cache lines per step of the loop
constexpr int64_t kLine = 16;                  // values per cache line
constexpr int64_t kRow = 128, kStepRows = 16;  // of AccessPattern::in_step
// 8 KB, which is also the prefetch distance: the one that gained most.
constexpr int64_t kTile = kRow * kStepRows;
constexpr int64_t kNear = 2 * kTile;

template <int kEach, class At>
HWY_INLINE void multiply_lines(At at, V* sums) {
  constexpr int kTileVectors = kLines * kVectors;
  V read[kTileVectors];
  for (int n = 0; n < kTileVectors; ++n)
    read[n] = hn::LoadU(F32(), at(n / kVectors) + n % kVectors * kVectorLanes);
  const auto each = [&]<size_t... kVector>(size_t time, std::index_sequence<kVector...>) HWY_ATTR {
    const auto step = [&](size_t n) HWY_ATTR {
      const size_t chain = (time * kTileVectors + n) % kChains;
      sums[chain] = hn::MulAdd(read[n], read[n], sums[chain]);
    };
    (step(kVector), ...);
  };
  const auto times = [&]<size_t... kTime>(std::index_sequence<kTime...>) HWY_ATTR {
    (each(kTime, std::make_index_sequence<size_t{kTileVectors}>()), ...);
  };
  if constexpr (kEach > 0)
    times(std::make_index_sequence<size_t{kEach}>());
  else  // without multiply-adds: only read
    for (int n = 0; n < kTileVectors; ++n) sums[n % kChains] = hn::Add(read[n], sums[n % kChains]);
}

template <int kEach, size_t kWay>
HWY_NOINLINE float run(const float* from, int64_t count, bool near) {
  constexpr AccessPattern kHow = kWays[kWay];
  const F32 d;
  V sums[kChains];
  for (int n = 0; n < kChains; ++n) sums[n] = hn::Zero(d);
  const int64_t share = count / kHow.places;
  for (int64_t n = 0; n < share; n += kTile) {
    const float* const tile = from + (near ? n % kNear : n);
    for (int64_t m = 0; m < kTile; m += kLines * kLine / kHow.places) {
      // kLines cache lines, shared out among the streams, or one line each of kLines rows.
      const auto at = [&](int64_t line) HWY_ATTR -> const float* {
        if constexpr (kHow.in_step) {
          const int64_t all = m / kLine + line;
          return tile + all % kStepRows * kRow + all / kStepRows * kLine;
        } else {
          constexpr int64_t kOfPlace = kLines / kHow.places;
          return tile + (near ? 0 : line / kOfPlace * share) + m + line % kOfPlace * kLine;
        }
      };
      if constexpr (kHow.asks)
        for (int64_t line = 0; line < kLines; ++line)
          hwy::Prefetch((kHow.in_step ? tile + m + line * kLine : at(line)) + kTile);
      multiply_lines<kEach>(at, sums);
    }
  }
  V sum = hn::Zero(d);
  for (int n = 0; n < kChains; ++n) sum = hn::Add(sum, sums[n]);
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

float run_one_of(const float* from, int64_t count, bool near, int multiply_adds, size_t way) {
  float sum = 0;
  const auto one_of = [&]<size_t kWay, size_t... kAt>(std::index_sequence<kAt...>) {
    (void)((multiply_adds == kMultiplyAdds[kAt] &&
            (sum = run<kMultiplyAdds[kAt], kWay>(from, count, near), true)) ||
           ...);
  };
  const auto one_way = [&]<size_t... kWay>(std::index_sequence<kWay...>) {
    (void)((way == kWay &&
            (one_of.template operator()<kWay>(std::make_index_sequence<kMultiplyAdds.size()>()),
             true)) ||
           ...);
  };
  one_way(std::make_index_sequence<kWays.size()>());
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

float read_and_multiply(const float* from, int64_t count, bool near, int multiply_adds,
                        size_t way) {
  return HWY_DYNAMIC_DISPATCH(run_one_of)(from, count, near, multiply_adds, way);
}

}  // namespace sextant::bench
#endif
