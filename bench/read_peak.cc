#include "bench/read_peak.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <vector>

namespace sextant::bench {
namespace {

// More than the caches of a machine of a few cores.
constexpr int64_t kNumbers = int64_t{1} << 25;  // 256 MB
constexpr int64_t kPieces = 256;

// From as many places at once, which memory gives faster than one stream: how many is best, machines differ in.
template <int64_t kStreams>
uint64_t sum_of(const uint64_t* from, int64_t count) {
  constexpr int64_t kLine = 8;
  std::array<uint64_t, kLine> sums = {};
  const int64_t share = count / kStreams;
  for (int64_t n = 0; n < share; n += 4 * kLine)
    for (int64_t stream = 0; stream < kStreams; ++stream)
      for (int64_t at = n; at < n + 4 * kLine; at += kLine)
        for (int64_t lane = 0; lane < kLine; ++lane)
          sums[static_cast<size_t>(lane)] += from[stream * share + at + lane];
  return std::accumulate(sums.begin(), sums.end(), uint64_t{0});
}

}  // namespace

double read_peak(const Executor& executor) {
  constexpr int64_t kPiece = kNumbers / kPieces;
  std::vector<uint64_t> numbers(kNumbers, 1), sums(kPieces);
  double best = 0;
  for (int attempt = 0; attempt < 12; ++attempt)
    for (const auto sum_of_piece : {sum_of<1>, sum_of<2>, sum_of<4>, sum_of<8>}) {
      const auto start = std::chrono::steady_clock::now();
      executor.run(kPieces, [&](int64_t n, int) {
        sums[static_cast<size_t>(n)] = sum_of_piece(numbers.data() + n * kPiece, kPiece);
      });
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
      const uint64_t sum = std::accumulate(sums.begin(), sums.end(), uint64_t{0});
      best = std::max(best, static_cast<double>(sum) * sizeof(uint64_t) / seconds.count());
    }
  return best;
}

}  // namespace sextant::bench
