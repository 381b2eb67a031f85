#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/torch/dense.h"
#include "tests/torch/model.h"

namespace sextant::testing {
namespace {

const ModelShape kOddHeads = {
    .layers = 2, .heads = 4, .key_heads = 2, .head_dim = 7, .width = 28, .train_length = 8};
const Layout kText = {.batch = 2, .queries = 8, .keys = 8, .causal = false};

// Sines and cosines of the distances times `sign`: [queries, keys, head_dim].
at::Tensor tener_sinusoids(int64_t sign, int64_t head_dim, bool paper) {
  const int64_t half = head_dim / 2;
  const at::Tensor m = at::arange(half, at::kDouble);
  const auto d = static_cast<double>(head_dim);
  const at::Tensor frequencies =
      at::pow(10000.0, paper ? -2 * m / d : -m / static_cast<double>(half - 1));
  const at::Tensor angles = (sign * distances(kText)).unsqueeze(2) * frequencies;
  const at::Tensor both = paper ? at::stack({angles.sin(), angles.cos()}, 3).flatten(2)
                                : at::cat({angles.sin(), angles.cos()}, 2);
  return at::constant_pad_nd(both, {0, head_dim % 2});
}

void expect_tener(const ModelShape& shape, const std::string& options, bool paper, double scale) {
  const auto method = method_of("tener", shape, options);
  const auto parameters = random_parameters(*method);
  const Layer layer(shape, kText);
  const at::Tensor c = parameters[1].unsqueeze(1), p = parameters[3].unsqueeze(1);
  const at::Tensor k = layer.k.repeat_interleave(2, 1), v = layer.v.repeat_interleave(2, 1);
  const at::Tensor past = tener_sinusoids(1, shape.head_dim, paper);
  const at::Tensor future = tener_sinusoids(-1, shape.head_dim, paper);
  at::Tensor scores = at::matmul(layer.q + c, k.transpose(2, 3)) +
                      ((layer.q + p).unsqueeze(3) * (paper ? past : future)).sum(-1);
  if (!paper) scores = scores + (k.unsqueeze(2) * past).sum(-1);
  const at::Tensor expected = at::matmul(weights(scores * scale, at::ones({8, 8}, at::kBool)), v);
  const at::Tensor out = attend_with(*method, layer.q, layer.k, layer.v, kText, 1, parameters);
  EXPECT_LE(largest_difference(out, expected), 1e-12);
}

TEST(Tener, AddsTheThreeTermsOfTheCodeUnscaled) {
  expect_tener(kSmallShape, "{}", false, 1);
  expect_tener(kOddHeads, "{}", false, 1);
}

TEST(Tener, AddsTheTwoTermsOfThePaperUnscaled) {
  expect_tener(kSmallShape, R"({"flavour": "paper"})", true, 1);
  expect_tener(kOddHeads, R"({"flavour": "paper"})", true, 1);
}

TEST(Tener, IsScaledOnDemand) {
  expect_tener(kSmallShape, R"({"scaled": true})", false, 1 / std::sqrt(6.0));
}

TEST(Tener, NamesItsBiasesAsTheCode) {
  const auto specs = method_of("tener", kSmallShape)->parameters();
  ASSERT_EQ(specs.size(), 4u);
  EXPECT_EQ(specs[1].name, "layers.1.self_attn.r_r_bias");  // multiplies the keys
  EXPECT_EQ(specs[2].name, "layers.0.self_attn.r_w_bias");  // multiplies the sinusoids
}

}  // namespace
}  // namespace sextant::testing
