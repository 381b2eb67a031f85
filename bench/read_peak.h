// What the memory could do: reading, and nothing else.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "sextant/base/executor.h"

namespace sextant::bench {

// How many places each worker may read at once.
inline constexpr std::array<int64_t, 4> kPlacesAtOnce = {1, 2, 4, 8};

struct ReadPeak {
  double bytes = 0;     // a second, of all workers together
  int64_t streams = 1;  // the places that each worker read at once for that
};

// Over memory that no cache holds: the best of several tries with one to eight places. Takes about
// a second.
ReadPeak read_peak(const Executor& executor);

// Reads `memory`, which begins at a multiple of 8, but for what is less than 2 KB at its end.
// streams: one of kPlacesAtOnce.
void read_all(std::span<const std::byte> memory, int64_t streams, const Executor& executor);

}  // namespace sextant::bench
