// The softmax state of some queries, as each strategy of the forward pass keeps and merges it.
#pragma once

#include <cstdint>
#include <limits>

#include "sextant/attention/cpu/arena.h"

namespace sextant::cpu {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The softmax state of queries after some of their keys: weights are e^(s - row_max), row_sum is
// their sum, and out the weighted sum of the values. States over different keys can be merged
// (Flash-Attention's running softmax, Milakov and Gimelshein 2018, is one merge after the other).
// The empty state has row_max = -infinity and row_sum = 0.
struct SoftmaxState {
  float* row_max = nullptr;  // [rows]
  float* row_sum = nullptr;  // [rows]
  float* out = nullptr;      // [rows][width16]

  static SoftmaxState in(Arena& arena, int64_t rows, int64_t width16) {
    return {arena.floats(rows), arena.floats(rows), arena.floats(rows * width16)};
  }
  SoftmaxState at(int64_t row, int64_t width16) const {
    return {row_max + row, row_sum + row, out + row * width16};
  }
};

}  // namespace sextant::cpu
