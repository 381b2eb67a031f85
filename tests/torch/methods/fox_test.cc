#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>

#include "sextant/base/error.h"
#include "tests/torch/dense.h"
#include "tests/torch/gradients.h"
#include "tests/torch/model.h"

namespace sextant::testing {
namespace {

// -|c_i - c_j| for sums c of ln f: logits [batch, keys, heads] -> [batch, heads, queries, keys].
at::Tensor forgotten(const Layout& p, const at::Tensor& logits) {
  const at::Tensor c = at::cumsum(at::log_sigmoid(logits), 1).transpose(1, 2);
  const at::Tensor of_queries = c.slice(2, p.first_query, p.first_query + p.queries);
  return -(of_queries.unsqueeze(3) - c.unsqueeze(2)).abs();
}

TEST(Fox, AddsWhatTheGatesBetweenForget) {
  const auto method = method_of("fox", kSmallShape);
  const std::vector<at::Tensor> parameters = random_parameters(*method);
  for (const bool causal : {true, false}) {
    const Layout p = {.batch = 2, .queries = 5, .keys = 9, .first_query = 2, .causal = causal};
    const Layer layer(kSmallShape, p);
    const at::Tensor out =
        attend_with(*method, layer.q, with_key_columns(*method, layer.k, layer.seen, 1, parameters),
                    layer.v, p, 1, parameters);
    const at::Tensor logits = at::linear(layer.seen, parameters[2], parameters[3]);
    const at::Tensor visible = causal ? distances(p) >= 0 : distances(p) > -1000;
    for (int64_t b = 0; b < 2; ++b) {
      const auto one = [&](const at::Tensor& x) { return x.slice(0, b, b + 1); };
      const at::Tensor expected = attention(one(layer.q), one(layer.k).repeat_interleave(2, 1),
                                            one(layer.v).repeat_interleave(2, 1), visible,
                                            1 / std::sqrt(6.0), forgotten(p, one(logits))[0]);
      EXPECT_LE(largest_difference(one(out), expected), 1e-13);
    }
  }
}

// 10^5 tokens with mostly closed gates: the sums of ln f reach 6 10^5, where float32 values are
// 1/16 apart. The decay between near tokens, and gradients, must be accurate nevertheless.
TEST(Fox, LongSumsOfStrongGatesCancelInFloat32) {
  constexpr int64_t kTokens = 100000, kQueries = 8;
  const ModelShape shape = {.heads = 2, .key_heads = 1, .head_dim = 8, .width = 16};
  const auto method = method_of("fox", shape);
  const std::vector<at::Tensor> unread = random_parameters(*method);
  for (const bool causal : {true, false})
    for (const int64_t first : {kTokens / 2, kTokens - kQueries}) {
      const Layout p = {
          .batch = 1, .queries = kQueries, .keys = kTokens, .first_query = first, .causal = causal};
      const Layer layer(shape, p);
      at::Tensor logits = 6 * normal({1, 1, kTokens, 2}, 7) - 6;
      // Gates around the queries are open, so that hundreds of tokens have weight.
      logits.slice(2, first - 500, first + 500).add_(12);
      const at::Tensor k = at::cat({layer.k, logits}, 3).to(at::kFloat);
      std::vector<at::Tensor> narrow = {layer.q.to(at::kFloat), k, layer.v.to(at::kFloat)}, wide;
      for (at::Tensor& x : narrow) {
        wide.push_back(x.to(at::kDouble).requires_grad_());  // the same values
        x.requires_grad_();
      }
      std::vector<at::Tensor> floats;
      for (const at::Tensor& x : unread) floats.push_back(x.to(at::kFloat));
      const at::Tensor out = attend_with(*method, narrow[0], narrow[1], narrow[2], p, 0, floats);
      const at::Tensor expected = attend_with(*method, wide[0], wide[1], wide[2], p, 0, unread);
      // The error without gates: scores of about 10 and a sum of a thousand weights, in units of
      // 2^-24.
      EXPECT_LE(largest_difference(out, expected), 1e-5);
      const at::Tensor above = normal(out.sizes().vec(), 9);
      const Tensors got = torch::autograd::grad({(out * above.to(at::kFloat)).sum()}, narrow);
      const Tensors wanted = torch::autograd::grad({(expected * above).sum()}, wide);
      // The gradient of a logit sums the score gradients of all later tokens.
      for (size_t n = 0; n < got.size(); ++n)
        EXPECT_LE(largest_difference(got[n], wanted[n]), 1e-4) << n;
    }
}

// Checks the float64 results of the test above against sums of only the gates between two tokens.
TEST(Fox, LongSumsAreThoseOfTheGatesBetween) {
  constexpr int64_t kTokens = 20000, kSeen = 300;
  const ModelShape shape = {.heads = 1, .key_heads = 1, .head_dim = 8, .width = 8};
  const auto method = method_of("fox", shape);
  const Layout p = {.batch = 1, .queries = 1, .keys = kTokens, .first_query = kTokens - 1};
  const Layer layer(shape, p);
  at::Tensor logits = 6 * normal({1, 1, kTokens, 1}, 7) - 6;
  logits.slice(2, kTokens - kSeen).add_(12);
  const at::Tensor out = attend_with(*method, layer.q, at::cat({layer.k, logits}, 3), layer.v, p, 0,
                                     random_parameters(*method));
  // After a hundred closed gates, older tokens have no weight.
  constexpr int64_t kLeft = kSeen + 100;
  const auto seen = [&](const at::Tensor& x) { return x.slice(2, kTokens - kLeft); };
  const Layout near = {.batch = 1, .queries = 1, .keys = kLeft, .first_query = kLeft - 1};
  const at::Tensor expected =
      attention(layer.q, seen(layer.k), seen(layer.v), distances(near) >= 0, 1 / std::sqrt(8.0),
                forgotten(near, seen(logits).squeeze(1))[0]);
  // Up to kLeft sums below 2^17 lie between two of the remaining tokens, each of them rounded: the
  // error of a score. Values are at most about 4, and their mean changes by up to twice 4 times
  // that error.
  constexpr double kRounding = 8 * kLeft * 0x1p-53 * 0x1p17;
  EXPECT_LE(largest_difference(out, expected), kRounding);
}

TEST(Fox, ErrorsSayWhatIsMissing) {
  const auto method = method_of("fox", kSmallShape);
  const std::vector<at::Tensor> parameters = random_parameters(*method);
  const auto fails = [&](const Layout& p, const at::Tensor& k, const char* text) {
    const Layer layer(kSmallShape, p);
    EXPECT_THAT([&] { attend_with(*method, layer.q, k, layer.v, p, 0, parameters); },
                ::testing::ThrowsMessage<Error>(::testing::HasSubstr(text)));
  };
  const Layout p = {.batch = 1, .queries = 3, .keys = 3};
  fails(p, Layer(kSmallShape, p).k, "fox: k: expected 6 columns and 2 more");
  const Layout beyond = {.batch = 1, .queries = 3, .keys = 3, .first_query = 1};
  fails(beyond, normal({1, 2, 3, 8}), "fox: queries: expected positions 0 to 2");
}

}  // namespace
}  // namespace sextant::testing
