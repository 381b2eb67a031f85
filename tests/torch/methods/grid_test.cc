// Methods whose rows are places of a grid: the formula of the one without official code, and what
// they refuse.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "sextant/base/error.h"
#include "sextant/position/slopes.h"
#include "tests/torch/dense.h"
#include "tests/torch/model.h"

namespace sextant::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

at::Tensor attend_on(const std::string& method, const std::string& options, const Layout& p) {
  const auto made = method_of(method, kSmallShape, options);
  const Layer layer(kSmallShape, p);
  return attend_with(*made, layer.q, layer.k, layer.v, p, 0, random_parameters(*made));
}

TEST(Alibi2d, FallsWithTheEuclideanDistance) {
  constexpr int64_t kHeight = 3, kWidth = 4, kPlaces = kHeight * kWidth;
  const Layout p = {.batch = 1, .queries = kPlaces, .keys = kPlaces, .causal = false};
  const Layer layer(kSmallShape, p);
  const at::Tensor bias = at::empty({kSmallShape.heads, kPlaces, kPlaces}, at::kDouble);
  const auto slopes = alibi_slopes(kSmallShape.heads);
  for (int64_t h = 0; h < kSmallShape.heads; ++h)
    for (int64_t i = 0; i < kPlaces; ++i)
      for (int64_t j = 0; j < kPlaces; ++j) {
        const auto y = static_cast<double>(i / kWidth - j / kWidth);
        const auto x = static_cast<double>(i % kWidth - j % kWidth);
        bias[h][i][j] = -slopes[static_cast<size_t>(h)] * std::sqrt(y * y + x * x);
      }
  const int64_t group = kSmallShape.heads / kSmallShape.key_heads;
  const at::Tensor expected = attention(
      layer.q, layer.k.repeat_interleave(group, 1), layer.v.repeat_interleave(group, 1),
      distances(p) > -1000, 1 / std::sqrt(static_cast<double>(kSmallShape.head_dim)), bias);
  EXPECT_LE(largest_difference(attend_on("alibi-2d", R"({"grid": [3, 4]})", p), expected), 1e-13);
}

TEST(Grid, RowsAreOnTheGridOrRefused) {
  const auto fails = [](const std::string& text, const std::string& method,
                        const std::string& options, const Layout& p) {
    EXPECT_THAT([&] { attend_on(method, options, p); }, ThrowsMessage<Error>(HasSubstr(text)));
  };
  const Layout ten = {.batch = 1, .queries = 10, .keys = 10, .causal = false};
  fails("sam: grid: expected positions 0 to 8, as [3, 3] has, but got 9", "sam",
        R"({"grid": [3, 3]})", ten);
  Layout given = ten;
  given.query_rotary_positions = at::zeros({1, 2, 10}, at::kLong);
  fails("swin: query_positions, key_positions: expected both or none, but got those of queries",
        "swin", R"({"window": [3, 3]})", given);
  given.key_rotary_positions = given.query_rotary_positions + 3;
  fails("swin: positions: expected 0 to 2 on axis 0, but got 3", "swin", R"({"window": [3, 3]})",
        given);
  fails("layoutlm: query_positions, key_positions: expected boxes", "layoutlm", "{}", ten);
  given.key_rotary_positions = given.query_rotary_positions + (int64_t{1} << 50);
  fails("layoutlm: positions: expected -4194304 to 4194304, but got 1125899906842624", "layoutlm",
        "{}", given);
  fails("beit: grid: expected [height, width], but got [3]", "beit", R"({"grid": [3]})", ten);
  fails("alibi-2d: grid", "alibi-2d", R"({"grid": [0, 3]})", ten);
}

TEST(Grid, OnePlaceAndNoRowsAreServed) {
  for (const char* method : {"sam", "swin", "beit", "alibi-2d", "layoutlm"}) {
    const std::string option = std::string(method) == "swin" ? "window" : "grid";
    const std::string options = R"({")" + option + R"(": [1, 1]})";
    for (const int64_t rows : {1, 0}) {
      const Layout p = {.batch = 1, .queries = rows, .keys = rows, .causal = false};
      EXPECT_EQ(attend_on(method, options, p).size(2), rows) << method;
    }
  }
}

}  // namespace
}  // namespace sextant::testing
