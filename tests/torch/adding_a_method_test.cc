// The method of docs/adding-a-method.md, whose source CMake takes from the page. It is not in the
// registry, so that no user meets it.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sextant/position/slopes.h"
#include "tests/torch/dense.h"
#include "tests/torch/gradients.h"
#include "tests/torch/model.h"

namespace sextant {

MethodInfo sqrt_distance_method();

namespace testing {
namespace {

TEST(AddingAMethod, TheMethodOfThePageHasGradients) {
  const MethodInfo info = sqrt_distance_method();
  const auto method = info.make(kSmallShape, nlohmann::json::parse(info.defaults));
  const std::vector<ParameterSpec> parameters = method->parameters();
  ASSERT_EQ(parameters.size(), 1U);
  EXPECT_EQ(parameters[0].initial[1].item<double>(), alibi_slopes(4)[1]);

  const Layout p = {.batch = 2, .queries = 5, .keys = 7, .first_query = 2};
  const Layer layer(kSmallShape, p);
  const auto run = [&](const std::vector<at::Tensor>& x) {
    return attend_with(*method, x[0], x[1], x[2], p, 0, Parameters(x).subspan(3));
  };
  EXPECT_LE(gradient_error(run, {layer.q, layer.k, layer.v, parameters[0].initial}, 40), 1e-7);
}

}  // namespace
}  // namespace testing
}  // namespace sextant
