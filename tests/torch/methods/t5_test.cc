#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "sextant/base/error.h"
#include "tests/torch/dense.h"
#include "tests/torch/model.h"

namespace sextant::testing {
namespace {

// _relative_position_bucket of Mesh TensorFlow and Hugging Face, in float64. relative = key -
// query.
int64_t bucket(int64_t relative, bool bidirectional, int64_t buckets, int64_t max_distance) {
  int64_t result = 0, n = -relative;
  if (bidirectional) {
    buckets /= 2;
    if (n < 0) result += buckets;
    n = std::abs(n);
  } else {
    n = std::max<int64_t>(n, 0);
  }
  const int64_t exact = buckets / 2;
  if (n < exact) return result + n;
  const double far = std::log(static_cast<double>(n) / exact) /
                     std::log(static_cast<double>(max_distance) / exact) * (buckets - exact);
  return result + std::min(exact + static_cast<int64_t>(far), buckets - 1);
}

void expect_bucket_bias(const std::string& options, const Layout& p, bool bidirectional,
                        int64_t buckets, int64_t max_distance, double scale) {
  const auto method = method_of("t5", kSmallShape, options);
  const auto parameters = random_parameters(*method);
  const Layer layer(kSmallShape, p);
  const at::Tensor d = distances(p);
  const at::Tensor bias = at::empty({4, p.queries, p.keys}, at::kDouble);
  for (int64_t h = 0; h < 4; ++h)
    for (int64_t i = 0; i < p.queries; ++i)
      for (int64_t j = 0; j < p.keys; ++j)
        bias[h][i][j] = parameters[0][bucket(-d[i][j].item<int64_t>(), bidirectional, buckets,
                                             max_distance)][h];
  const at::Tensor visible = p.causal ? d >= 0 : d > -1000000;
  const at::Tensor expected = attention(layer.q, layer.k.repeat_interleave(2, 1),
                                        layer.v.repeat_interleave(2, 1), visible, scale, bias);
  const at::Tensor out = attend_with(*method, layer.q, layer.k, layer.v, p, 1, parameters);
  EXPECT_LE(largest_difference(out, expected), 1e-12);
}

TEST(T5, AddsABiasPerBucketAndDoesNotScale) {
  const Layout decode = {.batch = 1, .queries = 3, .keys = 150, .first_query = 147};
  expect_bucket_bias("{}", decode, false, 32, 128, 1);
  const Layout encode = {.batch = 1, .queries = 30, .keys = 30, .causal = false};
  expect_bucket_bias("{}", encode, true, 32, 128, 1);
  expect_bucket_bias(R"({"bidirectional": false})", encode, false, 32, 128, 1);
  expect_bucket_bias(R"({"bidirectional": true, "buckets": 8, "max_distance": 20})", decode, true,
                     8, 20, 1);
}

TEST(T5, ScalesIfAsked) {
  const Layout p = {.batch = 1, .queries = 9, .keys = 9};
  expect_bucket_bias(R"({"scaled": true})", p, false, 32, 128, 1 / std::sqrt(6.0));
}

TEST(T5, HasATablePerLayerIfAsked) {
  const auto method = method_of("t5", kSmallShape, R"({"per_layer": true})");
  const auto parameters = random_parameters(*method);
  ASSERT_EQ(parameters.size(), 2u);
  EXPECT_EQ(method->parameters()[1].name, "block.1.relative_attention_bias.weight");
  const Layout p = {.batch = 1, .queries = 9, .keys = 9};
  const Layer layer(kSmallShape, p);
  const auto shared = method_of("t5", kSmallShape);
  for (int64_t n = 0; n < 2; ++n)
    EXPECT_TRUE(
        at::equal(attend_with(*method, layer.q, layer.k, layer.v, p, n, parameters),
                  attend_with(*shared, layer.q, layer.k, layer.v, p, n, {&parameters[n], 1})));
  EXPECT_THAT([&] { attend_with(*method, layer.q, layer.k, layer.v, p, 2, parameters); },
              ::testing::ThrowsMessage<Error>("method: layer: expected 0 to 1, but got 2"));
}

}  // namespace
}  // namespace sextant::testing
