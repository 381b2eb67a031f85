// The recurrence over the input: an RNN in front of the transformer (x' = RNN(x)), against the
// formulas of its cells written as loops, and continued from any position.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "sextant/base/error.h"
#include "tests/torch/dense.h"
#include "tests/torch/gradients.h"
#include "tests/torch/model.h"

namespace sextant::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr double kSummed = 1e-13;
constexpr int64_t kInputWidth = kSmallShape.width;

const char* const kTanh = R"({"over": "input"})";
const char* const kGru = R"({"over": "input", "cell": "gru"})";

std::unique_ptr<Method> over_input(const std::string& options) {
  return method_of("recursive", kSmallShape, options);
}

// tanh: h = tanh(W x + b + U h' + c). gru, in torch's gate order r, z, n:
// h = (1 - z) tanh(x_n + r h_n) + z h'.
at::Tensor step(const std::string& options, const at::Tensor& x, const at::Tensor& h,
                Parameters p) {
  const at::Tensor from_x = at::matmul(x, p[0].t()) + p[2], from_h = at::matmul(h, p[1].t()) + p[3];
  if (options == kTanh) return at::tanh(from_x + from_h);
  const auto a = from_x.chunk(3, 1), b = from_h.chunk(3, 1);
  const at::Tensor reset = at::sigmoid(a[0] + b[0]), keep = at::sigmoid(a[1] + b[1]);
  return (1 - keep) * at::tanh(a[2] + reset * b[2]) + keep * h;
}

at::Tensor by_steps(const std::string& options, const at::Tensor& x, Parameters parameters) {
  at::Tensor h = at::zeros({x.size(0), kInputWidth}, x.options());
  Tensors rows;
  for (int64_t k = 0; k < x.size(1); ++k)
    rows.push_back(h = step(options, x.select(1, k), h, parameters));
  return at::stack(rows, 1);
}

class RecursiveOverInput : public ::testing::TestWithParam<const char*> {
 protected:
  const std::unique_ptr<Method> method_ = over_input(GetParam());
  const std::vector<at::Tensor> parameters_ = random_parameters(*method_);
  const at::Tensor x_ = normal({2, 9, kInputWidth}, 5);

  at::Tensor embed(const at::Tensor& x, const Layout& layout) const {
    return method_->embed(x, layout, parameters_);
  }
};

INSTANTIATE_TEST_SUITE_P(Cells, RecursiveOverInput, ::testing::Values(kTanh, kGru),
                         [](const auto& info) { return info.param == kTanh ? "tanh" : "gru"; });

TEST_P(RecursiveOverInput, IsTheCellStepByStep) {
  const at::Tensor expected = by_steps(GetParam(), x_, parameters_);
  for (const bool causal : {true, false}) {
    const Layout whole = {.batch = 2, .queries = 9, .keys = 9, .causal = causal};
    EXPECT_LT(largest_difference(embed(x_, whole), expected), kSummed);
    // Positions do not matter, only where the sequence begins.
    Layout shifted = whole;
    shifted.first_query = shifted.first_key = 1000;
    EXPECT_TRUE(at::equal(embed(x_, shifted), embed(x_, whole)));
  }
  EXPECT_TRUE(method_->relative());
  EXPECT_TRUE(method_->recurs_over_input());
  EXPECT_EQ(method_->added_channels(), 0);
}

TEST_P(RecursiveOverInput, GradientsAgreeWithDifferences) {
  Tensors inputs = {x_, normal({2, 1, kInputWidth}, 6)};
  inputs.insert(inputs.end(), parameters_.begin(), parameters_.end());
  const auto run = [&](const Tensors& values) {
    const Parameters parameters = Parameters(values).subspan(2);
    const Layout whole = {.batch = 2, .queries = 9, .keys = 9};
    const Layout later = {
        .batch = 2, .queries = 9, .keys = 12, .first_query = 3, .input_before = values[1]};
    return at::cat({method_->embed(values[0], whole, parameters).flatten(),
                    method_->embed(values[0], later, parameters).flatten()});
  };
  EXPECT_LE(gradient_error(run, inputs, /*most=*/40), 1e-7);
}

