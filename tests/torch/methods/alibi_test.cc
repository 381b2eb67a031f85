#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/torch/dense.h"
#include "tests/torch/model.h"

namespace sextant::testing {
namespace {

at::Tensor four_slopes() {
  return at::tensor({0.25, 0.0625, 0.015625, 0.00390625}, at::kDouble).view({4, 1, 1});
}

void expect_bias(const Layout& p, const std::string& options, const at::Tensor& bias) {
  const auto method = method_of("alibi", kSmallShape, options);
  const Layer layer(kSmallShape, p);
  const at::Tensor visible = p.causal ? distances(p) >= 0 : distances(p) > -1000000;
  const at::Tensor expected =
      attention(layer.q, layer.k.repeat_interleave(2, 1), layer.v.repeat_interleave(2, 1), visible,
                1 / std::sqrt(6.0), bias);
  EXPECT_LE(largest_difference(attend_with(*method, layer.q, layer.k, layer.v, p, 0, {}), expected),
            1e-12);
}

TEST(Alibi, AddsSlopeTimesDistance) {
  const Layout p = {.batch = 2, .queries = 5, .keys = 40, .first_query = 35};
  expect_bias(p, "{}", -four_slopes() * distances(p));
  expect_bias(p, R"({"max_bias": 4})", -four_slopes().sqrt() * distances(p));
}

TEST(Alibi, IsSymmetricWithoutAMaskUnlessToldOtherwise) {
  const Layout p = {.batch = 1, .queries = 9, .keys = 9, .causal = false};
  expect_bias(p, "{}", -four_slopes() * distances(p).abs());
  const at::Tensor d = distances(p).to(at::kDouble);
  expect_bias(p, R"({"future_scale": 0.5})", -four_slopes() * at::where(d < 0, -0.5 * d, d));
}

TEST(Alibi, KeyPositionsGiveTheSame) {
  const Layout p = {.batch = 1, .queries = 9, .keys = 9};
  expect_bias(p, "{}", four_slopes() * at::arange(9, at::kDouble));  // as in the official code
}

}  // namespace
}  // namespace sextant::testing
