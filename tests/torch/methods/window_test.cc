#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/torch/dense.h"
#include "tests/torch/model.h"

namespace sextant::testing {
namespace {

at::Tensor run_windowed(const std::string& name, const std::string& options, const Layout& p) {
  const auto method = method_of(name, kSmallShape, options);
  const Layer layer(kSmallShape, p);
  return attend_with(*method, layer.q, layer.k, layer.v, p, 1, random_parameters(*method));
}

TEST(Window, SeesThatManyKeysItselfAmongThem) {
  for (const bool causal : {true, false}) {
    const Layout p = {.batch = 2, .queries = 9, .keys = 12, .first_query = 3, .causal = causal};
    const Layer layer(kSmallShape, p);
    const at::Tensor d = distances(p);
    const at::Tensor visible = at::logical_and(d < 4, causal ? d >= 0 : d > -4);
    EXPECT_EQ(visible.select(0, 5).sum().item<int64_t>(), causal ? 4 : 7);
    const at::Tensor expected =
        attention(layer.q, layer.k.repeat_interleave(2, 1), layer.v.repeat_interleave(2, 1),
                  visible, 1 / std::sqrt(6.0));
    EXPECT_LE(
        largest_difference(run_windowed("window", R"({"window": 4, "of": "none"})", p), expected),
        1e-12);
  }
}

TEST(Window, IsTheTrainingLengthUnlessGiven) {
  const Layout p = {.batch = 1, .queries = 20, .keys = 20};
  EXPECT_TRUE(
      at::equal(run_windowed("window", "{}", p), run_windowed("window", R"({"window": 8})", p)));
}

TEST(Window, AsWideAsTheTextIsTheMethodItself) {
  const Layout p = {.batch = 2, .queries = 9, .keys = 9};
  for (const std::string name : {"none", "rope", "alibi", "shaw", "t5"}) {
    SCOPED_TRACE(name);
    EXPECT_TRUE(at::equal(run_windowed("window", R"({"window": 9, "of": ")" + name + "\"}", p),
                          run_windowed(name, "{}", p)));
  }
}

TEST(Window, PassesOptionsParametersAndInputOn) {
  const auto method = method_of("window", kSmallShape,
                                R"({"of": "learned", "options": {"rows": 20}, "window": 3})");
  const auto parameters = random_parameters(*method);
  const Layout p = {.batch = 2, .queries = 9, .keys = 9};
  const Layer layer(kSmallShape, p);
  EXPECT_TRUE(
      at::equal(method->embed(layer.x, p, parameters), layer.x + parameters[0].slice(0, 0, 9)));
}

}  // namespace
}  // namespace sextant::testing
