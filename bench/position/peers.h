// Other ways to get cos and sin of positions, as peers of the library.
#pragma once

#include <cstdint>
#include <vector>

namespace sextant::bench {

// cos and sin of position * frequency for positions first .. first + count - 1, by sincosf of the C
// library. The phase is a float32 product, as in frameworks.
void by_sincosf(float frequency, int64_t first, int64_t count, float* cos, float* sin);

// A precomputed table of cos and sin, larger than the caches of the processor, read from one end to
// the other.
class Table {
 public:
  explicit Table(int64_t pairs);  // values of cos, and as many of sin
  // The sum of the next `count` pairs; restarts at the end of the table. count: a multiple of 16,
  // at most `pairs`.
  float sum_of_next(int64_t count);

 private:
  std::vector<float> cos_, sin_;
  int64_t at_ = 0;
};

}  // namespace sextant::bench
