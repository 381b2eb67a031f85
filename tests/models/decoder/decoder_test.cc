#include "sextant/models/decoder/decoder.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "sextant/base/error.h"
#include "sextant/base/random.h"

namespace sextant {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr int64_t kLength = 16;
constexpr const char* kMethods[] = {"none",  "sinusoidal", "learned", "rope",
                                    "alibi", "t5",         "shaw",    "emd"};

DecoderOptions tiny() {
  return {.layers = 2, .width = 32, .heads = 4, .key_heads = 2, .mlp_width = 64};
}

std::unique_ptr<Method> method_of(const std::string& name, const nlohmann::json& options = {}) {
  return make_method(name, model_shape(tiny(), kLength),
                     options.is_null() ? nlohmann::json::object() : options);
}

Decoder decoder(const std::string& method, uint64_t seed = 0) {
  return {tiny(), method_of(method), seed};
}

at::Tensor tokens(int64_t batch, int64_t length, uint64_t seed = 1) {
  const CounterRandom random(seed, "tokens");
  at::Tensor tokens = at::empty({batch, length}, at::kLong);
  for (int64_t n = 0; n < batch * length; ++n) {
    tokens.data_ptr<int64_t>()[n] =
        static_cast<int64_t>(random.below(256, static_cast<uint64_t>(n)));
  }
  return tokens;
}

at::Tensor loss_of(const Decoder& decoder) {
  return at::cross_entropy_loss(decoder.logits(tokens(8, kLength)).reshape({-1, 256}),
                                tokens(8, kLength, 2).reshape({-1}));
}

// The last norm makes |x|^2 = width. The embedding of a byte that the input does not contain is
// independent of x and normal with variance 1 / width, so the expected mean square of its logits is
// exactly 1. Given x, the logits of the 128 unused bytes are independent of each other; the
// standard error is that of their mean (0.02 to 0.03), and the test allows five standard errors.
TEST(Decoder, LogitsHaveVarianceOneBeforeItIsTrained) {
  const at::NoGradGuard no_gradients;
  for (const char* method : kMethods) {
    const at::Tensor logits = decoder(method).logits(tokens(8, kLength).remainder(128));
    const at::Tensor squares =
        logits.narrow(2, 128, 128).reshape({-1, 128}).to(at::kDouble).square().mean(0);
    const double error = squares.std().item<double>() / std::sqrt(128);
    EXPECT_LT(error, 0.05) << method;
    EXPECT_NEAR(squares.mean().item<double>(), 1, 5 * error) << method;
  }
}

TEST(Decoder, SeesNothingThatComesLater) {
  const at::NoGradGuard no_gradients;
  for (const char* method : kMethods) {
    const Decoder model = decoder(method);
    at::Tensor text = tokens(2, kLength);
    const at::Tensor before = model.logits(text);
    text.narrow(1, 10, 6).copy_(tokens(2, 6, 3));
    const at::Tensor after = model.logits(text);
    EXPECT_TRUE(at::equal(before.narrow(1, 0, 10), after.narrow(1, 0, 10))) << method;
    EXPECT_FALSE(at::equal(before.narrow(1, 10, 6), after.narrow(1, 10, 6))) << method;
  }
}

// With a table of zeros and one run of the last layer, the decoder with emd equals a plain one.
TEST(Decoder, RunsItsLastLayerAgainWithAbsolutePositions) {
  const at::NoGradGuard no_gradients;
  const at::Tensor text = tokens(2, kLength);
  const at::Tensor plain = decoder("none").logits(text);
  const auto logits = [&](int64_t runs, double first_position) {
    const Decoder model(tiny(), method_of("emd", {{"of", "none"}, {"runs", runs}}), 0);
    at::Tensor table = model.parameters().back().value;
    table.zero_();
    // Half the columns: norms remove a constant.
    table[0].slice(0, 0, tiny().width / 2).fill_(first_position);
    return model.logits(text);
  };
  EXPECT_TRUE(at::allclose(logits(1, 0), plain, 1e-5, 1e-5));
  EXPECT_FALSE(at::allclose(logits(2, 0), plain, 1e-2, 1e-2));
  // The position changes the query at that position and no key.
  const at::Tensor moved = logits(1, 0.5);
  EXPECT_FALSE(at::allclose(moved.select(1, 0), plain.select(1, 0), 1e-2, 1e-2));
  EXPECT_TRUE(
      at::allclose(moved.narrow(1, 1, kLength - 1), plain.narrow(1, 1, kLength - 1), 1e-5, 1e-5));
}

TEST(Decoder, ReadsEachTextOfABatchAlone) {
  const at::NoGradGuard no_gradients;
  const Decoder model = decoder("rope");
  const at::Tensor text = tokens(3, kLength);
  const at::Tensor together = model.logits(text);
  for (int64_t row = 0; row < 3; ++row) {
    EXPECT_TRUE(
        at::allclose(model.logits(text.narrow(0, row, 1)), together.narrow(0, row, 1), 1e-5, 1e-5));
  }
}

TEST(Decoder, EveryParameterHasAGradient) {
  for (const Norm norm : {Norm::kLayerNorm, Norm::kRmsNorm}) {
    for (const Activation activation :
         {Activation::kGelu, Activation::kSquaredRelu, Activation::kSwiGlu}) {
      DecoderOptions options = tiny();
      options.norm = norm;
      options.activation = activation;
      const Decoder model(options, method_of("shaw"), 0);
      loss_of(model).backward();
      for (const NamedParameter& parameter : model.parameters()) {
        ASSERT_TRUE(parameter.value.grad().defined()) << parameter.name;
        EXPECT_GT(parameter.value.grad().abs().max().item<double>(), 0) << parameter.name;
      }
    }
  }
}

// All other parameters start equal, and so does the embedding up to a factor that keeps its effect.
TEST(Decoder, TwoMatricesOfTokensStartAsOneTimesSqrtWidth) {
  const at::NoGradGuard no_gradients;
  DecoderOptions options = tiny();
  const Decoder tied(options, method_of("rope"), 0);
  options.tied = false;
  const Decoder two(options, method_of("rope"), 0);
  EXPECT_EQ(two.weights() - tied.weights(), 256 * 32);
  std::map<std::string, at::Tensor> values;
  for (const NamedParameter& parameter : two.parameters()) {
    values[parameter.name] = parameter.value.detach();
  }
  const at::Tensor embedding = tied.parameters()[0].value;
  EXPECT_TRUE(at::allclose(values.at("embedding"), embedding * std::sqrt(32.0), 1e-6, 1e-6));
  values.at("unembedding").copy_(embedding);
  EXPECT_TRUE(
      at::allclose(two.logits(tokens(2, kLength)), tied.logits(tokens(2, kLength)), 1e-4, 1e-5));
}

TEST(Decoder, MethodsShareTheStartOfAllElse) {
  const Decoder none = decoder("none");
  for (const char* method : kMethods) {
    const Decoder other = decoder(method);
    std::map<std::string, at::Tensor> values;
    for (const NamedParameter& parameter : other.parameters()) {
      values[parameter.name] = parameter.value;
    }
    for (const NamedParameter& parameter : none.parameters()) {
      EXPECT_TRUE(at::equal(parameter.value, values.at(parameter.name))) << parameter.name;
      values.erase(parameter.name);
    }
    for (const auto& [name, value] : values) EXPECT_THAT(name, testing::StartsWith("position."));
  }
}

TEST(Decoder, SeedsDiffer) {
  EXPECT_FALSE(at::equal(decoder("none", 0).parameters()[0].value,
                         decoder("none", 1).parameters()[0].value));
}

TEST(Decoder, GroupedQueriesHaveFewerWeights) {
  DecoderOptions all_heads = tiny();
  all_heads.key_heads = 4;
  const Decoder grouped = decoder("none"), full(all_heads, method_of("none"), 0);
  // 2 layers with 2 fewer heads of 8 channels, for keys and for values.
  EXPECT_EQ(full.weights() - grouped.weights(), 2 * 2 * 2 * 8 * 32);
}

TEST(Decoder, AWindowAsLongAsTheTextChangesNothing) {
  const at::NoGradGuard no_gradients;
  Decoder model = decoder("rope");
  const at::Tensor whole = model.logits(tokens(2, 2 * kLength));
  model.replace_method(method_of("window"));
  const at::Tensor near = model.logits(tokens(2, 2 * kLength));
  EXPECT_TRUE(at::equal(near.narrow(1, 0, kLength), whole.narrow(1, 0, kLength)));
  EXPECT_FALSE(at::equal(near.narrow(1, kLength, kLength), whole.narrow(1, kLength, kLength)));
}

// DeBERTa v3 is v2 with the layers' own projections applied to positions. A shared matrix gets the
// sum of the gradients of v2's separate ones.
TEST(Decoder, AMethodMayReadTheLayersOwnProjections) {
  const nlohmann::json small = {{"buckets", 4}, {"max_positions", 12}};
  const auto with = [&](int version) {
    nlohmann::json options = small;
    options["version"] = version;
    return Decoder(tiny(), method_of("deberta", options), 0);
  };
  const Decoder shared = with(3), apart = with(2);
  std::map<std::string, at::Tensor> values, shared_values;
  for (const NamedParameter& parameter : apart.parameters())
    values[parameter.name] = parameter.value;
  for (const NamedParameter& parameter : shared.parameters()) {
    EXPECT_THAT(parameter.name, testing::Not(HasSubstr("_proj")));
    shared_values[parameter.name] = parameter.value;
    values.at(parameter.name).detach().copy_(parameter.value.detach());
  }
  const auto name = [](int64_t layer, const char* what) {
    return "position.layer." + std::to_string(layer) + ".attention.self." + what;
  };
  // 4 heads of 8 columns; two share a key head.
  for (int64_t layer = 0; layer < 2; ++layer) {
    const at::Tensor in =
        shared_values.at("layers." + std::to_string(layer) + ".attention.in").detach();
    values.at(name(layer, "pos_query_proj.weight")).detach().copy_(in.narrow(0, 0, 32));
    const at::Tensor keys = in.narrow(0, 32, 16).view({2, 1, 8, 32});
    values.at(name(layer, "pos_key_proj.weight"))
        .detach()
        .copy_(keys.expand({2, 2, 8, 32}).reshape({32, 32}));
  }
  const at::Tensor text = tokens(2, 2 * kLength);
  const at::Tensor whole = apart.logits(text);
  EXPECT_LE((shared.logits(text) - whole).abs().max().item<double>(),
            1e-6 * whole.abs().max().item<double>());
  // The gradient of the shared projection is the sum of both gradients. The second step checks that
  // no graph of the first is reused.
  for (int step = 0; step < 2; ++step) {
    for (const auto& all : {values, shared_values})
      for (const auto& [unused, value] : all) value.mutable_grad().reset();
    loss_of(apart).backward();
    loss_of(shared).backward();
    for (int64_t layer = 0; layer < 2; ++layer) {
      const std::string in = "layers." + std::to_string(layer) + ".attention.in";
      at::Tensor sum = values.at(in).grad().clone();
      sum.narrow(0, 0, 32).add_(values.at(name(layer, "pos_query_proj.weight")).grad());
      sum.narrow(0, 32, 16).add_(values.at(name(layer, "pos_key_proj.weight"))
                                     .grad()
                                     .view({2, 2, 8, 32})
                                     .sum(1)
                                     .view({16, 32}));
      EXPECT_GT((sum - values.at(in).grad()).abs().max().item<double>(), 0);
      EXPECT_LE((shared_values.at(in).grad() - sum).abs().max().item<double>(),
                1e-5 * sum.abs().max().item<double>());
    }
  }
}

// Decoders with each relative method, with tables for 3 kLength positions.
std::vector<std::pair<std::string, Decoder>> relative_decoders() {
  DecoderOptions options = tiny();
  options.key_heads = options.heads;  // rope-mixed has speeds for each head
  const ModelShape shape = model_shape(options, 3 * kLength);
  std::vector<std::pair<std::string, Decoder>> all;
  for (const MethodInfo& info : methods()) {
    auto method = make_method(info.name, shape, nlohmann::json::object());
    if (method->relative()) all.emplace_back(info.name, Decoder(options, std::move(method), 0));
  }
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

double largest_difference(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).abs().max().item<double>();
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

// Decoders with each method, with tables for 3 kLength positions.
std::vector<std::pair<std::string, Decoder>> all_decoders() {
  DecoderOptions options = tiny();
  options.key_heads = options.heads;
  const ModelShape shape = model_shape(options, 3 * kLength);
  std::vector<std::pair<std::string, Decoder>> all;
  for (const MethodInfo& info : methods())
    all.emplace_back(info.name,
                     Decoder(options, make_method(info.name, shape, nlohmann::json::object()), 0));
  const std::pair<const char*, nlohmann::json> more[] = {
      {"complex",  // depends on token ids
       {{"amplitude", "word"}, {"frequency", "word-and-component"}, {"phase", "word"}}},
      {"sinusoidal", {{"layout", "fairseq"}}},
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

TEST(Decoder, TextsOfOneBatchMayHaveOtherLengths) {
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
  DecoderOptions deeper = tiny();
  deeper.layers = 3;
  DecoderCache other = Decoder(deeper, method_of("none"), 0).new_cache();
  EXPECT_THAT([&] { model.logits(text, other, texts); },
              ThrowsMessage<Error>(HasSubstr("cache: expected one of 2 layers, but got 3")));
}

TEST(Decoder, RefusesAMethodWithOtherParameters) {
  Decoder model = decoder("rope");
  EXPECT_THAT([&] { model.replace_method(method_of("t5")); },
              ThrowsMessage<Error>(HasSubstr("expected one with the parameters")));
}

TEST(Decoder, RefusesTokensOfNoLength) {
  EXPECT_THAT(
      [] {
        decoder("none").logits(at::empty({2, 0}, at::kLong));
      },
      ThrowsMessage<Error>(HasSubstr("tokens: expected [batch, length]")));
}

// The last layer may skip the other positions, so sums are in another order.
TEST(Decoder, LastLogitsAreThoseOfTheLastPosition) {
  const at::NoGradGuard no_gradients;
  for (const char* method : kMethods) {
    for (const int64_t length : {int64_t{1}, int64_t{2}, kLength}) {
      const Decoder model = decoder(method);
      const at::Tensor text = tokens(3, length);
      EXPECT_TRUE(at::allclose(model.last_logits(text), model.logits(text).select(1, length - 1),
                               /*rtol=*/1e-4, /*atol=*/1e-5))
          << method << " " << length;
    }
  }
}

TEST(Decoder, LossesAreOfTheTokensThatAreAskedFor) {
  const Decoder model = decoder("rope");
  const at::Tensor text = tokens(8, kLength), targets = tokens(8, kLength, 2);
  Memory none;
  const at::Tensor all = model.losses(text, targets, none);
  EXPECT_TRUE(at::allclose(all.mean(), loss_of(model)));
  const at::Tensor asked = tokens(8, kLength, 3).remainder(3).eq(0);
  const at::Tensor some = model.losses(text, targets.masked_fill(asked.logical_not(), -100), none);
  EXPECT_TRUE(at::allclose(some, all.masked_select(asked.reshape({-1})), 1e-4, 1e-5));
}

}  // namespace
}  // namespace sextant
