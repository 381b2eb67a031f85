#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "sextant/base/error.h"
#include "tests/torch/dense.h"
#include "tests/torch/model.h"

namespace sextant::testing {
namespace {

// The definition: rows of the table for distances in range, zeros for the others.
void expect_skew(bool shared, bool values, bool unmasked) {
  constexpr int64_t kMost = 4;
  const nlohmann::json options = {{"max_relative_position", kMost},
                                  {"heads_share_relative_embedding", shared},
                                  {"add_relative_to_values", values},
                                  {"unmasked", unmasked}};
  const auto method = method_of("skew", kSmallShape, options.dump());
  const auto parameters = random_parameters(*method);
  const Layout p = {.batch = 2, .queries = 9, .keys = 11, .first_query = 2, .causal = !unmasked};
  const Layer layer(kSmallShape, p);
  const auto pairs = [&](const at::Tensor& tables) {  // [heads, queries, keys, head_dim]
    const at::Tensor by_head = shared ? tables.unsqueeze(0).expand({4, -1, -1}) : tables;
    const int64_t rows = unmasked ? 2 * kMost - 1 : kMost;
    EXPECT_EQ(by_head.size(1), rows);
    const at::Tensor row = -distances(p) + kMost - 1;
    const at::Tensor inside = at::logical_and(row >= 0, row < rows);
    return by_head.index_select(1, row.clamp(0, rows - 1).flatten()).view({4, 9, 11, -1}) *
           inside.unsqueeze(2);
  };
  const at::Tensor k = layer.k.repeat_interleave(2, 1), v = layer.v.repeat_interleave(2, 1);
  const at::Tensor scores = (at::matmul(layer.q, k.transpose(2, 3)) +
                             (layer.q.unsqueeze(3) * pairs(parameters[1])).sum(-1)) /
                            std::sqrt(6.0);
  const at::Tensor weight =
      weights(scores, unmasked ? at::ones({9, 11}, at::kBool) : distances(p) >= 0);
  at::Tensor expected = at::matmul(weight, v);
  if (values) expected = expected + (weight.unsqueeze(4) * pairs(parameters[3])).sum(3);
  EXPECT_LE(largest_difference(attend_with(*method, layer.q, layer.k, layer.v, p, 1, parameters),
                               expected),
            1e-12);
}

TEST(Skew, AddsVectorsByHeadAndDistanceAndZerosBeyondTheTable) {
  for (const bool shared : {true, false})
    for (const bool values : {true, false})
      for (const bool unmasked : {true, false}) expect_skew(shared, values, unmasked);
}

TEST(Skew, NeedsRowsForKeysToTheRightWithoutAMask) {
  const auto method = method_of("skew", kSmallShape);
  const Layout p = {.queries = 3, .keys = 3, .causal = false};
  const Layer layer(kSmallShape, p);
  EXPECT_THAT(
      [&] { attend_with(*method, layer.q, layer.k, layer.v, p, 0, random_parameters(*method)); },
      ::testing::ThrowsMessage<Error>(::testing::HasSubstr("unmasked: expected true")));
}

}  // namespace
}  // namespace sextant::testing