TEST_P(RecursiveOverInput, AnySplitGivesTheResultOfOneCall) {
  const at::Tensor whole = embed(x_, {.batch = 2, .queries = 9, .keys = 9});
  for (const int64_t rows : {1, 4}) {
    for (int64_t first = 0; first < 9; first += rows) {
      const int64_t last = std::min<int64_t>(first + rows, 9);
      Layout part = {.batch = 2, .queries = last - first, .keys = last, .first_query = first};
      if (first > 0) part.input_before = whole.narrow(1, first - 1, 1);
      EXPECT_LT(
          largest_difference(embed(x_.slice(1, first, last), part), whole.slice(1, first, last)),
          kSummed);
    }
  }
}

TEST_P(RecursiveOverInput, EachPackedSequenceBeginsAnew) {
  const Layout packed = {.batch = 2,
                         .queries = 9,
                         .keys = 9,
                         .packed_queries = {0, 4, 4, 9},
                         .packed_keys = {0, 4, 4, 9}};
  const at::Tensor out = embed(x_, packed);
  for (const auto& [first, last] : {std::pair{0, 4}, {4, 9}})
    EXPECT_LT(largest_difference(out.slice(1, first, last),
                                 by_steps(GetParam(), x_.slice(1, first, last), parameters_)),
              kSummed);
}

// The second of two cached sequences continues, the first begins.
TEST_P(RecursiveOverInput, CachedSequencesContinueFromTheirOwnState) {
  const at::Tensor x = x_.narrow(0, 0, 1), other = x_.narrow(0, 1, 1);
  const at::Tensor whole = by_steps(GetParam(), other, parameters_);
  Layout layout = {.queries = 7, .keys = 32};
  layout.cached = {{.query_row = 0, .queries = 3, .key_row = 0, .keys = 3},
                   {.query_row = 3, .queries = 4, .query_position = 5, .key_row = 16, .keys = 9}};
  layout.input_before = at::cat({normal({1, 1, kInputWidth}, 8), whole.narrow(1, 4, 1)}, 1);
  const at::Tensor out = embed(at::cat({x.slice(1, 0, 3), other.slice(1, 5, 9)}, 1), layout);
  EXPECT_LT(
      largest_difference(out.slice(1, 0, 3), by_steps(GetParam(), x.slice(1, 0, 3), parameters_)),
      kSummed);
  EXPECT_LT(largest_difference(out.slice(1, 3, 7), whole.slice(1, 5, 9)), kSummed);
}

TEST_P(RecursiveOverInput, RefusesALayoutWhoseEarlierStateIsUnknown) {
  EXPECT_THAT(
      [&] { embed(x_, {.batch = 2, .queries = 9, .keys = 11, .first_query = 2}); },
      ThrowsMessage<Error>(HasSubstr("recursive: input_before: expected the result at the position "
                                     "before the first query")));
  EXPECT_THAT(
      [&] {
        embed(x_, {.batch = 2,
                   .queries = 9,
                   .keys = 11,
                   .first_query = 2,
                   .input_before = normal({2, kInputWidth}, 6)});
      },
      ThrowsMessage<Error>(
          HasSubstr("input_before: expected [2, 1, 24] (batch, sequences, width)")));
}

TEST(Recursive, OverPositionsIsTheDefault) {
  const auto method = method_of("recursive", kSmallShape);
  EXPECT_FALSE(method->relative());
  EXPECT_FALSE(method->recurs_over_input());
  EXPECT_EQ(method->added_channels(), kInputWidth);
  EXPECT_THAT([] { over_input(R"({"over": "tokens"})"); },
              ThrowsMessage<Error>(
                  HasSubstr("recursive: over: expected one of \"positions\", \"input\", but got")));
}

}  // namespace
}  // namespace sextant::testing
