#include "bench/read_peak.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <numeric>
#include <vector>

namespace sextant::bench {
namespace {

constexpr int64_t kPiece = int64_t{1} << 17;  // numbers of 8 bytes

// From as many places at once, which memory gives faster than one stream: how many is best, machines differ in.
template <int64_t kStreams>
uint64_t sum_of(const uint64_t* from, int64_t count) {
  constexpr int64_t kLine = 8;
  std::array<uint64_t, kLine> sums = {};
  const int64_t share = count / (kStreams * 4 * kLine) * (4 * kLine);
  for (int64_t n = 0; n < share; n += 4 * kLine)
    for (int64_t stream = 0; stream < kStreams; ++stream)
      for (int64_t at = n; at < n + 4 * kLine; at += kLine)
        for (int64_t lane = 0; lane < kLine; ++lane)
          sums[static_cast<size_t>(lane)] += from[stream * share + at + lane];
  return std::accumulate(sums.begin(), sums.end(), uint64_t{0});
}

using Sum = uint64_t (*)(const uint64_t* from, int64_t count);

Sum sum_by(int64_t streams) {
  switch (streams) {
    case 2:
      return sum_of<2>;
    case 4:
      return sum_of<4>;
    case 8:
      return sum_of<8>;
    default:
      return sum_of<1>;
  }
}

}  // namespace

void read_all(std::span<const std::byte> memory, int64_t streams, const Executor& executor) {
  const auto* numbers = reinterpret_cast<const uint64_t*>(memory.data());
  const auto count = static_cast<int64_t>(memory.size() / sizeof(uint64_t));
  const int64_t pieces = (count + kPiece - 1) / kPiece;
  std::vector<uint64_t> sums(static_cast<size_t>(pieces));
  executor.run(pieces, [&, sum = sum_by(streams)](int64_t n, int) {
    sums[static_cast<size_t>(n)] = sum(numbers + n * kPiece, std::min(kPiece, count - n * kPiece));
  });
  volatile uint64_t seen = std::accumulate(sums.begin(), sums.end(), uint64_t{0});
  static_cast<void>(seen);  // so that what is read is wanted
}

ReadPeak read_peak(const Executor& executor) {
  // More than the caches of a machine of a few cores.
  const std::vector<uint64_t> numbers(size_t{1} << 25, 1);  // 256 MB
  ReadPeak best;
  for (int attempt = 0; attempt < 12; ++attempt)
    for (const int64_t streams : {1, 2, 4, 8}) {
      const auto start = std::chrono::steady_clock::now();
      read_all(std::as_bytes(std::span(numbers)), streams, executor);
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
      const double speed = static_cast<double>(sizeof(uint64_t) * numbers.size()) / seconds.count();
      if (speed > best.bytes) best = {speed, streams};
    }
  return best;
}

}  // namespace sextant::bench
