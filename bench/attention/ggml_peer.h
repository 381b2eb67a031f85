// Attention by ggml's operators on its CPU backend, forward, where the build found ggml.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

namespace sextant::bench {

// What ggml has operators for. Results are float32.
struct GgmlAttention {
  // [batch, heads, rows, columns] of one type, float32, bfloat16 or float16, but q float32; columns
  // lie together.
  at::Tensor q, k, v;
  at::Tensor mask;  // [queries, keys], float32, added to scores (times a slope, if there are); or
                    // undefined
  double scale = 1;
  double most_bias = 0;  // 8: the mask is times ALiBi's slope of each head, which is ggml's own
  bool turns = false;    // q and k, in half-split pairs of base 10000, at their rows
};

bool has_ggml();

// Makes what is made once for many calls, and gives what computes the result, [batch, heads,
// queries, columns] in a tensor that the next call overwrites. Throws Error where has_ggml() is
// false.
std::function<at::Tensor()> ggml_attention(const GgmlAttention& attention, int threads);

}  // namespace sextant::bench
