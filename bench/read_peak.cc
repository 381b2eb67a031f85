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

uint64_t sum_of(const uint64_t* from, int64_t count) {
  std::array<uint64_t, 8> sums = {};
  for (int64_t n = 0; n < count; n += 8)
    for (int64_t lane = 0; lane < 8; ++lane) sums[static_cast<size_t>(lane)] += from[n + lane];
  return std::accumulate(sums.begin(), sums.end(), uint64_t{0});
}

}  // namespace

double read_peak(const Executor& executor) {
  constexpr int64_t kPiece = kNumbers / kPieces;
  std::vector<uint64_t> numbers(kNumbers, 1), sums(kPieces);
  double best = 0;
  for (int attempt = 0; attempt < 12; ++attempt) {
    const auto start = std::chrono::steady_clock::now();
    executor.run(kPieces, [&](int64_t n, int) {
      sums[static_cast<size_t>(n)] = sum_of(numbers.data() + n * kPiece, kPiece);
    });
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    const uint64_t sum = std::accumulate(sums.begin(), sums.end(), uint64_t{0});
    best = std::max(best, static_cast<double>(sum) * sizeof(uint64_t) / seconds.count());
  }
  return best;
}

}  // namespace sextant::bench
