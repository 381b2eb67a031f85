// Models that see both directions: masked bytes and the direction task.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randint.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "sextant/base/error.h"
#include "sextant/files/json_fields.h"
#include "sextant/lab/data/masked_text.h"
#include "sextant/lab/data/retrieval_task.h"
#include "sextant/lab/torch/evaluate.h"
#include "sextant/lab/torch/model_folder.h"
#include "sextant/lab/torch/run_arm.h"
#include "sextant/lab/torch/trainer.h"
#include "tests/lab/laboratory.h"

namespace sextant::lab {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr int64_t kTrained = 16;

Settings masked_settings() {
  Settings settings = tiny_settings();
  settings.objective = Objective::kMasked;
  return settings;
}

Decoder decoder_of(const std::string& method, Task task = Task::kMasked) {
  const DecoderOptions options = model_of(masked_settings(), task);
  return {options, make_method(method, model_shape(options, kTrained), nlohmann::json::object()),
          0};
}

std::vector<std::string_view> blocks() {
  static const Corpus corpus = split_corpus(synthetic_documents(40, 500), 0.1);
  return test_blocks(corpus, masked_settings().test.longest(), 4);
}

Evaluation evaluation(const Decoder& decoder) {
  return evaluate(decoder, blocks(), masked_settings().test, survey_scoring(kTrained, 0, true),
                  [](int64_t) {});
}

at::Tensor tokens_from(int64_t rows, int64_t length) {
  return at::randint(0, 256, {rows, length}, at::kLong);
}

TEST(Masked, LogitsDependOnLaterTokens) {
  const at::NoGradGuard no_gradients;
  const at::Tensor tokens = tokens_from(1, 12);
  at::Tensor other = tokens.clone();
  other[0][11] = (tokens[0][11].item<int64_t>() + 1) % 256;
  for (const char* method : {"alibi", "t5", "rope", "none"}) {
    const Decoder masked = decoder_of(method), causal = decoder_of(method, Task::kText);
    const auto first = [](const Decoder& model, const at::Tensor& x) {
      return model.logits(x).select(1, 0);
    };
    EXPECT_FALSE(first(masked, tokens).equal(first(masked, other))) << method;
    EXPECT_TRUE(first(causal, tokens).equal(first(causal, other))) << method;
  }
}

// Padding behind a shorter sequence changes no result of the sequence.
TEST(Masked, PaddingIsNotAttendedTo) {
  const at::NoGradGuard no_gradients;
  const at::Tensor tokens = tokens_from(2, 12);
  at::Tensor padded = at::full({2, 16}, kPaddingToken, at::kLong);
  padded.narrow(1, 0, 12).copy_(tokens);
  for (const char* method : {"sinusoidal", "alibi", "shaw", "deberta", "tupe", "xlnet"}) {
    const Decoder model = decoder_of(method);
    const at::Tensor whole = model.logits(tokens);
    const at::Tensor shown = model.logits(padded).narrow(1, 0, 12);
    EXPECT_LT((whole - shown).abs().max().item<double>(), 1e-4) << method;
  }
}

TEST(Masked, AModelWithoutEmbeddingsHasThePerplexityOfChance) {
  const Decoder blank = decoder_of("alibi");
  blank.parameters()[0].value.detach().zero_();
  for (const AtLength& at : evaluation(blank).lengths) {
    EXPECT_NEAR(at.loss.value, std::log(kMaskedVocabulary), 1e-5);
    EXPECT_NEAR(at.sliding.value, std::log(kMaskedVocabulary), 1e-5);
  }
}

// A model without attention predicts a masked byte from nothing, so a difference between lengths
// would come from different bytes being scored.
TEST(Masked, EveryLengthIsScoredOnTheSameBytes) {
  const Decoder forgetful = decoder_of("rope");
  for (const NamedParameter& parameter : forgetful.parameters()) {
    if (parameter.name == "layers.0.attention.out") parameter.value.detach().zero_();
  }
  const Evaluation found = evaluation(forgetful);
  ASSERT_EQ(found.lengths.size(), 3);
  for (const AtLength& at : found.lengths) {
    EXPECT_NEAR(at.loss.value, found.lengths[0].loss.value, 1e-5);
    EXPECT_NEAR(at.sliding.value, found.lengths[0].sliding.value, 1e-5);
  }
  ASSERT_EQ(found.loss_at.size(), 4);
}

TEST(Masked, HasNeitherMemoryNorCache) {
  const Decoder model = decoder_of("alibi");
  Memory memory{.limit = 16};
  EXPECT_THAT([&] { model.logits(tokens_from(1, 8), memory); },
              ThrowsMessage<Error>(HasSubstr("memory: expected none")));
  DecoderCache cache = model.new_cache();
  const std::vector<int64_t> sequence = {cache.add()};
  EXPECT_THAT([&] { model.logits(tokens_from(1, 8), cache, sequence); },
              ThrowsMessage<Error>(HasSubstr("cache: expected a causal model")));
}

TEST(Masked, AnArmTrainsTestsAndIsReadAgain) {
  const TemporaryFolder folder;
  const Arm arm{.label = "t5", .method = "t5", .options = "{}", .task = Task::kMasked};
  EXPECT_EQ(arm.name(), "t5-masked-0");
  const auto directory = prepare_arm(folder, arm, masked_settings());
  EXPECT_EQ(run_arm(directory, {}), Ending::kDone);
  const auto result = read_json(directory / kResultFile).get<ArmResult>();
  ASSERT_EQ(result.lengths.size(), 3);
  EXPECT_LT(result.lengths[0].sliding.value, std::log(256));
  EXPECT_LT(result.train_loss.back(), result.train_loss.front());
  EXPECT_LT(result.pictures.distances.front(), 0) << "scores of later keys, too";
  const SavedModel saved = read_model(directory);
  EXPECT_EQ(saved.config.model, model_of(masked_settings(), Task::kMasked));
  EXPECT_TRUE(predicts_masked_bytes(saved.config.model));
  EXPECT_THAT(obstacle(directory), HasSubstr("bidirectional"));
}

Decoder two_streams(const std::string& method) {
  Arm arm{.label = method, .method = method, .options = "{}", .task = Task::kMasked};
  arm.two_streams = true;
  const DecoderOptions options = model_of(masked_settings(), arm);
  return {options, make_method(method, model_shape(options, kTrained), nlohmann::json::object()),
          0};
}

// The loss of a token changes with that token and with those of lower rank, and with no other.
TEST(TwoStreams, PredictATokenFromThoseOfLowerRank) {
  const at::NoGradGuard no_gradients;
  constexpr int64_t kLength = 8, kAsked = 3;
  for (const char* method : {"xlnet", "transformer-xl", "sinusoidal"}) {
    const Decoder model = two_streams(method);
    const at::Tensor tokens = tokens_from(1, kLength);
    const at::Tensor order = at::arange(kLength, at::kLong).flip(0).unsqueeze(0);
    at::Tensor targets = at::full({1, kLength}, kNotAsked, at::kLong);
    targets[0][kAsked] = 65;
    const auto loss = [&](const at::Tensor& x) {
      return model.permuted_losses(x, targets, order).item<double>();
    };
    const double before = loss(tokens);
    for (int64_t place = 0; place < kLength; ++place) {
      at::Tensor other = tokens.clone();
      other[0][place] = (tokens[0][place].item<int64_t>() + 1) % 256;
      const bool seen = order[0][place].item<int64_t>() < order[0][kAsked].item<int64_t>();
      EXPECT_EQ(loss(other) != before, seen) << method << " " << place;
    }
  }
}

TEST(TwoStreams, AnArmTrainsAndIsReadAgain) {
  const TemporaryFolder folder;
  Arm arm{.label = "xlnet", .method = "xlnet", .options = "{}", .task = Task::kMasked};
  arm.two_streams = true;
  const auto directory = prepare_arm(folder, arm, masked_settings());
  EXPECT_EQ(run_arm(directory, {}), Ending::kDone);
  const auto result = read_json(directory / kResultFile).get<ArmResult>();
  EXPECT_LT(result.lengths[0].sliding.value, std::log(256));
  EXPECT_LT(result.train_loss.back(), result.train_loss.front());
  EXPECT_EQ(read_model(directory).config.model.query_token, kMaskToken);
}

// Shares of right tags after a training of some seconds, over all distances at the trained length.
double tagged_right(const std::string& method, const std::string& options, bool causal) {
  Settings settings = masked_settings();
  settings.retrieval = {.steps = 300,
                        .batch = 32,
                        .length = 27,
                        .learning_rate = 5e-3,
                        .layers = 2,
                        .width = 32,
                        .lengths = {27},
                        .texts = 100};
  const Arm arm{.label = method,
                .method = method,
                .options = options,
                .task = Task::kDirection,
                .causal = causal};
  const TrainingOptions training = training_of(settings, arm);
  Decoder decoder(model_of(settings, arm), method_of(arm, settings), 0);
  Trainer trainer(training, small_batches(arm.task, training, 0), decoder);
  for (int64_t step = 0; step < training.steps(); ++step) trainer.advance();
  const std::vector<AtDistance> all =
      accuracies(decoder, arm.task, settings.retrieval, [](int64_t, int64_t) {});
  EXPECT_EQ(all.size(), kMostGap);
  double sum = 0;
  for (const AtDistance& at : all) sum += at.accuracy.value;
  return sum / static_cast<double>(all.size());
}

// An encoding that has the same effect in both directions is right half of the time at most; the
// bound leaves five standard deviations of 400 tags.
TEST(Direction, ASymmetricBiasCannotTellLeftFromRight) {
  EXPECT_LT(tagged_right("alibi", "{}", false), 0.5 + 5 * 0.025);
}

TEST(Direction, ABiasByDirectionCan) { EXPECT_GT(tagged_right("t5", "{}", false), 0.8); }

TEST(Direction, TheCausalMaskTellsIt) { EXPECT_GT(tagged_right("alibi", "{}", true), 0.8); }

}  // namespace
}  // namespace sextant::lab
