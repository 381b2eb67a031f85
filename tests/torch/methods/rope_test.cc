#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/torch/dense.h"
#include "tests/torch/model.h"

namespace sextant::testing {
namespace {

// Rotates the first R columns of x [batch, heads, rows, columns] by products of complex numbers.
at::Tensor rotated(const at::Tensor& x, int64_t first_position, int64_t R, double base,
                   bool interleaved) {
  const at::Tensor position = at::arange(x.size(2), at::kDouble) + first_position;
  const at::Tensor frequency =
      at::pow(at::full({1}, base, at::kDouble), at::arange(0, R, 2, at::kDouble) / -R);
  const at::Tensor angle = at::outer(position, frequency);
  const at::Tensor head = x.narrow(3, 0, R);
  const auto sizes = head.sizes();
  const at::Tensor pairs =
      interleaved ? head.reshape({sizes[0], sizes[1], sizes[2], R / 2, 2})
                  : head.reshape({sizes[0], sizes[1], sizes[2], 2, R / 2}).transpose(3, 4);
  const at::Tensor rotated = at::view_as_real(at::view_as_complex(pairs.contiguous()) *
                                              at::polar(at::ones_like(angle), angle));
  const at::Tensor back = (interleaved ? rotated : rotated.transpose(3, 4)).reshape(sizes);
  return at::cat({back, x.narrow(3, R, x.size(3) - R)}, 3);
}

void expect_turns(const std::string& options, int64_t R, double base, bool interleaved) {
  const Layout p = {.batch = 2, .queries = 5, .keys = 9, .first_query = 1004, .first_key = 1000};
  const auto method = method_of("rope", kSmallShape, options);
  const Layer layer(kSmallShape, p);
  const at::Tensor q = rotated(layer.q, p.first_query, R, base, interleaved);
  const at::Tensor k = rotated(layer.k, p.first_key, R, base, interleaved);
  const at::Tensor expected =
      attention(q, k.repeat_interleave(2, 1), layer.v.repeat_interleave(2, 1), distances(p) >= 0,
                1 / std::sqrt(6.0));
  const at::Tensor out = attend_with(*method, layer.q, layer.k, layer.v, p, 0, {});
  EXPECT_LE(largest_difference(out, expected), 1e-12);
}

// A sequence longer than the 1024 rows that rope-mixed rotates at once.
TEST(RopeMixed, TurnsLongTextsByItsTrainedDirections) {
  constexpr ModelShape kShape = {
      .layers = 1, .heads = 2, .key_heads = 2, .head_dim = 4, .width = 8, .train_length = 8};
  const Layout p = {.batch = 1, .queries = 1100, .keys = 1100};
  const auto method = method_of("rope-mixed", kShape);
  const Layer layer(kShape, p);
  const at::Tensor d_out = at::randn_like(layer.q);
  const auto results_of = [&](const auto& run) {
    std::vector<at::Tensor> inputs = {layer.q, layer.k,
                                      method->parameters()[0].initial.to(at::kDouble) / 100};
    for (at::Tensor& x : inputs) x = x.clone().requires_grad_();
    const at::Tensor out = run(inputs[0], inputs[1], inputs[2]);
    out.backward(d_out);
    return std::vector<at::Tensor>{out.detach(), inputs[0].grad(), inputs[1].grad(),
                                   inputs[2].grad()};
  };
  const auto ours = results_of([&](const auto& q, const auto& k, const auto& freqs) {
    return attend_with(*method, q, k, layer.v, p, 0, {&freqs, 1});
  });
  const auto expected = results_of([&](const auto& q, const auto& k, const auto& freqs) {
    const at::Tensor frequencies = freqs.sum(0).view({1, 2, 1, 2});  // token t is at (t, t)
    const at::Tensor angles = at::arange(1100, at::kDouble).view({1, 1, -1, 1}) * frequencies;
    const at::Tensor turns = at::complex(at::cos(angles), at::sin(angles));
    const auto at_angles = [&](const at::Tensor& x) {
      const at::Tensor pairs = at::view_as_complex(x.reshape({1, 2, 1100, 2, 2}));
      return at::view_as_real(pairs * turns).reshape(x.sizes());
    };
    return attention(at_angles(q), at_angles(k), layer.v, distances(p) >= 0, 0.5);
  });
  for (size_t n = 0; n < ours.size(); ++n)
    EXPECT_LE(largest_difference(ours[n], expected[n]), 1e-9) << n;
}

TEST(Rope, TurnsPairsOfBothLayouts) {
  expect_turns("{}", 6, 10000, false);
  expect_turns(R"({"pairing": "interleaved"})", 6, 10000, true);
}

TEST(Rope, LeavesTheRestAsItIs) {
  expect_turns(R"({"dim": 4, "base": 500000.0})", 4, 500000, false);
  expect_turns(R"({"dim": 2, "pairing": "interleaved"})", 2, 10000, true);
}

TEST(Rope, WithoutTurningChannelsIsPlainAttention) {
  const Layout p = {.batch = 1, .queries = 9, .keys = 9};
  const Layer layer(kSmallShape, p);
  const auto run = [&](const char* name, const char* options) {
    return attend_with(*method_of(name, kSmallShape, options), layer.q, layer.k, layer.v, p, 0, {});
  };
  EXPECT_TRUE(at::equal(run("rope", R"({"dim": 0})"), run("none", "{}")));
}

TEST(Rope, RoundedFrequenciesAreOthersButNear) {
  const Layout p = {.batch = 1, .queries = 9, .keys = 9, .first_query = 4000, .first_key = 0};
  const Layer layer(kSmallShape, p);
  const auto run = [&](const char* options) {
    return attend_with(*method_of("rope", kSmallShape, options), layer.q, layer.k, layer.v, p, 0,
                       {});
  };
  const double apart = largest_difference(run("{}"), run(R"({"float32_frequencies": true})"));
  EXPECT_GT(apart, 1e-8);
  EXPECT_LT(apart, 1e-3);
}

}  // namespace
}  // namespace sextant::testing
