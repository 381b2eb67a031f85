#include "sextant/lab/plan/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sextant/base/error.h"

namespace sextant::lab {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

std::string error_of(const Settings& settings) {
  try {
    check(settings);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Settings, SurviveJson) {
  Settings settings;
  settings.training.learning_rate = 0.1 + 0.2;
  settings.test.lengths = {128, 1024};
  const json written = settings;
  EXPECT_EQ(json(json::parse(written.dump()).get<Settings>()), written);
}

// Manifests and checkpoints of trainings are compared with it, also those of earlier versions.
TEST(Settings, HaveTheSameJsonInAllVersions) {
  EXPECT_EQ(
      json(Settings{}).dump(),
      R"({"model":{"activation":"relu2","heads":4,"key_heads":4,"layers":3,"mlp_width":512,)"
      R"("norm":"layernorm","norm_epsilon":1e-05,"tied":true,"vocabulary":256,"width":128},)"
      R"("retrieval":{"batch":64,"layers":2,"learning_rate":0.003,"length":64,)"
      R"("lengths":[64,128,256,512],"steps":400,"texts":128,"width":64},)"
      R"("test":{"bin":16,"blocks":64,"lengths":[128,256,512,1024],"share":0.05},"threads":1,)"
      R"("training":{"batch":8,"beta1":0.9,"beta2":0.98,"bytes":800000,"clip":1.0,)"
      R"("learning_rate":0.004,"length":128,"warmup":0.05,"weight_decay":0.1}})");
}

TEST(Settings, AreReadStrictly) {
  json settings = Settings{};
  settings["training"]["momentum"] = 0.9;
  EXPECT_THAT(
      [&] { settings.get<Settings>(); },
      ThrowsMessage<Error>(HasSubstr("settings: training: momentum: expected no such field")));
}

TEST(Settings, SayWhichOneIsOutOfRange) {
  EXPECT_EQ(error_of({}), "");
  EXPECT_THAT(error_of({.training = {.length = 1}}), HasSubstr("training.length: expected 2 to"));
  EXPECT_THAT(error_of({.training = {.bytes = 1023}}),
              HasSubstr("training.bytes: expected 1024 to"));
  EXPECT_THAT(error_of({.training = {.learning_rate = NAN}}), HasSubstr("learning_rate: expected"));
  EXPECT_THAT(error_of({.test = {.lengths = {}}}), HasSubstr("expected at least one"));
  EXPECT_THAT(error_of({.test = {.lengths = {256, 128}}}), HasSubstr("each above the one before"));
  EXPECT_THAT(error_of({.test = {.lengths = {128, 128}}}), HasSubstr("each above the one before"));
  EXPECT_THAT(error_of({.test = {.lengths = {64, 256}}}),
              HasSubstr("expected the training length 128 among them, but got [64,256]"));
  EXPECT_THAT(error_of({.test = {.lengths = {128, 300}}}),
              HasSubstr("expected divisors of the longest, 300, but got 128"));
  EXPECT_THAT(error_of({.test = {.lengths = {32, 128}}}), HasSubstr("expected 64 to"));
  EXPECT_THAT(error_of({.test = {.bin = 100}}), HasSubstr("test.bin: expected a divisor"));
  EXPECT_THAT(error_of({.test = {.blocks = 1}}), HasSubstr("test.blocks: expected 2 to"));
  EXPECT_THAT(error_of({.model = {.heads = 3}}), HasSubstr("width: expected a multiple of heads"));
  EXPECT_THAT(error_of({.retrieval = {.steps = -1}}), HasSubstr("retrieval.steps: expected 0 to"));
  EXPECT_THAT(error_of({.retrieval = {.length = 15}}), HasSubstr("length: expected 16 to"));
  EXPECT_THAT(error_of({.retrieval = {.lengths = {32, 64}}}),
              HasSubstr("expected the training length 64 as the first, but got [32,64]"));
  EXPECT_THAT(error_of({.retrieval = {.width = 30}}), HasSubstr("width: expected a multiple"));
  EXPECT_EQ(error_of({.retrieval = {.steps = 0, .length = 1}}), "") << "left out";
  EXPECT_THAT(error_of({.threads = 0}), HasSubstr("threads: expected 1 to"));
  EXPECT_EQ(error_of({.device = "mps"}), "device: expected cpu or cuda, but got mps");
  EXPECT_EQ(error_of({.device = "cuda:x"}),
            "device: expected the number of a GPU after cuda:, but got cuda:x");
  for (const char* device : {"cpu", "cuda", "cuda:1"}) EXPECT_EQ(error_of({.device = device}), "");
}

// Manifests and checkpoints of trainings on the CPU are those of versions without devices.
TEST(Settings, NameTheDeviceOnlyIfItIsNotTheCpu) {
  EXPECT_FALSE(json(Settings()).contains("device"));
  Settings settings;
  settings.device = "cuda:1";
  EXPECT_EQ(json(settings).get<Settings>().device, "cuda:1");
}

TEST(Settings, OfPairsAreThoseOfTextButForWhatTheySay) {
  Settings settings;
  settings.model.norm = Norm::kRmsNorm;
  settings.training.clip = 3;
  const DecoderOptions model = model_of(settings, Task::kPairs);
  EXPECT_EQ(model.width, 64);
  EXPECT_EQ(model.mlp_width, 256);
  EXPECT_EQ(model.layers, 2);
  EXPECT_EQ(model.norm, Norm::kRmsNorm);
  EXPECT_GT(model.vocabulary, 256);
  const TrainingOptions training = training_of(settings, Task::kPairs);
  EXPECT_EQ(training.steps(), 400);
  EXPECT_EQ(training.length, 64);
  EXPECT_EQ(training.clip, 3);
  EXPECT_EQ(model_of(settings, Task::kText), settings.model);
  EXPECT_EQ(training_of(settings, Task::kText).steps(), settings.training.steps());
}

TEST(Distances, DoubleUpToHalfTheTextAndEndNearItsBeginning) {
  const RetrievalOptions options;
  EXPECT_THAT(distances_in(64, options), ElementsAre(8, 16, 32, 56));
  EXPECT_THAT(distances_in(512, options), ElementsAre(8, 16, 32, 64, 128, 256, 504));
}

TEST(Settings, DifferencesAreNamedOneByOne) {
  Settings there, asked;
  asked.training.bytes = 400'000;
  asked.test.lengths = {128, 256};
  EXPECT_THAT(differences(there, asked),
              ElementsAre("test.lengths: [128,256,512,1024] there, [128,256] asked for",
                          "training.bytes: 800000 there, 400000 asked for"));
  EXPECT_THAT(differences(there, there), IsEmpty());
  EXPECT_THAT(differences(json{{"a", 1}}, json{{"b", 1}}),
              ElementsAre("a: 1 there, nothing asked for", "b: nothing there, 1 asked for"));
}

TEST(Settings, LeaveDirectionAndTokensOfTheModelToTheObjective) {
  Settings settings;
  settings.model.causal = false;
  EXPECT_THAT([&] { check(settings); },
              ThrowsMessage<Error>(HasSubstr("expected true, -1, -1, as the objective decides "
                                             "them, but got false, -1, -1")));
}

}  // namespace
}  // namespace sextant::lab
