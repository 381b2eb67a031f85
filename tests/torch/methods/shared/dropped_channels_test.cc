#include "sextant/torch/methods/shared/dropped_channels.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "sextant/base/error.h"
#include "tests/torch/dense.h"
#include "tests/torch/gradients.h"
#include "tests/torch/model.h"

namespace sextant::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

const Layout kRows = {.batch = 2, .queries = 7, .keys = 9, .first_query = 2};

std::unique_ptr<Method> dropped(const std::string& name, int64_t count, uint64_t seed = 3,
                                const std::string& options = "{}") {
  return with_dropped_channels(method_of(name, kSmallShape, options), kSmallShape, count, seed);
}

TEST(DroppedChannels, AreDrawnFromTheSeedAndNested) {
  const std::vector<int64_t> few = drawn_channels(128, 4, 7), many = drawn_channels(128, 16, 7);
  EXPECT_EQ(std::set(many.begin(), many.end()).size(), 16);
  EXPECT_TRUE(std::ranges::is_sorted(many));
  EXPECT_TRUE(std::ranges::includes(many, few));
  EXPECT_GE(few.front(), 0);
  EXPECT_LT(many.back(), 128);
  EXPECT_NE(drawn_channels(128, 4, 8), few);
  EXPECT_THAT(drawn_channels(3, 3, 7), ElementsAre(0, 1, 2));
}

// Each of 8 channels is drawn in about 1/8 of 4000 seeds: within five standard deviations.
TEST(DroppedChannels, AreAllEquallyLikely) {
  std::vector<int> counts(8);
  for (uint64_t seed = 0; seed < 4000; ++seed) ++counts[drawn_channels(8, 1, seed)[0]];
  for (const int count : counts) EXPECT_NEAR(count, 500, 5 * 21);
}

TEST(DroppedChannels, AreThoseOfTheInputAndAllOthersAreAsBefore) {
  const at::Tensor x = normal({2, 7, kSmallShape.width}, 4);
  for (const char* name :
       {"sinusoidal", "learned", "hierarchical", "binary", "clock", "recursive"}) {
    SCOPED_TRACE(name);
    const std::string options = name == std::string("learned") ? R"({"rows": 16})" : "{}";
    const auto whole = method_of(name, kSmallShape, options);
    const auto without = dropped(name, 2, 3, options);
    const int64_t channels = whole->added_channels();
    const std::vector<at::Tensor> parameters = random_parameters(*whole);
    const at::Tensor embedded = whole->embed(x, kRows, parameters);
    const at::Tensor found = without->embed(x, kRows, parameters);
    const std::vector<int64_t> lost = drawn_channels(channels, 2, 3);
    for (int64_t c = 0; c < kSmallShape.width; ++c) {
      if (std::ranges::find(lost, c) == lost.end())
        EXPECT_TRUE(at::equal(found.select(2, c), embedded.select(2, c))) << c;
      else
        EXPECT_LT(largest_difference(found.select(2, c), x.select(2, c)), 1e-15) << c;
    }
    EXPECT_FALSE(without->relative());
    EXPECT_EQ(without->parameters().size(), whole->parameters().size());
  }
}

// A factor of the input itself stays.
TEST(DroppedChannels, KeepTheScaleOfTheInput) {
  const at::Tensor x = normal({2, 7, kSmallShape.width}, 4);
  const std::string options = R"({"token_scale": 3.0})";
  const auto whole = method_of("sinusoidal", kSmallShape, options);
  const at::Tensor scaled = whole->embed(x, kRows, {}) - whole->embed(at::zeros_like(x), kRows, {});
  const at::Tensor found =
      dropped("sinusoidal", kSmallShape.width, 3, options)->embed(x, kRows, {});
  EXPECT_LT(largest_difference(found, scaled), 1e-14);
  EXPECT_GT(largest_difference(scaled, x), 0.1);
}

TEST(DroppedChannels, OfAWindowAreThoseOfItsMethod) {
  const at::Tensor x = normal({2, 7, kSmallShape.width}, 4);
  const auto window = dropped("window", 5, 3, R"({"of": "sinusoidal"})");
  EXPECT_TRUE(
      at::equal(window->embed(x, kRows, {}), dropped("sinusoidal", 5)->embed(x, kRows, {})));
}

TEST(DroppedChannels, HaveGradients) {
  const auto method = dropped("recursive", 5);
  Tensors inputs = {normal({2, 7, kSmallShape.width}, 4)};
  for (const at::Tensor& parameter : random_parameters(*method)) inputs.push_back(parameter);
  EXPECT_LE(gradient_error(
                [&](const Tensors& values) {
                  return method->embed(values[0], kRows, Parameters(values).subspan(1));
                },
                inputs, 40),
            1e-7);
}

TEST(DroppedChannels, RefuseAMethodThatAddsNothingAndNameThoseThatDo) {
  for (const char* name : {"rope", "none", "complex", "emd"}) {
    EXPECT_THAT([&] { dropped(name, 1); },
                ThrowsMessage<Error>(
                    AllOf(HasSubstr("drop_channels: expected a method that adds a vector to the "
                                    "input (binary, clock, hierarchical, learned, recursive, "
                                    "sinusoidal)"),
                          Not(HasSubstr("rope")))));
  }
  EXPECT_THAT([] { dropped("recursive", 1, 0, R"({"over": "input"})"); },
              ThrowsMessage<Error>(HasSubstr("but got one that adds none")));
  EXPECT_THAT(
      [] { dropped("clock", 7); },
      ThrowsMessage<Error>(HasSubstr("drop_channels: expected 1 to 6, the channels to which "
                                     "the method adds, but got 7")));
  EXPECT_THAT([] { dropped("sinusoidal", 0); },
              ThrowsMessage<Error>(HasSubstr("expected 1 to 24")));
}

}  // namespace
}  // namespace sextant::testing
