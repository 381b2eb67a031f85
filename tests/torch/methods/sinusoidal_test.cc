#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "sextant/base/error.h"
#include "tests/torch/dense.h"
#include "tests/torch/model.h"

namespace sextant::testing {
namespace {

constexpr int64_t kModelWidth = kSmallShape.width;
const Layout kSinusoidal = {.batch = 2, .queries = 9, .keys = 14, .first_query = 5};

at::Tensor angles(const at::Tensor& frequencies) {
  return at::outer(at::arange(5, 14, at::kDouble), frequencies);
}

void expect_added(const std::string& options, const at::Tensor& table, double scale = 1) {
  const at::Tensor x = normal({2, 9, kModelWidth});
  const at::Tensor out = method_of("sinusoidal", kSmallShape, options)->embed(x, kSinusoidal, {});
  EXPECT_LE(largest_difference(out, x * scale + table), 1e-12);
}

TEST(Sinusoidal, AddsSinesAndCosines) {
  const at::Tensor exponents = at::arange(0, kModelWidth, 2, at::kDouble) / -kModelWidth;
  const at::Tensor a = angles(at::exp(exponents * std::log(10000.0)));
  const at::Tensor interleaved = at::stack({a.sin(), a.cos()}, 2).flatten(1);
  expect_added("{}", interleaved);
  expect_added(R"({"token_scale": 4.5})", interleaved, 4.5);
  expect_added(R"({"layout": "concatenated"})", at::cat({a.sin(), a.cos()}, 1));
  const at::Tensor b = angles(at::exp(exponents * std::log(500.0)));
  expect_added(R"({"base": 500})", at::stack({b.sin(), b.cos()}, 2).flatten(1));
}

TEST(Sinusoidal, CountsFromAFirstPosition) {
  const auto added = [](const char* options, int64_t query) {
    const Layout layout = {.queries = 9, .keys = 14 + query, .first_query = query};
    return method_of("sinusoidal", kSmallShape, options)
        ->embed(at::zeros({1, 9, kModelWidth}, at::kDouble), layout, {});
  };
  EXPECT_TRUE(at::equal(added(R"({"first": 64})", 5), added("{}", 69)));
  EXPECT_FALSE(at::equal(added(R"({"first": 64})", 5), added("{}", 5)));
  EXPECT_THAT(
      [&] { added(R"({"first": 1, "layout": "fairseq"})", 0); },
      ::testing::ThrowsMessage<Error>(::testing::HasSubstr("sinusoidal: first: expected 0")));
}

TEST(Sinusoidal, HasTensor2TensorsLayout) {
  const at::Tensor a = angles(at::exp(at::arange(kModelWidth / 2, at::kDouble) *
                                      (-std::log(10000.0) / (kModelWidth / 2 - 1))));
  expect_added(R"({"layout": "tensor2tensor"})", at::cat({a.sin(), a.cos()}, 1));
}

// Golden cases in tests/golden compare the tables themselves with fairseq's.
TEST(Sinusoidal, CountsAsFairseqDoes) {
  const auto method = [](const char* options) {
    return method_of("sinusoidal", kSmallShape, options);
  };
  const auto added = [](const Method& to, const Layout& p) {
    return to.embed(at::zeros({p.batch, p.queries, kModelWidth}, at::kDouble), p, {});
  };
  const at::Tensor rows =
      added(*method(R"({"layout": "tensor2tensor"})"), {.queries = 12, .keys = 12})[0];
  // Positions count from padding_idx + 1; without padding_idx from 2, since padding is token 1 in
  // fairseq's dictionaries.
  const Layout plain = {.queries = 5, .keys = 8, .first_query = 3};
  const auto fairseq = method(R"({"layout": "fairseq"})");
  EXPECT_FALSE(fairseq->reads_token_ids());
  EXPECT_TRUE(at::equal(added(*fairseq, plain)[0], rows.slice(0, 5, 10)));
  const auto padded = method(R"({"layout": "fairseq", "padding_idx": 3})");
  EXPECT_TRUE(padded->reads_token_ids());
  Layout unpadded = plain;
  unpadded.token_ids = at::tensor({9, 7, 9, 8, 5}, at::kLong).view({1, 5});
  EXPECT_TRUE(at::equal(added(*padded, unpadded)[0], rows.slice(0, 7, 12)));
  // Padding on either side gets zeros and is not counted.
  const at::Tensor token_ids = at::tensor({3, 3, 7, 9, 8, 5, 6, 3, 4, 3}, at::kLong).view({2, 5});
  const Layout two = {.batch = 2, .queries = 5, .keys = 5, .token_ids = token_ids};
  const at::Tensor at = at::tensor({0, 0, 4, 5, 6, 4, 5, 0, 6, 0}, at::kLong);
  const at::Tensor expected = rows.index_select(0, at) * at.ne(0).to(at::kDouble).unsqueeze(1);
  EXPECT_TRUE(at::equal(added(*padded, two).flatten(0, 1), expected));
  // Each packed sequence counts from its own start, and queries behind earlier keys continue the
  // count.
  const Layout packed = {.queries = 5,
                         .keys = 6,
                         .packed_queries = {0, 2, 5},
                         .packed_keys = {0, 3, 6},
                         .token_ids = token_ids.slice(0, 1, 2)};
  EXPECT_TRUE(at::equal(added(*padded, packed)[0].slice(0, 0, 2), rows.slice(0, 5, 7)));
  EXPECT_TRUE(at::equal(added(*padded, packed)[0][3], rows[4]));
}

TEST(Sinusoidal, RefusesPaddingWhereNobodyCounts) {
  EXPECT_THAT([] { method_of("sinusoidal", kSmallShape, R"({"padding_idx": 1})"); },
              ::testing::ThrowsMessage<Error>(::testing::HasSubstr(
                  "sinusoidal: padding_idx: expected null, as layout is not")));
}

TEST(Sinusoidal, TakesNoPaddingForTextWhereWordsAreMissing) {
  EXPECT_THAT(
      [] {
        method_of("sinusoidal", kSmallShape, R"({"layout": "fairseq", "padding_idx": 1})")
            ->embed(normal({2, 9, kModelWidth}), kSinusoidal, {});
      },
      ::testing::ThrowsMessage<Error>(
          "sinusoidal: padding_idx: expected null, as no words are given to tell padding by, but "
          "got 1"));
}

TEST(Sinusoidal, LeavesAttentionAlone) {
  const Layer layer(kSmallShape, kSinusoidal);
  const auto run = [&](const char* name) {
    return attend_with(*method_of(name, kSmallShape), layer.q, layer.k, layer.v, kSinusoidal, 0,
                       {});
  };
  EXPECT_TRUE(at::equal(run("sinusoidal"), run("none")));
}

}  // namespace
}  // namespace sextant::testing
