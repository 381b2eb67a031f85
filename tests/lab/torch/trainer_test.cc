#include "sextant/lab/torch/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "sextant/base/error.h"
#include "tests/lab/laboratory.h"

namespace sextant::lab {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

const Corpus& corpus() {
  static const Corpus corpus = split_corpus(synthetic_documents(40, 500), 0.1);
  return corpus;
}

// A decoder and its trainer.
struct Student {
  explicit Student(const std::string& method,
                   const TrainingOptions& options = tiny_settings().training, uint64_t seed = 0,
                   int64_t memory = 0)
      : training(options),
        decoder(tiny_settings().model,
                make_method(method, model_shape(tiny_settings().model, training.length),
                            nlohmann::json::object()),
                seed),
        trainer(training, corpus(), decoder, seed, memory) {}

  TrainingOptions training;
  Decoder decoder;
  Trainer trainer;
};

TrainingState state_of(const Student& student) {
  TrainingState state;
  student.trainer.save(state);
  return state;
}

TEST(Trainer, LowersTheLoss) {
  for (const char* method : {"none", "rope", "t5"}) {
    Student student(method);
    const double first = student.trainer.advance();
    double last = 0;
    while (student.trainer.step() < student.training.steps()) last = student.trainer.advance();
    EXPECT_LT(last, first - 2) << method;
  }
}

TEST(Trainer, GivesTheSameBitsAgain) {
  Student one("t5"), two("t5");
  for (int step = 0; step < 5; ++step) {
    EXPECT_EQ(one.trainer.advance(), two.trainer.advance());
  }
  EXPECT_EQ(state_of(one).sections, state_of(two).sections);
}

TEST(Trainer, CutIntoPiecesEndsWithTheSameBits) {
  Student whole("t5");
  while (whole.trainer.step() < whole.training.steps()) whole.trainer.advance();
  TrainingState state;
  Student("t5").trainer.save(state);
  for (const int64_t until :
       {int64_t{0}, int64_t{1}, int64_t{7}, int64_t{40}, whole.training.steps()}) {
    Student part("t5", tiny_settings().training, /*seed: other weights, until restored*/ 0);
    part.trainer.restore(parse_training_state(training_state_file(state)));
    while (part.trainer.step() < until) part.trainer.advance();
    state = state_of(part);
  }
  EXPECT_EQ(state.step, whole.training.steps());
  EXPECT_EQ(state.sections, state_of(whole).sections);
}

TEST(Trainer, RestoresOverAnythingThatWasThere) {
  Student one("t5"), other("t5");
  for (int step = 0; step < 3; ++step) one.trainer.advance();
  for (int step = 0; step < 8; ++step) other.trainer.advance();
  other.trainer.restore(state_of(one));
  EXPECT_EQ(other.trainer.step(), 3);
  EXPECT_EQ(other.trainer.advance(), one.trainer.advance());
  EXPECT_EQ(state_of(other).sections, state_of(one).sections);
}

// The memory is part of a checkpoint. During the first steps it still grows.
TEST(Trainer, WithMemoryCutIntoPiecesEndsWithTheSameBits) {
  const auto student = [] {
    return std::make_unique<Student>("transformer-xl", tiny_settings().training, 0, /*memory=*/24);
  };
  const auto whole = student();
  const double first = whole->trainer.advance();
  double last = 0;
  while (whole->trainer.step() < whole->training.steps()) last = whole->trainer.advance();
  EXPECT_LT(last, first - 2);

  TrainingState state = state_of(*student());
  for (const int64_t until : {int64_t{0}, int64_t{1}, int64_t{2}, int64_t{40}, int64_t{95}}) {
    const auto part = student();
    part->trainer.restore(parse_training_state(training_state_file(state)));
    while (part->trainer.step() < until) part->trainer.advance();
    state = state_of(*part);
  }
  EXPECT_EQ(state.step, whole->training.steps());
  EXPECT_EQ(state.sections, state_of(*whole).sections);
}

TEST(Trainer, AStepUsesTheMemoryOfTheOneBefore) {
  Student with("transformer-xl", tiny_settings().training, 0, 24);
  with.trainer.advance();
  TrainingState state = state_of(with);
  int blanked = 0;
  for (auto& [name, bytes] : state.sections) {
    if (!name.starts_with("memory/")) continue;
    std::ranges::fill(bytes, '\0');
    ++blanked;
  }
  EXPECT_EQ(blanked, 1);  // one layer
  Student forgetful("transformer-xl", tiny_settings().training, 0, 24);
  forgetful.trainer.restore(state);
  EXPECT_NE(forgetful.trainer.advance(), with.trainer.advance());
}

TEST(Trainer, RefusesAStateThatDoesNotFitAndChangesNothing) {
  Student student("t5");
  student.trainer.advance();
  const TrainingState before = state_of(student);
  TrainingState missing = before, short_one = before;
  missing.sections.pop_back();
  short_one.sections.back().second.pop_back();
  EXPECT_THAT([&] { student.trainer.restore(missing); },
              ThrowsMessage<Error>(HasSubstr("expected it, but it is missing")));
  EXPECT_THAT([&] { student.trainer.restore(short_one); },
              ThrowsMessage<Error>(HasSubstr("bytes, but got")));
  EXPECT_EQ(state_of(student).sections, before.sections);
  EXPECT_EQ(student.trainer.step(), 1);
}

TEST(Trainer, SaysWhenTheLossIsNoNumber) {
  TrainingOptions options = tiny_settings().training;
  options.warmup = 0;
  options.learning_rate = 100;
  options.clip = 1e9;
  options.weight_decay = 0;
  Student student("none", options);
  // A weight of NaN, as after an overflow.
  student.decoder.parameters()[0].value.detach().fill_(std::numeric_limits<double>::quiet_NaN());
  EXPECT_TRUE(std::isnan(student.trainer.advance()));
  EXPECT_EQ(student.trainer.step(), 0);
}

TEST(LearningRate, RisesAndFalls) {
  const TrainingOptions options{.length = 10, .bytes = 10'000, .batch = 10, .warmup = 0.1};
  ASSERT_EQ(options.steps(), 100);
  EXPECT_NEAR(learning_rate_at(options, 0), 0.05, 1e-12);
  EXPECT_NEAR(learning_rate_at(options, 4), 0.45, 1e-12);
  EXPECT_NEAR(learning_rate_at(options, 10), 1, 1e-3);
  EXPECT_NEAR(learning_rate_at(options, 54) + learning_rate_at(options, 55), 1, 1e-3);
  EXPECT_NEAR(learning_rate_at(options, 99), 0, 1e-3);
  for (int64_t step = 0; step < 99; ++step) {
    EXPECT_EQ(learning_rate_at(options, step) < learning_rate_at(options, step + 1), step < 10)
        << step;
  }
}

}  // namespace
}  // namespace sextant::lab
