// A loop that reads numbers in order and multiplies each a few times, and does nothing else.
#pragma once

#include <array>
#include <cstdint>

namespace sextant::bench {

// Multiply-adds of each number that there are loops for.
inline constexpr std::array<int, 9> kMultiplyAdds = {0, 1, 2, 4, 8, 12, 16, 24, 32};

// Reads `count` numbers from `from` on, a multiple of 1024, or the first 4096 of them, which the L1 cache holds, over and
// over. multiply_adds: of each number; one of kMultiplyAdds. Returns a sum of all, so that they are wanted.
float read_and_multiply(const float* from, int64_t count, bool near, int multiply_adds);

}  // namespace sextant::bench
