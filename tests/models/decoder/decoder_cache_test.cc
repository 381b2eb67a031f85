// Decoding over a cache, in chunks of any lengths, gives the logits of the whole sequence.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sextant/base/error.h"
#include "sextant/base/random.h"
#include "sextant/models/decoder/decoder.h"
#include "tests/models/decoder/tiny_decoder.h"

namespace sextant::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// Decoders with each method, with tables for 3 kLength positions.
std::vector<std::pair<std::string, Decoder>> all_decoders() {
  DecoderOptions options = tiny();
  options.key_heads = options.heads;
  const ModelShape shape = model_shape(options, 3 * kLength);
  std::vector<std::pair<std::string, Decoder>> all;
  for (const MethodInfo& info : methods())
    all.emplace_back(info.name,
                     Decoder(options, make_method(info.name, shape, options_for_text(info)), 0));
  const std::pair<const char*, nlohmann::json> more[] = {
      {"complex",  // depends on token ids
       {{"amplitude", "word"}, {"frequency", "word-and-component"}, {"phase", "word"}}},
      {"sinusoidal", {{"layout", "fairseq"}}},
      {"recursive", {{"over", "input"}}},  // the cache holds the recurrence's states
      {"recursive", {{"over", "input"}, {"cell", "gru"}}},
      {"deberta", {{"version", 3}}}};
  for (const auto& [name, chosen] : more)
    all.emplace_back(name, Decoder(options, make_method(name, shape, chosen), 0));
  return all;
}

// Logits of the rows of `text`, decoded together in chunks of random lengths. The rows begin with
// the same 20 tokens: the other rows are forked from the first.
at::Tensor decoded(const Decoder& model, const at::Tensor& text, uint64_t seed) {
  const CounterRandom random(seed, "splits");
  DecoderCache cache = model.new_cache(/*page_rows=*/16);
  const int64_t shared = 20;
  const int64_t first_text = cache.add();
  const std::vector<int64_t> first = {first_text};
  std::vector<at::Tensor> parts = {
      model.logits(text.narrow(0, 0, 1).narrow(1, 0, shared), cache, first)};
  parts[0] = parts[0].expand({text.size(0), -1, -1});
  // Tokens that are truncated again leave no trace.
  model.logits(text.narrow(0, 1, 1).narrow(1, 0, 5), cache, first);
  cache.truncate(first_text, shared);
  std::vector<int64_t> texts = {first_text};
  for (int64_t n = 1; n < text.size(0); ++n) texts.push_back(cache.fork(first_text, shared));
  uint64_t round = 0;
  for (int64_t at = shared, rows = 0; at < text.size(1); at += rows) {
    rows = seed == 0
               ? 1
               : std::min(text.size(1) - at, 1 + static_cast<int64_t>(random.below(17, round++)));
    parts.push_back(model.logits(text.narrow(1, at, rows), cache, texts));
  }
  return at::cat(parts, 1);
}

TEST(Decoder, DecodingOverACacheIsReadingTheWholeText) {
  const at::NoGradGuard no_gradients;
  at::Tensor text = tokens(3, 3 * kLength);
  text.narrow(1, 0, 20).copy_(text.narrow(0, 0, 1).narrow(1, 0, 20).clone().expand({3, 20}));
  for (const auto& [method, model] : all_decoders()) {
    const at::Tensor whole = model.logits(text);
    for (const uint64_t seed : {0, 1, 2}) {
      const at::Tensor parts = decoded(model, text, seed);
      ASSERT_EQ(parts.sizes(), whole.sizes());
      EXPECT_LE(largest_difference(parts, whole), 1e-5 * whole.abs().max().item<double>())
          << method << ", split " << seed;
    }
  }
}

TEST(Decoder, SequencesOfOneBatchMayHaveOtherLengths) {
  const at::NoGradGuard no_gradients;
  const at::Tensor text = tokens(2, 2 * kLength);
  const DecoderOptions options = tiny();
  for (const char* stretch : {"dynamic-ntk", "dynamic-yarn", "yarn*4"}) {
    const Decoder model(
        options, make_method("rope", model_shape(options, kLength), {{"stretch", stretch}}), 0);
    const at::Tensor whole = model.logits(text);
    DecoderCache cache = model.new_cache();
    const int64_t a = cache.add(), b = cache.add();
    const std::vector<int64_t> only_a = {a}, both = {b, a};
    model.logits(text.narrow(0, 0, 1).narrow(1, 0, kLength), cache, only_a);
    // One sequence begins while the other is beyond the training length.
    for (int64_t step = 0; step < kLength; ++step) {
      const at::Tensor next = at::cat({text.narrow(0, 1, 1).narrow(1, step, 1),
                                       text.narrow(0, 0, 1).narrow(1, kLength + step, 1)});
      const at::Tensor logits = model.logits(next, cache, both);
      const double allowed = 1e-5 * whole.abs().max().item<double>();
      EXPECT_LE(largest_difference(logits[0], whole[1].narrow(0, step, 1)), allowed) << stretch;
      EXPECT_LE(largest_difference(logits[1], whole[0].narrow(0, kLength + step, 1)), allowed)
          << stretch;
    }
  }
}

TEST(Decoder, ACacheIsAsItWasAfterAnError) {
  const at::NoGradGuard no_gradients;
  const Decoder model = decoder("learned");  // its table has kLength rows
  const at::Tensor text = tokens(1, kLength + 1);
  DecoderCache cache = model.new_cache();
  const std::vector<int64_t> texts = {cache.add()}, twice = {texts[0], texts[0]};
  const auto fails = [&](const at::Tensor& next, std::span<const int64_t> of, const char* says) {
    EXPECT_THAT([&] { model.logits(next, cache, of); }, ThrowsMessage<Error>(HasSubstr(says)));
  };
  model.logits(text.narrow(1, 0, kLength - 1), cache, texts);
  fails(text.narrow(1, 0, 2), texts, "position");
  fails(text, {}, "expected a row for each of 0 sequences");
  fails(tokens(2, 1), twice, "expected each once");
  EXPECT_EQ(cache.rows(texts[0]), kLength - 1);
  const at::Tensor last = model.logits(text.narrow(1, kLength - 1, 1), cache, texts);
  EXPECT_LE(
      largest_difference(last, model.logits(text.narrow(1, 0, kLength)).narrow(1, kLength - 1, 1)),
      1e-5 * last.abs().max().item<double>());
  DecoderCache without_states = decoder("recursive").new_cache();
  const Decoder over_input(tiny(), method_of("recursive", {{"over", "input"}}), 0);
  const std::vector<int64_t> one = {without_states.add()};
  EXPECT_THAT([&] { over_input.logits(text, without_states, one); },
              ThrowsMessage<Error>(HasSubstr("cache: expected one with inputs, as new_cache()")));
  DecoderOptions deeper = tiny();
  deeper.layers = 3;
  DecoderCache other = Decoder(deeper, method_of("none"), 0).new_cache();
  EXPECT_THAT([&] { model.logits(text, other, texts); },
              ThrowsMessage<Error>(HasSubstr("cache: expected one of 2 layers, but got 3")));
}

}  // namespace
}  // namespace sextant::testing
