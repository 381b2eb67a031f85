#include "tests/torch/dense.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <limits>

namespace sextant::testing {

at::Tensor distances(const Layout& p) {
  const at::Tensor queries = at::arange(p.first_query, p.first_query + p.queries, at::kLong);
  const at::Tensor keys = at::arange(p.first_key, p.first_key + p.keys, at::kLong);
  return queries.unsqueeze(1) - keys.unsqueeze(0);
}

at::Tensor weights(const at::Tensor& scores, const at::Tensor& visible) {
  const at::Tensor hidden = visible.logical_not();
  const at::Tensor masked = scores.masked_fill(hidden, -std::numeric_limits<double>::infinity());
  return masked.softmax(-1).masked_fill(hidden, 0);  // softmax of a row of -infinity is NaN
}

at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     const at::Tensor& visible, double scale, const at::Tensor& bias) {
  at::Tensor scores = at::matmul(q, k.transpose(-1, -2)) * scale;
  if (bias.defined()) scores = scores + bias;
  return at::matmul(weights(scores, visible), v);
}

at::Tensor normal(std::vector<int64_t> sizes, uint64_t seed) {
  for (const int64_t size : sizes) seed = seed * 1000003 + static_cast<uint64_t>(size);
  return at::randn(sizes, at::detail::createCPUGenerator(seed), at::kDouble);
}

double largest_difference(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes()) return std::numeric_limits<double>::infinity();
  if (a.numel() == 0) return 0;
  return (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>();
}

}  // namespace sextant::testing
