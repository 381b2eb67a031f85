// The decoder with a memory of earlier segments (Transformer-XL) gives the logits of the whole
// sequence.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "sextant/base/error.h"
#include "sextant/models/decoder/decoder.h"
#include "tests/models/decoder/tiny_decoder.h"

namespace sextant::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// Decoders with each relative method, with tables for 3 kLength positions.
std::vector<std::pair<std::string, Decoder>> relative_decoders() {
  DecoderOptions options = tiny();
  options.key_heads = options.heads;  // rope-mixed has frequencies for each head
  const ModelShape shape = model_shape(options, 3 * kLength);
  std::vector<std::pair<std::string, Decoder>> all;
  for (const MethodInfo& info : methods()) {
    auto method = make_method(info.name, shape, options_for_text(info));
    if (method->relative()) all.emplace_back(info.name, Decoder(options, std::move(method), 0));
  }
  all.emplace_back("recursive over the input",
                   Decoder(options, make_method("recursive", shape, {{"over", "input"}}), 0));
  return all;
}

// Logits of a sequence that is passed in segments of `segment` positions.
at::Tensor in_segments(const Decoder& model, const at::Tensor& text, int64_t segment,
                       int64_t limit) {
  Memory memory{.limit = limit};
  std::vector<at::Tensor> parts;
  for (const at::Tensor& part : text.split(segment, 1)) {
    parts.push_back(model.logits(part, memory));
    for (const at::Tensor& layer : memory.layers) EXPECT_LE(layer.size(1), limit);
  }
  return at::cat(parts, 1);
}

// A bound for a different order of the same sums: attention is within 64 units of float32 of the
// exact result (tests/attention), products over 32 or 64 channels likewise, for both computations
// and two layers.
double rounding_of(const at::Tensor& logits) {
  return 2 * 2 * (64 + 64) * 0x1p-24 * logits.abs().max().item<double>();
}

TEST(Decoder, SegmentsThatRememberAllAreTheWholeText) {
  const at::NoGradGuard no_gradients;
  const at::Tensor text = tokens(2, 3 * kLength);
  const auto models = relative_decoders();
  EXPECT_GE(models.size(), 15);
  for (const auto& [method, model] : models) {
    const at::Tensor whole = model.logits(text);
    for (const int64_t segment : {kLength, int64_t{7}}) {
      EXPECT_LE(largest_difference(in_segments(model, text, segment, 3 * kLength), whole),
                rounding_of(whole))
          << method;
    }
  }
}

TEST(Decoder, RemembersThePositionsAskedForAndNoMore) {
  const at::NoGradGuard no_gradients;
  // One layer with a window of five positions, the query's own included.
  DecoderOptions options = tiny();
  options.layers = 1;
  const Decoder model(
      options,
      make_method("window", model_shape(options, kLength), {{"window", 5}, {"of", "alibi"}}), 0);
  const at::Tensor text = tokens(2, 3 * kLength), whole = model.logits(text);
  for (const int64_t segment : {1, 3, 16}) {
    EXPECT_LE(largest_difference(in_segments(model, text, segment, 4), whole), rounding_of(whole));
    EXPECT_GT(largest_difference(in_segments(model, text, segment, 3), whole), 1e-3);
  }
}

// Bytes of the first segment occur neither in the second nor in the logits that enter the loss, so
// gradients can reach their embeddings through the memory only.
TEST(Decoder, NoGradientFlowsIntoMemory) {
  const Decoder model = decoder("transformer-xl");
  const at::Tensor first = tokens(2, kLength).remainder(100),
                   second = tokens(2, kLength).remainder(100) + 100;
  const auto gradient_of_first = [&](const at::Tensor& logits) {
    const at::Tensor& embedding = model.parameters()[0].value;
    embedding.mutable_grad().reset();
    logits.narrow(1, logits.size(1) - kLength, kLength)
        .narrow(2, 200, 56)
        .square()
        .sum()
        .backward();
    return embedding.grad().narrow(0, 0, 100).abs().max().item<double>();
  };
  Memory memory{.limit = kLength};
  model.logits(first, memory);
  ASSERT_EQ(memory.layers.size(), 2);
  for (const at::Tensor& layer : memory.layers) EXPECT_FALSE(layer.requires_grad());
  EXPECT_EQ(gradient_of_first(model.logits(second, memory)), 0);
  EXPECT_GT(gradient_of_first(model.logits(at::cat({first, second}, 1))), 0);
}

TEST(Decoder, RefusesAMemoryThatItCannotUse) {
  const auto fails = [](const char* method, Memory memory, const char* says) {
    EXPECT_THAT([&] { decoder(method).logits(tokens(2, kLength), memory); },
                ThrowsMessage<Error>(HasSubstr(says)));
  };
  for (const char* method : {"sinusoidal", "learned", "recursive", "complex", "chunk"}) {
    fails(method, {.limit = 8}, "memory: expected none");
  }
  fails("rope", {.limit = -1}, "memory.limit: expected at least 0, but got -1");
  fails("rope", {.limit = 8, .layers = {at::zeros({2, 4, 32})}}, "layers: expected 2, but got 1");
  fails("rope", {.limit = 8, .layers = {at::zeros({2, 4, 32}), at::zeros({1, 4, 32})}},
        "expected [2, positions, 32] of each");
}

}  // namespace
}  // namespace sextant::testing
