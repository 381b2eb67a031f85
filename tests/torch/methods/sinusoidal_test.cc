#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/torch/dense.h"
#include "tests/torch/model.h"

namespace sextant::testing {
namespace {

constexpr int64_t kWidth = kSmallShape.width;
const Placement kPlacement = {.batch = 2, .queries = 9, .keys = 14, .first_query = 5};

at::Tensor angles(const at::Tensor& speeds) {
  return at::outer(at::arange(5, 14, at::kDouble), speeds);
}

void expect_added(const std::string& options, const at::Tensor& table, double scale = 1) {
  const at::Tensor x = normal({2, 9, kWidth});
  const at::Tensor out = method_of("sinusoidal", kSmallShape, options)->embed(x, kPlacement, {});
  EXPECT_LE(largest_difference(out, x * scale + table), 1e-12);
}

TEST(Sinusoidal, AddsSinesAndCosines) {
  const at::Tensor exponents = at::arange(0, kWidth, 2, at::kDouble) / -kWidth;
  const at::Tensor a = angles(at::exp(exponents * std::log(10000.0)));
  const at::Tensor interleaved = at::stack({a.sin(), a.cos()}, 2).flatten(1);
  expect_added("{}", interleaved);
  expect_added(R"({"token_scale": 4.5})", interleaved, 4.5);
  expect_added(R"({"layout": "concatenated"})", at::cat({a.sin(), a.cos()}, 1));
  const at::Tensor b = angles(at::exp(exponents * std::log(500.0)));
  expect_added(R"({"base": 500})", at::stack({b.sin(), b.cos()}, 2).flatten(1));
}

TEST(Sinusoidal, HasTensor2TensorsLayout) {
  const at::Tensor a = angles(
      at::exp(at::arange(kWidth / 2, at::kDouble) * (-std::log(10000.0) / (kWidth / 2 - 1))));
  expect_added(R"({"layout": "tensor2tensor"})", at::cat({a.sin(), a.cos()}, 1));
}

TEST(Sinusoidal, LeavesAttentionAlone) {
  const Layer layer(kSmallShape, kPlacement);
  const auto run = [&](const char* name) {
    return attend_with(*method_of(name, kSmallShape), layer.q, layer.k, layer.v, kPlacement, 0, {});
  };
  EXPECT_TRUE(at::equal(run("sinusoidal"), run("none")));
}

}  // namespace
}  // namespace sextant::testing
