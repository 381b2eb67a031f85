#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/torch/dense.h"
#include "tests/torch/model.h"

namespace sextant::testing {
namespace {

TEST(None, IsPlainAttention) {
  const auto method = method_of("none", kSmallShape);
  const Layout p = {.batch = 2, .queries = 5, .keys = 9, .first_query = 4};
  const Layer layer(kSmallShape, p);
  const at::Tensor expected =
      attention(layer.q, layer.k.repeat_interleave(2, 1), layer.v.repeat_interleave(2, 1),
                distances(p) >= 0, 1 / std::sqrt(6.0));
  const at::Tensor out = attend_with(*method, layer.q, layer.k, layer.v, p, 0, {});
  EXPECT_LE(largest_difference(out, expected), 1e-12);
  EXPECT_TRUE(at::equal(method->embed(layer.x, p, {}), layer.x));
}

TEST(None, WithoutAMaskTheOrderOfKeysDoesNotMatter) {
  const auto method = method_of("none", kSmallShape);
  const Layout p = {.batch = 2, .queries = 4, .keys = 9, .causal = false};
  const Layer layer(kSmallShape, p);
  const at::Tensor out = attend_with(*method, layer.q, layer.k, layer.v, p, 0, {});
  const at::Tensor turned_round =
      attend_with(*method, layer.q, layer.k.flip(2), layer.v.flip(2), p, 0, {});
  EXPECT_LE(largest_difference(out, turned_round), 1e-14);
}

}  // namespace
}  // namespace sextant::testing
