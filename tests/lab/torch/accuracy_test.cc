#include "sextant/lab/torch/evaluate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sextant/lab/torch/trainer.h"
#include "tests/lab/laboratory.h"

namespace sextant::lab {
namespace {

// Retrieval after `steps` of training. Training sequences have 16 tokens, with room for 6 pairs.
std::vector<AtDistance> found_after(int64_t steps, int64_t texts) {
  Settings settings = tiny_settings_with_pairs(std::max<int64_t>(1, steps));
  settings.retrieval.batch = 32;
  settings.retrieval.width = 32;
  settings.retrieval.layers = 2;
  settings.retrieval.texts = texts;
  const TrainingOptions training = training_of(settings, Task::kPairs);
  const DecoderOptions model = model_of(settings, Task::kPairs);
  Decoder decoder(
      model, make_method("none", model_shape(model, training.length), nlohmann::json::object()), 0);
  Trainer trainer(training, small_batches(Task::kPairs, training, 0), decoder);
  for (int64_t step = 0; step < steps; ++step) trainer.advance();
  return accuracies(decoder, Task::kPairs, settings.retrieval, [](int64_t, int64_t) {});
}

constexpr size_t kAsked = 9;  // lengths and distances: see the first test

TEST(Accuracy, AsksAtEveryLengthAndDistance) {
  std::vector<std::pair<int64_t, int64_t>> asked;
  for (const AtDistance& at : found_after(0, 8)) asked.emplace_back(at.length, at.distance);
  using P = std::pair<int64_t, int64_t>;
  EXPECT_THAT(asked, testing::ElementsAre(P{16, 2}, P{16, 4}, P{16, 8}, P{16, 14}, P{32, 2},
                                          P{32, 4}, P{32, 8}, P{32, 16}, P{32, 30}));
}

// There are 16 answers. By chance 25 of 400 are right, and more than 60 with a probability of
// 1e-10; of 100, more than half are right with a probability of 1e-30. (300 steps of this size
// reach 0.7; the survey's own settings reach 1.)
TEST(Accuracy, FindsNothingUntrainedAndMostTrained) {
  const std::vector<AtDistance> untrained = found_after(0, 400);
  ASSERT_EQ(untrained.size(), kAsked);
  for (const AtDistance& at : untrained) EXPECT_LT(at.accuracy.value, 0.15);
  const std::vector<AtDistance> trained = found_after(300, 100);
  ASSERT_EQ(trained.size(), kAsked);
  for (const AtDistance& at : trained) {
    if (at.length == 16) {
      EXPECT_GT(at.accuracy.value, 0.5) << at.distance;
    }
  }
}

TEST(Accuracy, SaysWhichTextsWereRight) {
  const std::vector<AtDistance> all = found_after(50, 40);
  ASSERT_EQ(all.size(), kAsked);
  for (const AtDistance& at : all) {
    const auto ones = static_cast<double>(std::ranges::count(at.right, '1'));
    const auto zeros = static_cast<double>(std::ranges::count(at.right, '0'));
    EXPECT_EQ(ones + zeros, 40) << at.right;
    EXPECT_EQ(at.accuracy.value, ones / 40);
  }
}

TEST(Accuracy, HasAnErrorEvenWhereAllAreRight) {
  const std::vector<AtDistance> all = found_after(0, 8);
  ASSERT_EQ(all.size(), kAsked);
  for (const AtDistance& at : all) {
    // (right + 2) of 12
    const double share = (8 * at.accuracy.value + 2) / 12;
    EXPECT_NEAR(at.accuracy.error, std::sqrt(share * (1 - share) / 12), 1e-12);
    EXPECT_GT(at.accuracy.error, 0.1);
  }
}

}  // namespace
}  // namespace sextant::lab
