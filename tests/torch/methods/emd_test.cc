#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sextant/base/error.h"
#include "tests/torch/dense.h"
#include "tests/torch/model.h"

namespace sextant::testing {
namespace {

const Layout kPlacement = {.batch = 2, .queries = 5, .keys = 8, .first_query = 3};

TEST(Emd, AddsTheRowOfEachPositionBeforeTheLastLayer) {
  const auto method = method_of("emd", kSmallShape);
  const auto parameters = random_parameters(*method);
  const at::Tensor x = normal({2, 5, 24});
  EXPECT_TRUE(at::equal(method->embed(x, kPlacement, parameters), x));
  EXPECT_TRUE(at::equal(method->embed_last(x, kPlacement, parameters),
                        x + parameters.back().slice(0, 3, 8)));
  EXPECT_EQ(method->last_layer_runs(), 2);
  EXPECT_EQ(method_of("emd", kSmallShape, R"({"runs": 3})")->last_layer_runs(), 3);
}

TEST(Emd, LeavesEachLayerToTheMethodBelow) {
  const auto method = method_of("emd", kSmallShape, R"({"of": "t5", "options": {"buckets": 8}})");
  const auto parameters = random_parameters(*method);
  const Layer layer(kSmallShape, kPlacement);
  const auto run = [&](const Method& one, Parameters own) {
    return attend_with(one, layer.q, layer.k, layer.v, kPlacement, 1, own);
  };
  EXPECT_TRUE(at::equal(run(*method, parameters),
                        run(*method_of("t5", kSmallShape, R"({"buckets": 8})"),
                            Parameters(parameters).first(parameters.size() - 1))));
}

TEST(Emd, GoesThroughMethodsLaidOverIt) {
  const auto method = method_of("sink", kSmallShape, R"({"of": "emd"})");
  const auto parameters = random_parameters(*method);
  const at::Tensor x = normal({2, 5, 24});
  const at::Tensor& table = parameters[parameters.size() - 1 - kSmallShape.layers];
  EXPECT_TRUE(at::equal(method->embed_last(x, kPlacement, parameters), x + table.slice(0, 3, 8)));
  EXPECT_EQ(method->last_layer_runs(), 2);
}

TEST(Emd, RefusesPositionsWithoutARow) {
  const auto method = method_of("emd", kSmallShape);
  const auto parameters = random_parameters(*method);
  const Layout p = {.queries = 9, .keys = 9};
  EXPECT_THAT(
      [&] {
        method->embed_last(normal({1, 9, 24}), p, parameters);
      },
      ::testing::ThrowsMessage<Error>("emd: position: expected 0 to 7 (option rows), but got 8"));
}

}  // namespace
}  // namespace sextant::testing
