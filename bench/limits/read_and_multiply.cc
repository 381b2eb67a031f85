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

template <int kEach, class LineAt>
HWY_INLINE void multiply_lines(LineAt line_at, V* sums) {
  constexpr int kTileVectors = kLines * kVectors;
  V read[kTileVectors];
  for (int n = 0; n < kTileVectors; ++n)
    read[n] = hn::LoadU(F32(), line_at(n / kVectors) + n % kVectors * kVectorLanes);
  const auto each = [&]<size_t... kVector>(size_t repeat, std::index_sequence<kVector...>)
      HWY_ATTR {
    const auto step = [&](size_t n) HWY_ATTR {
      const size_t chain = (repeat * kTileVectors + n) % kChains;
      sums[chain] = hn::MulAdd(read[n], read[n], sums[chain]);
    };
    (step(kVector), ...);
  };
  const auto all_repeats = [&]<size_t... kRepeat>(std::index_sequence<kRepeat...>) HWY_ATTR {
    (each(kRepeat, std::make_index_sequence<size_t{kTileVectors}>()), ...);
  };
  if constexpr (kEach > 0)
    all_repeats(std::make_index_sequence<size_t{kEach}>());
  else  // without multiply-adds: only read
    for (int n = 0; n < kTileVectors; ++n) sums[n % kChains] = hn::Add(read[n], sums[n % kChains]);
}

template <int kEach, size_t kPattern>
HWY_NOINLINE float run(const float* values, int64_t count, bool near) {
  constexpr AccessPattern kAccess = kAccessPatterns[kPattern];
  const F32 d;
  V sums[kChains];
  for (int n = 0; n < kChains; ++n) sums[n] = hn::Zero(d);
  const int64_t share = count / kAccess.streams;
  for (int64_t n = 0; n < share; n += kTile) {
    const float* const tile = values + (near ? n % kNear : n);
    for (int64_t m = 0; m < kTile; m += kLines * kLine / kAccess.streams) {
      // kLines cache lines, shared out among the streams, or one line each of kLines rows.
      const auto line_at = [&](int64_t line) HWY_ATTR -> const float* {
        if constexpr (kAccess.in_step) {
          const int64_t line_index = m / kLine + line;
          return tile + line_index % kStepRows * kRow + line_index / kStepRows * kLine;
        } else {
          constexpr int64_t kStreamLines = kLines / kAccess.streams;
          return tile + (near ? 0 : line / kStreamLines * share) + m + line % kStreamLines * kLine;
        }
      };
      if constexpr (kAccess.prefetches)
        for (int64_t line = 0; line < kLines; ++line)
          hwy::Prefetch((kAccess.in_step ? tile + m + line * kLine : line_at(line)) + kTile);
      multiply_lines<kEach>(line_at, sums);
    }
  }
  V sum = hn::Zero(d);
  for (int n = 0; n < kChains; ++n) sum = hn::Add(sum, sums[n]);
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

float run_loop(const float* values, int64_t count, bool near, int multiply_adds, size_t pattern) {
  float sum = 0;
  const auto run_multiply_adds = [&]<size_t kPattern, size_t... kIndex>(
      std::index_sequence<kIndex...>) {
    (void)((multiply_adds == kMultiplyAdds[kIndex] &&
            (sum = run<kMultiplyAdds[kIndex], kPattern>(values, count, near), true)) ||
           ...);
  };
  const auto run_pattern = [&]<size_t... kPattern>(std::index_sequence<kPattern...>) {
    (void)((pattern == kPattern && (run_multiply_adds.template operator()<kPattern>(
                                        std::make_index_sequence<kMultiplyAdds.size()>()),
                                    true)) ||
           ...);
  };
  run_pattern(std::make_index_sequence<kAccessPatterns.size()>());
  return sum;
}

}  // namespace HWY_NAMESPACE
}  // namespace sextant::bench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sextant::bench {
namespace {
HWY_EXPORT(run_loop);
}  // namespace

float read_and_multiply(const float* values, int64_t count, bool near, int multiply_adds,
                        size_t pattern) {
  return HWY_DYNAMIC_DISPATCH(run_loop)(values, count, near, multiply_adds, pattern);
}

}  // namespace sextant::bench
#endif
