#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/torch/dense.h"
#include "tests/torch/model.h"

namespace sextant::testing {
namespace {

// Equations 3 and 4 of the paper, with an explicit vector for each pair (i, j).
void expect_paper(const Layout& p, const std::string& options, int64_t clip, bool values) {
  const auto method = method_of("shaw", kSmallShape, options);
  const auto parameters = random_parameters(*method);
  ASSERT_EQ(parameters.size(), values ? 4u : 2u);
  const Layer layer(kSmallShape, p);
  const at::Tensor row = (-distances(p)).clamp(-clip, clip) + clip;
  const auto pairs = [&](const at::Tensor& table) {  // [queries, keys, head_dim]
    return table.index_select(0, row.flatten()).view({p.queries, p.keys, -1});
  };
  const at::Tensor k = layer.k.repeat_interleave(2, 1), v = layer.v.repeat_interleave(2, 1);
  const int64_t n = 1;  // the layer
  const at::Tensor scores = (at::matmul(layer.q, k.transpose(2, 3)) +
                             (layer.q.unsqueeze(3) * pairs(parameters[n])).sum(-1)) /
                            std::sqrt(6.0);
  const at::Tensor weight = weights(scores, p.causal ? distances(p) >= 0 : distances(p) > -1000000);
  at::Tensor expected = at::matmul(weight, v);
  if (values) expected = expected + (weight.unsqueeze(4) * pairs(parameters[2 + n])).sum(3);
  const at::Tensor out = attend_with(*method, layer.q, layer.k, layer.v, p, n, parameters);
  EXPECT_LE(largest_difference(out, expected), 1e-12);
}

TEST(Shaw, AddsVectorsByClippedDistance) {
  const Layout whole = {.batch = 2, .queries = 9, .keys = 9, .causal = false};
  expect_paper(whole, R"({"clip": 3})", 3, true);
  expect_paper(whole, R"({"clip": 20})", 20, true);
  expect_paper(whole, R"({"clip": 0})", 0, true);
  expect_paper(whole, R"({"clip": 3, "values": false})", 3, false);
  expect_paper({.batch = 2, .queries = 5, .keys = 25, .first_query = 20}, "{}", 16, true);
}

TEST(Shaw, NamesATablePerLayer) {
  const auto specs = method_of("shaw", kSmallShape)->parameters();
  ASSERT_EQ(specs.size(), 4u);
  EXPECT_EQ(specs[1].name, "layer_1.relative_positions_keys.embeddings");
  EXPECT_EQ(specs[2].name, "layer_0.relative_positions_values.embeddings");
  EXPECT_EQ(specs[0].sizes, (std::vector<int64_t>{33, 6}));
}

}  // namespace
}  // namespace sextant::testing
