#include "sextant/lab/torch/evaluate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/lab/laboratory.h"

namespace sextant::lab {
namespace {

constexpr int64_t kTrained = 16;

Decoder decoder(const std::string& method) {
  const DecoderOptions options = tiny_settings().model;
  return {options, make_method(method, model_shape(options, kTrained), nlohmann::json::object()),
          0};
}

std::vector<std::string_view> blocks() {
  static const Corpus corpus = split_corpus(synthetic_documents(40, 500), 0.1);
  return test_blocks(corpus, tiny_settings().test.longest(), 4);
}

Evaluation evaluation(const Decoder& decoder, int64_t memory = 0) {
  return evaluate(decoder, blocks(), tiny_settings().test, survey_scoring(kTrained, memory),
                  [](int64_t) {});
}

// Without embeddings all logits are 0, so every byte has a loss of log 256, up to a few roundings
// of float32.
TEST(Evaluate, AModelWithoutEmbeddingsHasThePerplexityOfChance) {
  const Decoder blank = decoder("alibi");
  ASSERT_EQ(blank.parameters()[0].name, "embedding");
  blank.parameters()[0].value.detach().zero_();
  const Evaluation found = evaluation(blank);
  ASSERT_EQ(found.lengths.size(), 3);
  for (const AtLength& at : found.lengths) {
    EXPECT_NEAR(at.loss.value, std::log(256), 4 * 0x1p-23 * std::log(256));
    EXPECT_NEAR(at.sliding.value, std::log(256), 4 * 0x1p-23 * std::log(256));
    EXPECT_LT(at.loss.error, 1e-6);
  }
}

// A model that uses the last byte alone has the same loss for a byte at any position, so a
// difference between lengths would come from different bytes being scored.
TEST(Evaluate, EveryLengthIsScoredOnTheSameBytes) {
  const Decoder forgetful = decoder("rope");
  for (const NamedParameter& parameter : forgetful.parameters()) {
    if (parameter.name == "layers.0.attention.out") parameter.value.detach().zero_();
  }
  const Evaluation found = evaluation(forgetful);
  ASSERT_EQ(found.lengths.size(), 3);
  for (const AtLength& at : found.lengths) {
    EXPECT_NEAR(at.loss.value, found.lengths[0].loss.value, 1e-6);
    EXPECT_NEAR(at.sliding.value, found.lengths[0].sliding.value, 1e-6);
    EXPECT_NEAR(at.loss_change.value, 0, 1e-6);
    EXPECT_NEAR(at.sliding_change.value, 0, 1e-6);
  }
}

TEST(Evaluate, LossByPositionAveragesToTheLossAtTheLongestLength) {
  const Evaluation found = evaluation(decoder("sinusoidal"));
  ASSERT_EQ(found.loss_at.size(), 4);
  double mean = 0;
  for (const double loss : found.loss_at) mean += loss / 4;
  EXPECT_NEAR(mean, found.lengths.back().loss.value, 1e-9);
}

TEST(Evaluate, SlidingIsTheEndOfTheBlock) {
  const Decoder model = decoder("sinusoidal");
  const Evaluation found = evaluation(model);
  for (size_t n = 0; n < found.lengths.size(); ++n) {
    double mean = 0;
    for (const std::string_view block : blocks()) {
      // The window of this length at the end of the block.
      const auto length = static_cast<size_t>(found.lengths[n].length);
      const std::vector<float> window =
          losses(model, block.substr(block.size() - length - 1), found.lengths[n].length);
      for (size_t last = length - kTrained / 2; last < length; ++last) {
        mean += window[last] / (kTrained / 2) / 4;
      }
    }
    EXPECT_NEAR(found.lengths[n].sliding.value, mean, 1e-5);
    ASSERT_EQ(found.lengths[n].sliding_blocks.size(), 4);
    double of_blocks = 0;
    for (const double block : found.lengths[n].sliding_blocks) of_blocks += block / 4;
    EXPECT_NEAR(found.lengths[n].sliding.value, of_blocks, 5.1e-7);
  }
}

TEST(Evaluate, AWindowOfTheTrainingLengthChangesNothingAtIt) {
  Decoder model = decoder("rope");
  const Evaluation before = evaluation(model);
  model.replace_method(make_method("window", model_shape(tiny_settings().model, kTrained),
                                   nlohmann::json::object()));
  const Evaluation after = evaluation(model);
  EXPECT_EQ(after.lengths[0].loss.value, before.lengths[0].loss.value);
  EXPECT_NE(after.lengths[2].loss.value, before.lengths[2].loss.value);
}

// float32 losses of about 5 nats, from two computations with two hundred roundings each.
constexpr double kRounding = 2 * 200 * 0x1p-24 * 5;

TEST(Evaluate, AMemoryOfTheWholeTextIsReadingAtOnce) {
  const Decoder model = decoder("transformer-xl");
  ASSERT_EQ(blocks().size(), 4);
  for (const std::string_view block : blocks()) {
    const std::vector<float> at_once = losses(model, block, 64);
    const std::vector<float> remembered = losses(model, block, 64, {.segment = 16, .memory = 64});
    const std::vector<float> forgotten = losses(model, block, 64, {.segment = 16, .memory = 1});
    ASSERT_EQ(at_once.size(), 64);
    for (size_t n = 0; n < at_once.size(); ++n) {
      EXPECT_NEAR(remembered[n], at_once[n], kRounding) << n;
      if (n < 16) {
        EXPECT_NEAR(forgotten[n], at_once[n], kRounding) << n;  // the BLAS rounds by shape
      }
    }
    EXPECT_GT(std::abs(forgotten.back() - at_once.back()), kRounding);
  }
}

TEST(Evaluate, AtTheTrainingLengthThereIsNothingToRemember) {
  const Decoder model = decoder("transformer-xl");
  const Evaluation with = evaluation(model, 16), without = evaluation(model);
  EXPECT_EQ(with.lengths[0].loss.value, without.lengths[0].loss.value);
  EXPECT_NE(with.lengths[2].loss.value, without.lengths[2].loss.value);
}

TEST(Evaluate, ErrorsAreThoseOfTheMeanOverBlocks) {
  const Evaluation found = evaluation(decoder("none"));
  std::vector<double> means;
  double mean = 0, squares = 0;
  for (const std::string_view block : blocks()) {
    double sum = 0;
    for (const float loss : losses(decoder("none"), block, 64)) sum += loss / 64;
    means.push_back(sum);
    mean += sum / 4;
  }
  for (const double value : means) squares += (value - mean) * (value - mean);
  EXPECT_NEAR(found.lengths[2].loss.error, std::sqrt(squares / 3 / 4), 1e-6);
  EXPECT_EQ(found.lengths[0].loss_change.error, 0);
}

}  // namespace
}  // namespace sextant::lab
