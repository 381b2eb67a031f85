#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "sextant/base/error.h"
#include "tests/torch/dense.h"
#include "tests/torch/model.h"

namespace sextant::testing {
namespace {

constexpr const char* kQueries = R"({"max_position_embeddings": 9})";
constexpr const char* kBoth =
    R"({"max_position_embeddings": 9, "position_embedding_type": "relative_key_query"})";

at::Tensor run_relative_key(const char* options, const Layout& p, Parameters parameters) {
  const Layer layer(kSmallShape, p);
  return attend_with(*method_of("relative-key", kSmallShape, options), layer.q, layer.k, layer.v, p,
                     1, parameters);
}

TEST(RelativeKey, AddsAVectorByDistanceToTheKeyOrToBoth) {
  for (const char* options : {kQueries, kBoth}) {
    const auto parameters = random_parameters(*method_of("relative-key", kSmallShape, options));
    const Layout p = {.batch = 2, .queries = 9, .keys = 9, .causal = false};
    const Layer layer(kSmallShape, p);
    const at::Tensor row = distances(p) + 8;
    const at::Tensor e = parameters[1].index_select(0, row.flatten()).view({9, 9, -1});
    const at::Tensor k = layer.k.repeat_interleave(2, 1), v = layer.v.repeat_interleave(2, 1);
    at::Tensor scores = at::matmul(layer.q, k.transpose(2, 3)) + (layer.q.unsqueeze(3) * e).sum(-1);
    if (options == kBoth) scores = scores + (k.unsqueeze(2) * e).sum(-1);
    const at::Tensor expected =
        at::matmul(weights(scores / std::sqrt(6.0), at::ones({9, 9}, at::kBool)), v);
    EXPECT_LE(largest_difference(run_relative_key(options, p, parameters), expected), 1e-12);
  }
}

TEST(RelativeKey, OneVectorAddedToAllRowsChangesNothing) {
  const Layout p = {.batch = 2, .queries = 7, .keys = 7};
  auto parameters = random_parameters(*method_of("relative-key", kSmallShape, kQueries));
  const at::Tensor out = run_relative_key(kQueries, p, parameters);
  parameters[1] = parameters[1] + normal({6});
  EXPECT_LE(largest_difference(run_relative_key(kQueries, p, parameters), out), 1e-13);
}

TEST(RelativeKey, HasNoRowForDistancesPastItsTable) {
  const auto parameters = random_parameters(*method_of("relative-key", kSmallShape, kQueries));
  const auto fails = [&](const Layout& p, const char* text) {
    EXPECT_THAT([&] { run_relative_key(kQueries, p, parameters); },
                ::testing::ThrowsMessage<Error>(::testing::HasSubstr(text)));
  };
  fails({.queries = 10, .keys = 10}, "expected less than 9");
  fails({.queries = 1, .keys = 10, .causal = false}, "but got -9");
}

}  // namespace
}  // namespace sextant::testing
