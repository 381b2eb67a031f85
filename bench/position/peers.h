// What others do where the library makes cos and sin of positions: how they are got without it.
#pragma once

#include <cstdint>
#include <vector>

namespace sextant::bench {

// cos and sin of position * speed for positions first .. first + count - 1, the phase a float32
// product as frameworks have it, by sincosf of the C library.
void by_sincosf(float speed, int64_t first, int64_t count, float* cos, float* sin);

// A cache of cos and sin made once, which no cache of the processor holds, read from one end to the
// other.
class Table {
 public:
  explicit Table(int64_t pairs);  // numbers of cos; as many of sin
  // Of the next `count` pairs; begins again where the table ends. count: a multiple of 16, at most
  // `pairs`.
  float sum_of_next(int64_t count);

 private:
  std::vector<float> cos_, sin_;
  int64_t at_ = 0;
};

}  // namespace sextant::bench
