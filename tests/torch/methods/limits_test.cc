// Methods at the limits of their parameters: leaky-rerope between rope and rerope, FLOATER without
// a flow and at the order of its solver, complex embeddings of frequency 0.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sextant/torch/methods/shared/recurrences.h"
#include "tests/torch/dense.h"
#include "tests/torch/gradients.h"
#include "tests/torch/model.h"

namespace sextant::testing {
namespace {

using nlohmann::json;

at::Tensor run_limited(const std::string& name, const json& options, const Layout& p) {
  const Layer layer(kSmallShape, p);
  return attend_with(*method_of(name, kSmallShape, options.dump()), layer.q, layer.k, layer.v, p, 0,
                     {});
}

TEST(LeakyRerope, IsRopeAtFactorOneAndReropeAtNone) {
  for (const bool causal : {true, false}) {
    const Layout p = {.batch = 2, .queries = 12, .keys = 12, .causal = causal};
    const at::Tensor rope = run_limited("rope", json::object(), p);
    const at::Tensor rerope = run_limited("rerope", {{"window", 3}}, p);
    EXPECT_GT(largest_difference(rope, rerope), 1e-3);
    EXPECT_LE(
        largest_difference(run_limited("leaky-rerope", {{"window", 3}, {"factor", 1.0}}, p), rope),
        1e-12);
    // A distance of 12 becomes 3 + 9e-12; this angle changes a score of a few units by less than
    // 1e-10.
    EXPECT_LE(largest_difference(run_limited("leaky-rerope", {{"window", 3}, {"factor", 1e12}}, p),
                                 rerope),
              1e-10);
  }
}

constexpr int64_t kLimitedWidth = 4;
const at::TensorOptions kDouble = at::TensorOptions(at::kDouble);

// h = W2 [relu(W1 [p; t] + b1); t] + b2.
at::Tensor flow(const at::Tensor& start, const at::Tensor& w1, const at::Tensor& w2,
                const at::Tensor& b2, int64_t length) {
  const std::array<at::Tensor, 4> weights{w1, at::zeros({kLimitedWidth}, kDouble), w2, b2};
  return floater_positions(start, weights, length, Flow::kLinear, FlowGradient::kSolver);
}

TEST(Floater, WithoutAFlowStaysWhereItStarts) {
  const at::Tensor start = normal({3, 1, kLimitedWidth});
  const at::Tensor none = at::zeros({kLimitedWidth, kLimitedWidth + 1}, kDouble);
  const at::Tensor rows = flow(start, none, none, at::zeros({kLimitedWidth}, kDouble), 300);
  ASSERT_EQ(rows.size(0), 300);
  EXPECT_TRUE(at::equal(rows, start.unsqueeze(0).expand_as(rows)));
}

// p' = lambda p for positive p. With z = lambda times the step, one step of a solver of order 4 in
// 4 stages multiplies p by 1 + z + z^2/2 + z^3/6 + z^4/24, and the error at a fixed time is
// proportional to z^4.
TEST(Floater, ConvergesAtTheOrderOfItsSolver) {
  constexpr double kStep = 0.002;
  constexpr int64_t kStepsPerRow = 5;
  const at::Tensor start = at::ones({3, 1, kLimitedWidth}, kDouble);
  const at::Tensor same =
      at::cat({at::eye(kLimitedWidth, kDouble), at::zeros({kLimitedWidth, 1}, kDouble)}, 1);
  // The error of ln p at lambda t = 4.
  const auto error = [&](double lambda, int64_t row) {
    const at::Tensor rows =
        flow(start, same, same * lambda, at::zeros({kLimitedWidth}, kDouble), row + 1);
    const double z = lambda * kStep;
    const double factor = 1 + z + z * z / 2 + z * z * z / 6 + z * z * z * z / 24;
    const double found = rows[row].log().max().item<double>();
    EXPECT_NEAR(found, static_cast<double>(kStepsPerRow * row) * std::log(factor), 1e-12);
    return std::abs(found - lambda * kStep * static_cast<double>(kStepsPerRow * row));
  };
  const double coarse = error(100, 4), middle = error(50, 8), fine = error(25, 16);
  EXPECT_NEAR(std::log2(coarse / middle), 4, 0.2);
  EXPECT_NEAR(std::log2(middle / fine), 4, 0.1);
}

// FlowGradient::kSolver differentiates the steps of the solver itself.
TEST(Floater, GradientsOfTheSolverAgreeWithDifferences) {
  for (const Flow kind : {Flow::kLinear, Flow::kConvolution}) {
    constexpr int64_t kLayers = 2, kChannels = 3;
    std::vector<at::Tensor> inputs = {normal({3, kLayers, kLimitedWidth}, 1)};
    if (kind == Flow::kLinear) {
      inputs.push_back(normal({kLimitedWidth, kLimitedWidth + 1}, 2));
      inputs.push_back(normal({kLimitedWidth}, 3));
      inputs.push_back(normal({kLimitedWidth, kLimitedWidth + 1}, 4));
      inputs.push_back(normal({kLimitedWidth}, 5));
    } else {
      inputs.push_back(normal({kChannels, kLayers + 1, 5}, 2));
      inputs.push_back(normal({kChannels}, 3));
      inputs.push_back(normal({kChannels + 1, kLayers, 5}, 4));
      inputs.push_back(normal({kLayers}, 5));
    }
    const auto rows = [&](const Tensors& x) {
      return floater_positions(x[0], std::span(x).subspan(1), 4, kind, FlowGradient::kSolver);
    };
    EXPECT_LE(gradient_error(rows, inputs), 1e-8);
  }
}

TEST(Complex, WithoutFrequenciesKnowsNoPosition) {
  const auto method = method_of("complex", kSmallShape);
  const std::vector<at::Tensor> still{at::zeros({kSmallShape.width / 2}, kDouble)};
  const Layout here = {.batch = 2, .queries = 9, .keys = 9, .causal = false};
  Layout far = here;
  far.first_query = far.first_key = 1000000;
  const at::Tensor x = normal({2, 9, kSmallShape.width});
  EXPECT_TRUE(at::equal(method->embed(x, here, still), x));
  EXPECT_TRUE(at::equal(method->embed(x, far, still), x));
  EXPECT_FALSE(at::equal(method->embed(x, here, random_parameters(*method)), x));
  // The order of keys does not matter.
  const Layer layer(kSmallShape, here);
  const auto attend = [&](const at::Tensor& k, const at::Tensor& v, const Layout& p) {
    return attend_with(*method, layer.q, k, v, p, 0, still);
  };
  const at::Tensor out = attend(layer.k, layer.v, here);
  EXPECT_LE(largest_difference(out, attend(layer.k.flip(2), layer.v.flip(2), here)), 1e-12);
  EXPECT_TRUE(at::equal(out, attend(layer.k, layer.v, far)));
}

}  // namespace
}  // namespace sextant::testing
