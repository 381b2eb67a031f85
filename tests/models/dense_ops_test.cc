#include "sextant/models/dense_ops.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Generator.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/full.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/rsqrt.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "sextant/base/error.h"

namespace sextant {
namespace {

using Tensors = std::vector<at::Tensor>;
using Function = std::function<at::Tensor(const Tensors&)>;

// The result of f and the gradients of sum(f * weight), computed in `type` and converted to
// float64.
Tensors results(const Function& f, const Tensors& inputs, const at::Tensor& weight,
                at::ScalarType type) {
  Tensors leaves;
  for (const at::Tensor& input : inputs) leaves.push_back(input.detach().to(type).requires_grad_());
  const at::Tensor y = f(leaves);
  (y * weight.to(type)).sum().backward();
  Tensors all = {y.detach().to(at::kDouble)};
  for (const at::Tensor& leaf : leaves) all.push_back(leaf.grad().to(at::kDouble));
  return all;
}

// Compares our function in float32 with libtorch's in float64.
void expect_same(const Function& ours, const Function& theirs, const Tensors& inputs,
                 double bound) {
  const at::Tensor weight = at::randn(theirs(inputs).sizes());
  const Tensors a = results(ours, inputs, weight, at::kFloat);
  const Tensors b = results(theirs, inputs, weight, at::kDouble);
  for (size_t n = 0; n < a.size(); ++n) {
    ASSERT_EQ(a[n].sizes(), b[n].sizes());
    const double wrong = (a[n] - b[n]).abs().max().item<double>();
    EXPECT_LE(wrong, bound * b[n].abs().max().item<double>()) << "result " << n;
  }
}

// Few rows take another code path than many. The second and third input are not contiguous.
Tensors stream_of(int64_t rows, int64_t width) {
  return {at::randn({2, rows, width}), at::randn({2, width, rows}).transpose(1, 2),
          at::randn({2, rows, 2 * width}).narrow(2, width, width)};
}

TEST(Projected, AndItsGradientsAreLibtorchs) {
  for (const int64_t rows : {1, 15, 16, 40}) {
    for (const at::Tensor& x : stream_of(rows, 24)) {
      const Tensors inputs = {x, at::randn({37, 24})};
      expect_same([](const Tensors& in) { return projected(in[0], in[1]); },
                  [](const Tensors& in) { return at::linear(in[0], in[1]); }, inputs, 1e-5);
    }
    const Tensors inputs = {at::randn({2, rows, 24}), at::randn({37, 24}),
                            at::randn({2, rows, 37})};
    expect_same([](const Tensors& in) { return projected(in[0], in[1], in[2]); },
                [](const Tensors& in) { return in[2] + at::linear(in[0], in[1]); }, inputs, 1e-5);
  }
}

TEST(Projected, TakesAPartOfAWeight) {
  const auto part = [](const at::Tensor& weight) { return weight.slice(0, 8, 20); };
  expect_same([&](const Tensors& in) { return projected(in[0], part(in[1])); },
              [&](const Tensors& in) { return at::linear(in[0], part(in[1])); },
              {at::randn({50, 24}), at::randn({37, 24})}, 1e-5);
}

TEST(Normalized, AndItsGradientsAreLibtorchs) {
  for (const at::Tensor& x : stream_of(30, 24)) {
    const Tensors inputs = {2 * x + 1, at::randn({24})};
    expect_same([](const Tensors& in) { return normalized(in[0], in[1], {}); },
                [](const Tensors& in) { return at::layer_norm(in[0], {24}, in[1], {}, 1e-5); },
                inputs, 1e-5);
    expect_same([](const Tensors& in) { return normalized(in[0], in[1], {.centered = false}); },
                [](const Tensors& in) {
                  return in[0] * at::rsqrt(in[0].square().mean(-1, /*keepdim=*/true) + 1e-5) *
                         in[1];
                },
                inputs, 1e-5);
  }
}

TEST(SquaredReluLayer, AndItsGradientsAreLibtorchs) {
  for (const int64_t rows : {1, 15, 16, 40})
    for (const at::Tensor& x : stream_of(rows, 24)) {
      const Tensors inputs = {x, at::randn({24}), at::randn({70, 24}), at::randn({24, 70})};
      expect_same(
          [](const Tensors& in) { return squared_relu_layer(in[0], in[1], in[2], in[3], {}); },
          [](const Tensors& in) {
            const at::Tensor y = at::layer_norm(in[0], {24}, in[1], {}, 1e-5);
            return in[0] + at::linear(at::relu(at::linear(y, in[2])).square(), in[3]);
          },
          inputs, 1e-5);
    }
}

TEST(CrossEntropy, AndItsGradientAreLibtorchs) {
  const at::Tensor targets = at::randint(37, {50}, at::kLong);
  expect_same([&](const Tensors& in) { return cross_entropy(in[0], targets); },
              [&](const Tensors& in) {
                return at::cross_entropy_loss(in[0], targets, {}, at::Reduction::None);
              },
              {3 * at::randn({50, 37})}, 1e-6);
}

TEST(CrossEntropy, RefusesTargetsThatAreNoColumns) {
  for (const int64_t target : {-1, 4})
    EXPECT_THAT(
        [&] {
          cross_entropy(at::randn({1, 4}), at::full({1}, target, at::kLong));
        },
        testing::ThrowsMessage<Error>(
            testing::HasSubstr("targets: expected 0 to 3, but got " + std::to_string(target))));
  EXPECT_THAT(
      [] {
        cross_entropy(at::randn({2, 4}), at::full({1}, 0, at::kLong));
      },
      testing::ThrowsMessage<Error>(
          testing::HasSubstr("targets: expected one for each row of logits, but got 1")));
  EXPECT_THAT([] { cross_entropy(at::randn({4}), at::full({1}, 0, at::kLong)); },
              testing::ThrowsMessage<Error>(
                  testing::HasSubstr("logits: expected 2 dimensions, but got 1")));
}

}  // namespace
}  // namespace sextant
