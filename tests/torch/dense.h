// Attention with explicit matrices of queries x keys: the reference for the operators.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "sextant/torch/layout.h"

namespace sextant::testing {

// Query position minus key position, int64 [queries, keys], of one sequence.
at::Tensor distances(const Layout& layout);

// The attention weights: softmax over the visible keys. scores [batch, heads, queries, keys],
// visible bool [queries, keys]; a query that sees no key gets zeros.
at::Tensor weights(const at::Tensor& scores, const at::Tensor& visible);

// softmax(scale * q k^T + bias) v. bias [heads, queries, keys] or undefined.
at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     const at::Tensor& visible, double scale, const at::Tensor& bias = {});

// float64 values of the standard normal distribution, seeded by the sizes and `seed`.
at::Tensor normal(std::vector<int64_t> sizes, uint64_t seed = 0);

double largest_difference(const at::Tensor& a, const at::Tensor& b);

}  // namespace sextant::testing
