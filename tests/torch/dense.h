// Attention the plain way, with matrices of queries x keys: what the operators are compared with.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "sextant/torch/layout.h"

namespace sextant::testing {

// Query minus key position, int64 [queries, keys], of one text.
at::Tensor distances(const Layout& layout);

// Softmax over the visible keys, and its weights of v. scores [batch, heads, queries, keys],
// visible bool [queries, keys]; a query that sees nothing gets zeros.
at::Tensor weights(const at::Tensor& scores, const at::Tensor& visible);

// softmax(scale * q k^T + bias) v. bias [heads, queries, keys] or undefined.
at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     const at::Tensor& visible, double scale, const at::Tensor& bias = {});

// float64 of the standard normal distribution, seeded by the sizes and `seed`.
at::Tensor normal(std::vector<int64_t> sizes, uint64_t seed = 0);

double largest_difference(const at::Tensor& a, const at::Tensor& b);

}  // namespace sextant::testing
