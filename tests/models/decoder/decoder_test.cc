// Logits, losses and parameters of the decoder.
#include "sextant/models/decoder/decoder.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "sextant/base/error.h"
#include "tests/models/decoder/tiny_decoder.h"

namespace sextant::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr const char* kMethods[] = {"none",  "sinusoidal", "learned", "rope",
                                    "alibi", "t5",         "shaw",    "emd"};

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
    for (const auto& [name, value] : values) EXPECT_THAT(name, ::testing::StartsWith("position."));
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
    EXPECT_THAT(parameter.name, ::testing::Not(HasSubstr("_proj")));
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
}  // namespace sextant::testing
