// The forward pass of attention by ggml's operators on its CPU backend, if the build found ggml.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

namespace sextant::bench {

// The attention that ggml's operators can compute. Results are float32.
struct GgmlAttention {
  // [batch, heads, rows, columns] with contiguous columns. k and v have one type, float32, bfloat16
  // or float16; q is float32.
  at::Tensor q, k, v;
  // [queries, keys], float32, added to the scores (times a slope if most_bias is not 0); or
  // undefined.
  at::Tensor mask;
  double scale = 1;
  double most_bias = 0;  // 8: ggml multiplies the mask by ALiBi's slope of each head
  bool rotates = false;  // rotates q and k at their rows, in half-split pairs of base 10000
};

bool has_ggml();

// Builds the graph once and returns a function that computes the result, [batch, heads, queries,
// columns], in a tensor that its next call overwrites. Throws Error if has_ggml() is false.
std::function<at::Tensor()> ggml_attention(const GgmlAttention& attention, int threads);

}  // namespace sextant::bench
