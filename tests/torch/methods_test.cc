// Properties of every method, or of every relative method.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "sextant/base/error.h"
#include "tests/torch/dense.h"
#include "tests/torch/gradients.h"
#include "tests/torch/model.h"

namespace sextant::testing {
namespace {

// Two orders of summation in float64 differ by at most this.
constexpr double kSame = 1e-13;

class EveryMethod : public ::testing::TestWithParam<std::string> {
 protected:
  const Subject subject_ = subject(GetParam());
  const ModelShape shape_ = subject_.shape();
  const std::unique_ptr<Method> method_ = method_of(GetParam(), shape_, subject_.options);
  const std::vector<at::Tensor> parameters_ = random_parameters(*method_);

  at::Tensor embed(const at::Tensor& x, const Layout& layout) const {
    return method_->embed(x, layout, parameters_);
  }
  at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                    const Layout& layout) const {
    return attend_with(*method_, q, k, v, layout, /*layer=*/1, parameters_);
  }
  at::Tensor attend(const Layer& layer, const Layout& layout) const {
    return attend(queries(layer), keys(layer), layer.v, layout);
  }
  // Queries and keys with the columns that the method adds to them.
  at::Tensor queries(const Layer& layer) const {
    return with_query_columns(*method_, layer.q, layer.x, /*layer=*/1, parameters_);
  }
  at::Tensor keys(const Layer& layer) const {
    return with_key_columns(*method_, layer.k, layer.seen, /*layer=*/1, parameters_);
  }
};

std::vector<std::string> names() {
  std::vector<std::string> result;
  for (const MethodInfo& info : methods()) result.push_back(info.name);
  return result;
}
std::string title(const ::testing::TestParamInfo<std::string>& info) {
  std::string result = info.param;
  std::ranges::replace(result, '-', '_');
  return result;
}
INSTANTIATE_TEST_SUITE_P(All, EveryMethod, ::testing::ValuesIn(names()), title);

TEST_P(EveryMethod, GradientsAgreeWithDifferences) {
  if (!subject_.smooth) GTEST_SKIP() << GetParam() << " has kinks";
  for (const bool causal : {true, false}) {
    const Layout p = {.batch = 2, .queries = 5, .keys = 7, .first_query = 2, .causal = causal};
    const Layer layer(shape_, p);
    Tensors inputs = {layer.x, layer.q, layer.k, layer.v, layer.seen};
    inputs.insert(inputs.end(), parameters_.begin(), parameters_.end());
    const auto run = [&](const Tensors& values) {
      const Parameters parameters = Parameters(values).subspan(5);
      Tensors outputs = {method_->embed(values[0], p, parameters).flatten(),
                         method_->embed_last(values[0], p, parameters).flatten(),
                         values[4].flatten()};  // few methods make columns of the inputs
      for (int64_t number = 0; number < shape_.layers; ++number) {
        const at::Tensor k = with_key_columns(*method_, values[2], values[4], number, parameters);
        const at::Tensor q = with_query_columns(*method_, values[1], values[0], number, parameters);
        outputs.push_back(attend_with(*method_, q, k, values[3], p, number, parameters).flatten());
      }
      return at::cat(outputs);
    };
    EXPECT_LE(gradient_error(run, inputs, /*most=*/40), 1e-7);
  }
}

TEST_P(EveryMethod, ShiftingAllPositionsChangesNothing) {
  if (!method_->relative()) GTEST_SKIP() << GetParam() << " knows absolute positions";
  for (const bool causal : {true, false}) {
    const Layout p = {.batch = 2, .queries = 9, .keys = 9, .causal = causal};
    const Layer layer(shape_, p);
    for (const int64_t shift : {int64_t{1}, int64_t{-1000}, int64_t{1} << 31}) {
      Layout shifted = p;
      shifted.first_query = shifted.first_key = shift;
      EXPECT_LE(largest_difference(attend(layer, p), attend(layer, shifted)), subject_.rounding);
      EXPECT_TRUE(at::equal(embed(layer.x, p), embed(layer.x, shifted)));
    }
  }
}

TEST_P(EveryMethod, IsNotRelativeOnlyIfAShiftChangesSomething) {
  if (method_->relative()) GTEST_SKIP() << GetParam() << " is relative";
  const Layout p = {.batch = 2, .queries = 9, .keys = 9};
  const Layer layer(shape_, p);
  Layout shifted = p;
  shifted.first_query = shifted.first_key = 1;
  EXPECT_FALSE(at::equal(attend(layer, p), attend(layer, shifted)) &&
               at::equal(embed(layer.x, p), embed(layer.x, shifted)) &&
               at::equal(method_->embed_last(layer.x, p, parameters_),
                         method_->embed_last(layer.x, shifted, parameters_)));
}

TEST_P(EveryMethod, OneByOneIsChunkByChunkIsAllAtOnce) {
  const Layout whole = {.batch = 2, .queries = 11, .keys = 11};
  const Layer layer(shape_, whole);
  const at::Tensor embedded = embed(layer.x, whole), out = attend(layer, whole);
  const at::Tensor k = keys(layer);
  for (const int64_t chunk : {1, 4})
    for (int64_t first = 0; first < whole.queries; first += chunk) {
      const int64_t last = std::min(first + chunk, whole.queries);
      const Layout part = {.batch = 2, .queries = last - first, .keys = last, .first_query = first};
      const at::Tensor part_out = attend(queries(layer).slice(2, first, last), k.slice(2, 0, last),
                                         layer.v.slice(2, 0, last), part);
      EXPECT_LE(largest_difference(part_out, out.slice(2, first, last)), kSame);
      const at::Tensor part_embedded = embed(layer.x.slice(1, first, last), part);
      EXPECT_LE(largest_difference(part_embedded, embedded.slice(1, first, last)), kSame);
    }
}

TEST_P(EveryMethod, SharedKeyHeadsAreRepeatedOnes) {
  if (!subject_.shares_key_heads)
    GTEST_SKIP() << GetParam() << " wants a key head for each query's";
  const Layout p = {.batch = 2, .queries = 9, .keys = 9};
  const Layer layer(shape_, p);
  ModelShape repeated = shape_;
  repeated.key_heads = repeated.heads;
  const auto of_all = method_of(GetParam(), repeated, subject_.options);
  const at::Tensor k = with_key_columns(*of_all, layer.k.repeat_interleave(2, 1), layer.seen,
                                        /*layer=*/1, parameters_);
  const at::Tensor all_heads =
      attend_with(*of_all, queries(layer), k, layer.v.repeat_interleave(2, 1), p, 1, parameters_);
  EXPECT_LE(largest_difference(attend(layer, p), all_heads), kSame);
}

TEST_P(EveryMethod, PackedTextsAreSeparateTexts) {
  for (const bool causal : {true, false}) {
    const Layout packed = {.batch = 1,
                           .queries = 12,
                           .keys = 14,
                           .causal = causal,
                           .packed_queries = {0, 3, 3, 12},
                           .packed_keys = {0, 5, 5, 14}};
    const Layer layer(shape_, packed);
    const at::Tensor out = attend(layer, packed), embedded = embed(layer.x, packed);
    const at::Tensor k = keys(layer), q = queries(layer);
    for (const Frame& sequence : sequences(packed)) {
      const auto own = [&](const at::Tensor& x, int64_t dim) {
        return x.narrow(dim, sequence.query_row, sequence.queries);
      };
      const auto seen = [&](const at::Tensor& x) {
        return x.narrow(2, sequence.key_row, sequence.keys);
      };
      const Layout alone = {.queries = sequence.queries,
                            .keys = sequence.keys,
                            .first_query = sequence.query_position,
                            .causal = causal};
      const at::Tensor one = attend(own(q, 2), seen(k), seen(layer.v), alone);
      EXPECT_LE(largest_difference(one, own(out, 2)), kSame);
      const at::Tensor one_embedded = embed(own(layer.x, 1), alone);
      EXPECT_LE(largest_difference(one_embedded, own(embedded, 1)), kSame);
    }
  }
}

TEST_P(EveryMethod, Float32IsNearFloat64) {
  const Layout p = {.batch = 2, .queries = 33, .keys = 33};
  const Layer layer(shape_, p);
  std::vector<at::Tensor> narrow;
  for (const at::Tensor& parameter : parameters_) narrow.push_back(parameter.to(at::kFloat));
  const auto to_float = [](const at::Tensor& x) { return x.to(at::kFloat); };
  const at::Tensor out = attend_with(*method_, to_float(queries(layer)), to_float(keys(layer)),
                                     to_float(layer.v), p, 1, narrow);
  EXPECT_EQ(out.scalar_type(), at::kFloat);
  EXPECT_LE(largest_difference(out, attend(layer, p)), 1e-5);
  const at::Tensor embedded = method_->embed(to_float(layer.x), p, narrow);
  EXPECT_EQ(embedded.scalar_type(), at::kFloat);
  EXPECT_LE(largest_difference(embedded, embed(layer.x, p)), 1e-5);
}

TEST_P(EveryMethod, RefusesParametersOfOtherShapes) {
  const Layout p = {.batch = 1, .queries = 2, .keys = 2};
  const Layer layer(shape_, p);
  std::vector<at::Tensor> wrong = parameters_;
  const auto fails = [&](const char* text) {
    EXPECT_THAT([&] { attend_with(*method_, layer.q, layer.k, layer.v, p, 0, wrong); },
                ::testing::ThrowsMessage<Error>(::testing::HasSubstr(text)));
  };
  if (!wrong.empty()) {
    wrong[0] = wrong[0].dim() ? wrong[0].slice(0, 1) : wrong[0].unsqueeze(0);
    fails("expected shape");
  }
  wrong.push_back(layer.x);
  fails("method: parameters: expected");
}

}  // namespace
}  // namespace sextant::testing
