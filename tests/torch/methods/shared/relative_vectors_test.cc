// Methods with vectors by distance: gradients for all options that change the form of the vectors.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/torch/dense.h"
#include "tests/torch/gradients.h"
#include "tests/torch/model.h"

namespace sextant::testing {
namespace {

struct Form {
  const char* method;
  const char* options;
  bool causal = false, segments = false;
};

constexpr Form kForms[] = {
    {"nezha", R"({"max_relative_position": 2})"},
    {"relative-key", "{}"},
    {"relative-key", R"({"position_embedding_type": "relative_key_query"})"},
    {"skew", R"({"max_relative_position": 3, "add_relative_to_values": true})", true},
    {"skew", R"({"max_relative_position": 3, "heads_share_relative_embedding": true,
                 "unmasked": true})"},
    {"transformer-xl", R"({"clamp_len": 2})", true},
    {"transformer-xl", R"({"untie_r": false, "same_length": true, "mem_len": 4})", true},
    {"xlnet", R"({"reversed": true, "clamp_len": 2})"},
    {"xlnet", R"({"untie_r": false, "segments": true})", false, true},
    {"tener", "{}"},
    {"tener", R"({"flavour": "paper", "scaled": true})"},
};

class RelativeVectors : public ::testing::TestWithParam<Form> {};
INSTANTIATE_TEST_SUITE_P(Forms, RelativeVectors, ::testing::ValuesIn(kForms));

TEST_P(RelativeVectors, GradientsAgreeWithDifferences) {
  const ModelShape shape = {
      .layers = 2, .heads = 2, .key_heads = 1, .head_dim = 4, .width = 8, .train_length = 8};
  const auto method = method_of(GetParam().method, shape, GetParam().options);
  Layout p = {.batch = 2, .queries = 4, .keys = 6, .first_query = 2, .causal = GetParam().causal};
  if (GetParam().segments) {
    p.query_segments = at::tensor({0, 0, 1, 1, 0, 3, 3, 0}, at::kLong).view({2, 4});
    p.key_segments = at::tensor({0, 0, 0, 0, 1, 1, 3, 0, 0, 3, 3, 0}, at::kLong).view({2, 6});
  }
  const Layer layer(shape, p);
  Tensors inputs = {layer.q, layer.k, layer.v};
  for (const at::Tensor& parameter : random_parameters(*method)) inputs.push_back(parameter);
  const auto run = [&](const Tensors& values) {
    const auto parameters = Parameters(values).subspan(3);
    Tensors outputs;
    for (int64_t number = 0; number < shape.layers; ++number)
      outputs.push_back(
          attend_with(*method, values[0], values[1], values[2], p, number, parameters));
    return at::cat(outputs);
  };
  EXPECT_LE(gradient_error(run, inputs), 1e-7);
}

}  // namespace
}  // namespace sextant::testing
