#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "sextant/base/error.h"
#include "tests/torch/dense.h"
#include "tests/torch/model.h"

namespace sextant::testing {
namespace {

constexpr const char* kSegments = R"({"untie_r": false, "segments": true, "clamp_len": 4})";

at::Tensor xlnet(const std::string& options, const Layout& p, Parameters parameters,
                 const Layer& layer) {
  return attend_with(*method_of("xlnet", kSmallShape, options), layer.q, layer.k, layer.v, p, 1,
                     parameters);
}

// Two batch entries of three segments, behind a memory of segment 0.
Layout pairs_of_sequences() {
  Layout p = {.batch = 2, .queries = 6, .keys = 9, .first_query = 3, .causal = false};
  p.query_segments = at::tensor({0, 0, 7, 7, 2, 2, 1, 0, 0, 0, 0, 1}, at::kLong).view({2, 6});
  p.key_segments = at::cat({at::zeros({2, 3}, at::kLong), p.query_segments}, 1);
  return p;
}

// XLNet's official computation; parameters are u, v, s, then W and e of each of two layers.
at::Tensor official(const Layout& p, Parameters parameters, const Layer& layer) {
  const at::Tensor &u = parameters[0], &v = parameters[1], &s = parameters[2];
  const at::Tensor &w = parameters[4], &e = parameters[6];
  const at::Tensor frequencies = at::pow(10000.0, -2 * at::arange(12, at::kDouble) / 24);
  const at::Tensor angles = distances(p).clamp(-4, 4).unsqueeze(2) * frequencies;
  const at::Tensor r = at::einsum("ijc,chd->hijd", {at::cat({angles.sin(), angles.cos()}, 2), w});
  const at::Tensor k = layer.k.repeat_interleave(2, 1);
  const auto with = [&](const at::Tensor& bias) { return layer.q + bias.unsqueeze(1); };
  const at::Tensor other = p.query_segments.unsqueeze(2).ne(p.key_segments.unsqueeze(1));
  const at::Tensor by_segment = at::einsum("bhid,shd->sbhi", {with(s), e}).unsqueeze(4);
  const at::Tensor scores =
      (at::matmul(with(u), k.transpose(2, 3)) + (with(v).unsqueeze(3) * r).sum(-1) +
       at::where(other.unsqueeze(1), by_segment[1], by_segment[0])) /
      std::sqrt(6.0);
  return at::matmul(weights(scores, at::ones({6, 9}, at::kBool)), layer.v.repeat_interleave(2, 1));
}

TEST(Xlnet, AddsTheThreeTermsOfTheCode) {
  const auto parameters = random_parameters(*method_of("xlnet", kSmallShape, kSegments));
  const Layout p = pairs_of_sequences();
  const Layer layer(kSmallShape, p);
  EXPECT_LE(
      largest_difference(xlnet(kSegments, p, parameters, layer), official(p, parameters, layer)),
      1e-12);
}

TEST(Xlnet, OneVectorAddedToBothSegmentEmbeddingsChangesNothing) {
  auto parameters = random_parameters(*method_of("xlnet", kSmallShape, kSegments));
  const Layout p = pairs_of_sequences();
  const Layer layer(kSmallShape, p);
  const at::Tensor out = xlnet(kSegments, p, parameters, layer);
  parameters[6] = parameters[6] + normal({1, 4, 6});
  EXPECT_LE(largest_difference(xlnet(kSegments, p, parameters, layer), out), 1e-13);
}

TEST(Xlnet, ReversedReadsTheTextBackwards) {
  const auto parameters = random_parameters(*method_of("xlnet", kSmallShape));
  const Layout p = {.batch = 2, .queries = 7, .keys = 7, .causal = false};
  const Layer layer(kSmallShape, p);
  Layer backwards = layer;
  for (at::Tensor* x : {&backwards.q, &backwards.k, &backwards.v}) *x = x->flip(2);
  EXPECT_LE(largest_difference(xlnet(R"({"reversed": true})", p, parameters, layer),
                               xlnet("{}", p, parameters, backwards).flip(2)),
            1e-13);
}

// The two streams of permutation language modelling: a token of the content stream sees itself, a
// token of the query stream does not.
TEST(Xlnet, StreamsDifferInTheMask) {
  const auto parameters = random_parameters(*method_of("xlnet", kSmallShape));
  Layout p = {.batch = 1, .queries = 4, .keys = 4, .causal = false};
  const Layer layer(kSmallShape, p);
  const at::Tensor rank = at::tensor({2, 0, 3, 1}, at::kLong);
  p.mask = (rank.unsqueeze(1) > rank.unsqueeze(0)).view({1, 1, 4, 4});
  const at::Tensor query_stream = xlnet("{}", p, parameters, layer);
  EXPECT_EQ(query_stream.select(2, 1).abs().max().item<double>(), 0);  // the first sees nothing
  p.mask = at::logical_or(p.mask, at::eye(4, at::kBool));
  const at::Tensor content_stream = xlnet("{}", p, parameters, layer);
  const at::Tensor v = layer.v.repeat_interleave(2, 1);
  EXPECT_LE(largest_difference(content_stream.select(2, 1), v.select(2, 1)), 1e-14);
}

TEST(Xlnet, SegmentsAndTheOptionGoTogether) {
  Layout p = pairs_of_sequences();
  const Layer layer(kSmallShape, p);
  const auto fails = [&](const std::string& options, const char* text) {
    const auto parameters = random_parameters(*method_of("xlnet", kSmallShape, options));
    EXPECT_THAT([&] { xlnet(options, p, parameters, layer); },
                ::testing::ThrowsMessage<Error>(::testing::HasSubstr(text)));
  };
  fails("{}", "segments: expected true");
  p.key_segments = p.query_segments;
  fails(kSegments, "key_segments: expected [2, 9]");
  p.query_segments = at::Tensor();
  fails(kSegments, "but got none");
}

}  // namespace
}  // namespace sextant::testing
