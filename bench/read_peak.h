// The peak bandwidth of reading memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "sextant/base/executor.h"

namespace sextant::bench {

// The numbers of concurrent streams per worker that are tried.
inline constexpr std::array<int64_t, 4> kStreamCounts = {1, 2, 4, 8};

struct ReadPeak {
  double bytes = 0;     // per second, all workers together
  int64_t streams = 1;  // concurrent streams per worker that reached it
};

// The best of several tries with one to eight streams over memory larger than the caches. Takes
// about a second.
ReadPeak read_peak(const Executor& executor);

// Reads `memory`, which is aligned to 8 bytes, except for a rest of less than 2 KB at its end.
// streams: one of kStreamCounts.
void read_all(std::span<const std::byte> memory, int64_t streams, const Executor& executor);

}  // namespace sextant::bench
