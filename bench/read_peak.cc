#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/read_peak.cc"
#include <hwy/foreach_target.h>
// Highway's header must follow.
#include <hwy/highway.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <vector>

#include "bench/read_peak.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::bench::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The sum of `count` values, except for the rest after a multiple of kStreams times four cache
// lines. Several concurrent streams are faster than one; the best number of streams differs by
// machine. The vectors are the widest of the target, which are a tenth faster on a Granite Rapids.
template <int64_t kStreams>
uint64_t sum_of_streams(const uint64_t* values, int64_t count) {
  const hn::ScalableTag<uint64_t> d;
  constexpr int64_t kLines = 4, kStep = kLines * 64 / sizeof(uint64_t);
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t share = count / (kStreams * kStep) * kStep;
  auto sum = hn::Zero(d);
  for (int64_t n = 0; n < share; n += kStep)
    for (int64_t stream = 0; stream < kStreams; ++stream)
      for (int64_t offset = n; offset < n + kStep; offset += lanes)
        sum = hn::Add(sum, hn::LoadU(d, values + stream * share + offset));
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

uint64_t sum_of_values(int64_t streams, const uint64_t* values, int64_t count) {
  switch (streams) {
    case 2:
      return sum_of_streams<2>(values, count);
    case 4:
      return sum_of_streams<4>(values, count);
    case 8:
      return sum_of_streams<8>(values, count);
    default:
      return sum_of_streams<1>(values, count);
  }
}

}  // namespace sextant::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sextant::bench {
namespace {

HWY_EXPORT(sum_of_values);

constexpr int64_t kChunk = int64_t{1} << 17;  // values of 8 bytes

}  // namespace

void read_all(std::span<const std::byte> memory, int64_t streams, const Executor& executor) {
  const auto* values = reinterpret_cast<const uint64_t*>(memory.data());
  const auto count = static_cast<int64_t>(memory.size() / sizeof(uint64_t));
  const int64_t chunks = (count + kChunk - 1) / kChunk;
  std::vector<uint64_t> sums(static_cast<size_t>(chunks));
  executor.run(chunks, [&](int64_t n, int) {
    sums[static_cast<size_t>(n)] = HWY_DYNAMIC_DISPATCH(sum_of_values)(
        streams, values + n * kChunk, std::min(kChunk, count - n * kChunk));
  });
  volatile uint64_t seen = std::accumulate(sums.begin(), sums.end(), uint64_t{0});
  static_cast<void>(seen);  // the volatile store keeps the compiler from removing the reads
}

ReadPeak read_peak(const Executor& executor) {
  // Larger than the caches of a machine with a few cores.
  const std::vector<uint64_t> values(size_t{1} << 25, 1);  // 256 MB
  ReadPeak best;
  for (int attempt = 0; attempt < 12; ++attempt)
    for (const int64_t streams : kStreamCounts) {
      const auto start = std::chrono::steady_clock::now();
      read_all(std::as_bytes(std::span(values)), streams, executor);
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
      const double speed = static_cast<double>(sizeof(uint64_t) * values.size()) / seconds.count();
      if (speed > best.bytes) best = {speed, streams};
    }
  return best;
}

}  // namespace sextant::bench
#endif
