#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/torch/dense.h"
#include "tests/torch/model.h"

namespace sextant::testing {
namespace {

constexpr int64_t kClip = 3;

// A vector for each query and key: sines and cosines of clip(j - i) + shift, interleaved.
at::Tensor vectors(const Layout& p, int64_t shift, int64_t width) {
  const at::Tensor rotary_positions = (-distances(p)).clamp(-kClip, kClip) + shift;
  const at::Tensor frequencies =
      at::pow(10000.0, -2 * at::arange(width / 2, at::kDouble) / static_cast<double>(width));
  const at::Tensor angles = rotary_positions.unsqueeze(2) * frequencies;
  return at::stack({angles.sin(), angles.cos()}, 3).flatten(2);
}

void expect_nezha(const std::string& options, int64_t shift) {
  const auto method = method_of("nezha", kSmallShape, options);
  for (const bool causal : {true, false}) {
    const Layout p = {.batch = 2, .queries = 5, .keys = 9, .first_query = 4, .causal = causal};
    const Layer layer(kSmallShape, p);
    const at::Tensor a = vectors(p, shift, 6);
    const at::Tensor k = layer.k.repeat_interleave(2, 1), v = layer.v.repeat_interleave(2, 1);
    const at::Tensor scores =
        (at::matmul(layer.q, k.transpose(2, 3)) + (layer.q.unsqueeze(3) * a).sum(-1)) /
        std::sqrt(6.0);
    const at::Tensor weight =
        weights(scores, causal ? distances(p) >= 0 : at::ones({5, 9}, at::kBool));
    const at::Tensor expected = at::matmul(weight, v) + (weight.unsqueeze(4) * a).sum(3);
    EXPECT_LE(
        largest_difference(attend_with(*method, layer.q, layer.k, layer.v, p, 1, {}), expected),
        1e-12);
  }
}

TEST(Nezha, TurnsByTheRowInCodeAndByTheDistanceInThePaper) {
  expect_nezha(R"({"max_relative_position": 3})", kClip);
  expect_nezha(R"({"max_relative_position": 3, "flavour": "paper"})", 0);
}

TEST(Nezha, HasNoParameters) { EXPECT_TRUE(method_of("nezha", kSmallShape)->parameters().empty()); }

}  // namespace
}  // namespace sextant::testing
