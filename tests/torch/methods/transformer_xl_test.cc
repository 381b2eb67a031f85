#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "sextant/base/error.h"
#include "tests/torch/dense.h"
#include "tests/torch/model.h"

namespace sextant::testing {
namespace {

constexpr const char* kTied = R"({"untie_r": false})";

at::Tensor run_transformer_xl(const std::string& options, const Layout& p, Parameters parameters) {
  const Layer layer(kSmallShape, p);
  return attend_with(*method_of("transformer-xl", kSmallShape, options), layer.q, layer.k, layer.v,
                     p, 1, parameters);
}

// Sines, then cosines, of all distances `rotary_positions`: [queries, keys, width].
at::Tensor sinusoids(const at::Tensor& rotary_positions, int64_t width) {
  const at::Tensor frequencies =
      at::pow(10000.0, -2 * at::arange(width / 2, at::kDouble) / static_cast<double>(width));
  const at::Tensor angles = rotary_positions.unsqueeze(2) * frequencies;
  return at::cat({angles.sin(), angles.cos()}, 2);
}

// The four terms of the paper, one by one; parameters are u, v, W_R of layer 0, W_R of layer 1.
at::Tensor paper(const Layout& p, Parameters parameters, int64_t clamp, int64_t window) {
  const Layer layer(kSmallShape, p);
  const at::Tensor &u = parameters[0], &v = parameters[1], &w = parameters[3];
  const at::Tensor d = distances(p);
  const at::Tensor r = at::matmul(sinusoids(d.clamp_max(clamp), 24), w.t())
                           .view({p.queries, p.keys, 4, 6})
                           .permute({2, 0, 1, 3});
  const at::Tensor k = layer.k.repeat_interleave(2, 1);
  const at::Tensor content = at::matmul(layer.q, k.transpose(2, 3));
  const at::Tensor position = (layer.q.unsqueeze(3) * r).sum(-1);
  const at::Tensor key_alone = at::matmul(u.unsqueeze(1), k.transpose(2, 3));
  const at::Tensor distance_alone = (v.view({4, 1, 1, 6}) * r).sum(-1);
  const at::Tensor scores = (content + position + key_alone + distance_alone) / std::sqrt(6.0);
  const at::Tensor visible = at::logical_and(p.causal ? d >= 0 : d > -1000, d < window);
  return at::matmul(weights(scores, visible), layer.v.repeat_interleave(2, 1));
}

TEST(TransformerXl, AddsTheFourTermsOfThePaper) {
  const auto parameters = random_parameters(*method_of("transformer-xl", kSmallShape, kTied));
  for (const bool causal : {true, false}) {
    const Layout p = {.batch = 2, .queries = 5, .keys = 12, .first_query = 7, .causal = causal};
    EXPECT_LE(largest_difference(run_transformer_xl(kTied, p, parameters),
                                 paper(p, parameters, 1000, 1000)),
              1e-12);
    EXPECT_LE(largest_difference(
                  run_transformer_xl(R"({"untie_r": false, "clamp_len": 3})", p, parameters),
                  paper(p, parameters, 3, 1000)),
              1e-12);
  }
}

TEST(TransformerXl, SameLengthSeesMemLenKeys) {
  const auto parameters = random_parameters(*method_of("transformer-xl", kSmallShape, kTied));
  const Layout p = {.batch = 2, .queries = 4, .keys = 9, .first_query = 5};
  const std::string same = R"({"untie_r": false, "same_length": true, "mem_len": )";
  EXPECT_LE(largest_difference(run_transformer_xl(same + "5}", p, parameters),
                               paper(p, parameters, 1000, 5)),
            1e-12);
  EXPECT_TRUE(at::equal(run_transformer_xl(same + "9}", p, parameters),
                        run_transformer_xl(kTied, p, parameters)));
}

TEST(TransformerXl, LayersThatShareBiasesAreLayersWithEqualOnes) {
  const auto tied = random_parameters(*method_of("transformer-xl", kSmallShape, kTied));
  const std::vector<at::Tensor> untied = {tied[0], tied[0], tied[1], tied[1], tied[2], tied[3]};
  const Layout p = {.batch = 2, .queries = 6, .keys = 6};
  EXPECT_TRUE(at::equal(run_transformer_xl(kTied, p, tied), run_transformer_xl("{}", p, untied)));
}

TEST(TransformerXl, MemLenWithoutSameLengthIsAnError) {
  const auto fails = [](const char* options, const char* text) {
    EXPECT_THAT([&] { method_of("transformer-xl", kSmallShape, options); },
                ::testing::ThrowsMessage<Error>(::testing::HasSubstr(text)));
  };
  fails(R"({"mem_len": 4})", "mem_len: expected null");
  fails(R"({"same_length": true})", "mem_len: expected an integer");
}

}  // namespace
}  // namespace sextant::testing
