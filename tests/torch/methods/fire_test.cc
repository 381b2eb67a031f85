#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>

#include "tests/torch/dense.h"
#include "tests/torch/gradients.h"
#include "tests/torch/model.h"

namespace sextant::testing {
namespace {

// The bias of every query and key, [heads, queries, keys], from the six parameters of one layer.
at::Tensor bias(const Layout& p, const std::vector<at::Tensor>& of, double threshold) {
  const auto psi = [&](const at::Tensor& x) { return ((of[0] * x).abs() + 1).log(); };
  const at::Tensor limit = (of[1] * threshold).abs();
  const at::Tensor i = query_positions(p).to(at::kDouble).unsqueeze(1);
  const at::Tensor x = psi(distances(p).to(at::kDouble)) / (psi(at::maximum(i, limit)) + 1e-6);
  const at::Tensor hidden = at::relu(at::linear(x.unsqueeze(2), of[2], of[3]));
  return at::linear(hidden, of[4], of[5]).permute({2, 0, 1});
}

std::vector<at::Tensor> trained(const Method& method, double multiplier) {
  std::vector<at::Tensor> parameters = random_parameters(method);
  for (size_t n = 1; n < parameters.size(); n += 6) parameters[n] = parameters[n] * 0 + multiplier;
  return parameters;
}

// Query positions below the threshold, above it, on both sides of it and equal to it, in the second
// of two layers, which has parameters of its own.
TEST(Fire, AsksTheNetworkForDistanceOverReach) {
  const auto method = method_of("fire", kSmallShape, R"({"threshold": 10, "hidden": 5})");
  for (const bool causal : {true, false})
    for (const double multiplier : {0.05, 0.65, 1.0, -2.0})
      for (const int64_t first : {0, 7}) {
        const Layout p = {
            .batch = 2, .queries = 9, .keys = 16, .first_query = first, .causal = causal};
        const Layer layer(kSmallShape, p);
        std::vector<at::Tensor> parameters = trained(*method, multiplier);
        Tensors inputs = {layer.q, layer.k, layer.v};
        inputs.insert(inputs.end(), parameters.begin() + 6, parameters.end());
        for (at::Tensor& x : inputs) x = x.detach().clone().requires_grad_();
        std::copy(inputs.begin() + 3, inputs.end(), parameters.begin() + 6);
        const at::Tensor out =
            attend_with(*method, inputs[0], inputs[1], inputs[2], p, /*layer=*/1, parameters);
        const at::Tensor visible = causal ? distances(p) >= 0 : distances(p) > -1000;
        const at::Tensor expected = attention(
            inputs[0], inputs[1].repeat_interleave(2, 1), inputs[2].repeat_interleave(2, 1),
            visible, 1 / std::sqrt(6.0), bias(p, {parameters.begin() + 6, parameters.end()}, 10));
        EXPECT_LE(largest_difference(out, expected), 1e-13);
        const at::Tensor above = normal(out.sizes().vec(), 9);
        const Tensors got = torch::autograd::grad({(out * above).sum()}, inputs);
        const Tensors wanted = torch::autograd::grad({(expected * above).sum()}, inputs);
        for (size_t n = 0; n < got.size(); ++n)
          EXPECT_LE(largest_difference(got[n], wanted[n]), 1e-12) << n << " at " << multiplier;
      }
}

TEST(Fire, OneNetworkCanServeAllLayers) {
  const auto method = method_of("fire", kSmallShape, R"({"per_layer": false})");
  ASSERT_EQ(method->parameters().size(), 6U);
  EXPECT_EQ(method->parameters()[0].name, "c");
  const Layout p = {.batch = 1, .queries = 4, .keys = 4};
  const Layer layer(kSmallShape, p);
  const std::vector<at::Tensor> parameters = random_parameters(*method);
  EXPECT_TRUE(at::equal(attend_with(*method, layer.q, layer.k, layer.v, p, 0, parameters),
                        attend_with(*method, layer.q, layer.k, layer.v, p, 1, parameters)));
}

}  // namespace
}  // namespace sextant::testing
