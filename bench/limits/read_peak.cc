#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/limits/read_peak.cc"
#include <hwy/foreach_target.h>
// Highway's header must follow.
#include <hwy/highway.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <vector>

#include "bench/limits/read_peak.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::bench::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The sum of `count` values, except for the rest after a multiple of kStreams times four cache
// lines. Several concurrent streams are faster than one; the best number of streams differs by
// machine. The vectors are the widest of the target, which are a tenth faster on a Granite Rapids.
template <int64_t kStreams>
uint64_t sum_of(const uint64_t* from, int64_t count) {
  const hn::ScalableTag<uint64_t> d;
  constexpr int64_t kLines = 4, kStep = kLines * 64 / sizeof(uint64_t);
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t share = count / (kStreams * kStep) * kStep;
  auto sum = hn::Zero(d);
  for (int64_t n = 0; n < share; n += kStep)
    for (int64_t stream = 0; stream < kStreams; ++stream)
      for (int64_t at = n; at < n + kStep; at += lanes)
        sum = hn::Add(sum, hn::LoadU(d, from + stream * share + at));
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

uint64_t sum_by(int64_t streams, const uint64_t* from, int64_t count) {
  switch (streams) {
    case 2:
      return sum_of<2>(from, count);
    case 4:
      return sum_of<4>(from, count);
    case 8:
      return sum_of<8>(from, count);
    default:
      return sum_of<1>(from, count);
  }
}

}  // namespace sextant::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sextant::bench {
namespace {

HWY_EXPORT(sum_by);

constexpr int64_t kPiece = int64_t{1} << 17;  // values of 8 bytes

}  // namespace

void read_all(std::span<const std::byte> memory, int64_t streams, const Executor& executor) {
  const auto* numbers = reinterpret_cast<const uint64_t*>(memory.data());
  const auto count = static_cast<int64_t>(memory.size() / sizeof(uint64_t));
  const int64_t pieces = (count + kPiece - 1) / kPiece;
  std::vector<uint64_t> sums(static_cast<size_t>(pieces));
  executor.run(pieces, [&](int64_t n, int) {
    sums[static_cast<size_t>(n)] = HWY_DYNAMIC_DISPATCH(sum_by)(
        streams, numbers + n * kPiece, std::min(kPiece, count - n * kPiece));
  });
  volatile uint64_t seen = std::accumulate(sums.begin(), sums.end(), uint64_t{0});
  static_cast<void>(seen);  // the volatile store keeps the compiler from removing the reads
}

ReadPeak read_peak(const Executor& executor) {
  // Larger than the caches of a machine with a few cores.
  const std::vector<uint64_t> numbers(size_t{1} << 25, 1);  // 256 MB
  ReadPeak best;
  for (int attempt = 0; attempt < 12; ++attempt)
    for (const int64_t streams : kPlacesAtOnce) {
      const auto start = std::chrono::steady_clock::now();
      read_all(std::as_bytes(std::span(numbers)), streams, executor);
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
      const double speed = static_cast<double>(sizeof(uint64_t) * numbers.size()) / seconds.count();
      if (speed > best.bytes) best = {speed, streams};
    }
  return best;
}

}  // namespace sextant::bench
#endif
