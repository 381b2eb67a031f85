#include "bench/position/peers.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <numeric>

namespace sextant::bench {
namespace {

constexpr size_t kLanes = 8;

}  // namespace

void by_sincosf(float frequency, int64_t first, int64_t count, float* cos, float* sin) {
  for (int64_t n = 0; n < count; ++n)
    sincosf(frequency * static_cast<float>(first + n), sin + n, cos + n);
}

Table::Table(int64_t pairs)
    : cos_(static_cast<size_t>(pairs), 0.5F), sin_(static_cast<size_t>(pairs), 0.25F) {}

float Table::sum_of_next(int64_t count) {
  if (at_ + count > static_cast<int64_t>(cos_.size())) at_ = 0;
  const float *cos = cos_.data() + at_, *sin = sin_.data() + at_;
  at_ += count;
  // More independent sums than the latency of an addition, so that memory is the bottleneck.
  std::array<float, 4 * kLanes> sums = {};
  for (size_t n = 0; n + 2 * kLanes <= static_cast<size_t>(count); n += 2 * kLanes)
    for (size_t lane = 0; lane < 2 * kLanes; ++lane) {
      sums[lane] += cos[n + lane];
      sums[2 * kLanes + lane] += sin[n + lane];
    }
  return std::accumulate(sums.begin(), sums.end(), 0.0F);
}

}  // namespace sextant::bench
