// Loops that read values and multiply each of them a few times.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace sextant::bench {

// The numbers of multiply-adds per value for which there are loops.
inline constexpr std::array<int, 9> kMultiplyAdds = {0, 1, 2, 4, 8, 12, 16, 24, 32};

// An order of reading, with or without prefetching.
struct AccessPattern {
  int streams = 1;  // interleaved sequential streams; 1, 2 or 4
  // Sixteen rows of 128 values at a time, one cache line of each row in turn: the order of products
  // with keys whose sums run over the columns. Only with one stream and with prefetching.
  bool in_step = false;
  bool prefetches = false;
};
inline constexpr std::array<AccessPattern, 7> kAccessPatterns = {{{1, false, false},
                                                                  {1, false, true},
                                                                  {2, false, false},
                                                                  {2, false, true},
                                                                  {4, false, false},
                                                                  {4, false, true},
                                                                  {1, true, true}}};

// Reads `count` values, a multiple of 8192. near: reads the first 4096 values, which fit into the
// L1 cache, again and again instead. multiply_adds: per value, one of kMultiplyAdds. pattern: index
// into kAccessPatterns. Returns a sum of all values, so that the compiler keeps the reads.
float read_and_multiply(const float* values, int64_t count, bool near, int multiply_adds,
                        size_t pattern);

}  // namespace sextant::bench
