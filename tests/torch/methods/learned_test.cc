#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sextant/base/error.h"
#include "tests/torch/dense.h"
#include "tests/torch/model.h"

namespace sextant::testing {
namespace {

TEST(Learned, AddsTheRowOfEachPosition) {
  const auto method = method_of("learned", kSmallShape);
  const auto parameters = random_parameters(*method);
  EXPECT_EQ(parameters[0].sizes(), at::IntArrayRef({8, 24}));
  const Layout p = {.batch = 2, .queries = 5, .keys = 8, .first_query = 3};
  const at::Tensor x = normal({2, 5, 24});
  EXPECT_TRUE(at::equal(method->embed(x, p, parameters), x + parameters[0].slice(0, 3, 8)));
}

TEST(Learned, RefusesPositionsWithoutARow) {
  const auto method = method_of("learned", kSmallShape);
  const auto parameters = random_parameters(*method);
  const auto embed = [&](int64_t first, int64_t queries) {
    const Layout p = {.queries = queries, .keys = 9, .first_query = first};
    return method->embed(normal({1, queries, 24}), p, parameters);
  };
  EXPECT_THAT([&] { embed(0, 9); },
              ::testing::ThrowsMessage<Error>(
                  "learned: position: expected 0 to 7 (option rows), but got 8"));
  EXPECT_THROW(embed(-1, 2), Error);
  EXPECT_EQ(embed(7, 1).size(1), 1);
}

TEST(Learned, HasMoreRowsIfAsked) {
  const auto spec =
      method_of("learned", kSmallShape, R"({"rows": 64, "init_std": 0.7})")->parameters()[0];
  EXPECT_EQ(spec.sizes, (std::vector<int64_t>{64, 24}));
  EXPECT_EQ(spec.init, ParameterSpec::Init::kNormal);
  EXPECT_EQ(spec.init_high, 0.7);
}

}  // namespace
}  // namespace sextant::testing
