// Loops that read numbers and multiply each a few times, and do nothing else.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace sextant::bench {

// Multiply-adds of each number that there are loops for.
inline constexpr std::array<int, 9> kMultiplyAdds = {0, 1, 2, 4, 8, 12, 16, 24, 32};

// In which order, and whether lines are asked for ahead.
struct AccessPattern {
  int places = 1;  // read in turns, each in the order of memory; 1, 2 or 4
  // Rows of 128 numbers, sixteen at a time, line by line of all: as products read keys whose sums
  // run in the order of the columns. Of one place, asked for.
  bool in_step = false;
  bool asks = false;
};
inline constexpr std::array<AccessPattern, 7> kWays = {{{1, false, false},
                                                        {1, false, true},
                                                        {2, false, false},
                                                        {2, false, true},
                                                        {4, false, false},
                                                        {4, false, true},
                                                        {1, true, true}}};

// Reads `count` numbers from `from` on, a multiple of 8192, or the first 4096 of them, which the L1
// cache holds, over and over. multiply_adds: of each number; one of kMultiplyAdds. way: which of
// kWays. Returns a sum of all, so that they are wanted.
float read_and_multiply(const float* from, int64_t count, bool near, int multiply_adds, size_t way);

}  // namespace sextant::bench
