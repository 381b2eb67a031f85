#include "sextant/torch/methods/shared/relu_network.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>

#include "sextant/base/error.h"
#include "tests/torch/dense.h"

namespace sextant::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

at::Tensor layer_by_layer(const ReluNetwork& n, const at::Tensor& x) {
  const at::Tensor hidden = at::relu(at::linear(x.reshape({-1, 1}), n.in_weight, n.in_bias));
  return at::linear(hidden, n.out_weight, n.out_bias).t();
}

ReluNetwork drawn(int64_t width, int64_t heads, int64_t seed) {
  return {normal({width, 1}, seed), normal({width}, seed + 1), normal({heads, width}, seed + 2),
          normal({heads}, seed + 3)};
}

std::vector<at::Tensor> tensors(const ReluNetwork& n) {
  return {n.in_weight, n.in_bias, n.out_weight, n.out_bias};
}

void expect_agrees(const ReluNetwork& drawn, const at::Tensor& at_x, double tolerance) {
  std::vector<at::Tensor> leaves = tensors(drawn);
  leaves.push_back(at_x);
  for (at::Tensor& leaf : leaves) leaf = leaf.detach().clone().requires_grad_();
  const ReluNetwork network = {leaves[0], leaves[1], leaves[2], leaves[3]};
  const at::Tensor got = evaluate(network, leaves[4]),
                   expected = layer_by_layer(network, leaves[4]);
  ASSERT_EQ(got.sizes(), expected.sizes());
  EXPECT_LE(largest_difference(got, expected), tolerance);
  const at::Tensor above = normal(got.sizes().vec(), 99).to(got.scalar_type());
  const auto gradients = torch::autograd::grad({(got * above).sum()}, leaves);
  const auto wanted = torch::autograd::grad({(expected * above).sum()}, leaves);
  for (size_t n = 0; n < leaves.size(); ++n)
    EXPECT_LE(largest_difference(gradients[n], wanted[n]), tolerance * 100) << n;
}

// Unsorted elements, more than one task has.
TEST(ReluNetwork, IsItsPieces) {
  for (const int64_t width : {1, 5, 32})
    for (const int64_t heads : {1, 3})
      for (const int64_t count : {1, 100, 40000})
        expect_agrees(drawn(width, heads, 10 * width + heads), normal({count}, count), 1e-12);
}

TEST(ReluNetwork, TakesUnitsThatHaveNoEndOrTheSameOne) {
  ReluNetwork network = drawn(8, 2, 7);
  const at::Tensor weight = network.in_weight.flatten(), bias = network.in_bias;
  weight[0] = 0, bias[0] = 0.5;   // always on
  weight[1] = 0, bias[1] = -0.5;  // always off
  weight[2] = weight[3] = weight[4] = 0.5;
  bias[2] = bias[3] = -0.25;
  weight[4] = -0.5, bias[4] = 0.25;
  weight[5] = 1e-300, bias[5] = -1e300;  // its kink is at infinity
  bias[6] = 0;
  expect_agrees(network, at::linspace(-3, 3, 1000, at::kDouble), 1e-12);
}

TEST(ReluNetwork, WorksInTheTypeOfX) {
  const at::Tensor x = normal({1000}, 3).to(at::kFloat);
  const ReluNetwork wide = drawn(32, 4, 5);
  const at::Tensor got = evaluate(wide, x);
  EXPECT_EQ(got.scalar_type(), at::kFloat);
  EXPECT_LE(largest_difference(got, layer_by_layer(wide, x.to(at::kDouble))), 1e-5);
  EXPECT_LE(largest_difference(evaluate(wide, x.view({10, 100}).t()),
                               evaluate(wide, x.view({10, 100}).t().contiguous())),
            0);
}

TEST(ReluNetwork, OfWhatIsNotFiniteIsNaN) {
  ReluNetwork network = drawn(4, 2, 7);
  network.in_bias[1] = std::nan("");
  EXPECT_TRUE(evaluate(network, normal({5}, 1)).isnan().all().item<bool>());
}

TEST(ReluNetwork, HasFirstDerivativesOnly) {
  const ReluNetwork network = drawn(4, 2, 7);
  const at::Tensor x = normal({5}, 1).requires_grad_();
  EXPECT_THAT(
      [&] {
        torch::autograd::grad({evaluate(network, x).sum()}, {x}, {}, /*retain_graph=*/true,
                              /*create_graph=*/true);
      },
      ThrowsMessage<Error>(HasSubstr("first derivatives only")));
}

}  // namespace
}  // namespace sextant::testing
